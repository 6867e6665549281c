"""Judging a build by the owner's own test, and somebody else's recommendations beside it."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.errors import DataError, QkvError
from qkvsearch.evaluation.metrics import ndcg

N_USERS, N_ITEMS = 40, 40


def liked_by(user):
    """Eight of the ten items of a user's taste, in an order of their own."""
    taste = [item for item in range(1, N_ITEMS + 1) if item % 4 == user % 4]
    return np.random.default_rng(user).permutation(taste)[:8].tolist()


HISTORY = {f"u{user}": liked_by(user)[:6] for user in range(N_USERS)}
HELD_OUT = {f"u{user}": liked_by(user)[6:] for user in range(N_USERS)}
OTHERS = {
    user: [i for i in range(1, N_ITEMS + 1) if i not in HISTORY[user] and i not in HELD_OUT[user]]
    for user in HISTORY
}


def log_of(pairs):
    rows = [(user, item) for user, items in pairs.items() for item in items]
    return pd.DataFrame(rows, columns=["user", "item"])


def ranked(lists):
    rows = [(user, n, item) for user, items in lists.items() for n, item in enumerate(items, 1)]
    return pd.DataFrame(rows, columns=["user", "rank", "id"])


NO_RANKS = ranked(HELD_OUT).assign(rank="first")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    items = pd.DataFrame({"id": range(1, N_ITEMS + 1)})
    items["title"] = [f"{'Tent Kettle Rope Lamp'.split()[n % 4]} {n}" for n in items["id"]]
    path = tmp_path_factory.mktemp("own") / "w"
    qkvsearch.build(path, items=items, interactions=log_of(HISTORY), encoder="corpus").close()
    return path


@pytest.fixture(scope="module")
def engine(path):
    with qkvsearch.open(path) as engine:
        yield engine


def test_lists_have_the_figures_of_their_definitions(engine, tmp_path):
    lists = {
        "perfect": {user: HELD_OUT[user] + OTHERS[user][:8] for user in HELD_OUT},
        "second": {user: [OTHERS[user][0], *HELD_OUT[user]] for user in HELD_OUT},
        "useless": {user: OTHERS[user][:10] for user in HELD_OUT},
    }
    files = []
    for name, of_users in lists.items():
        ranked(of_users).sample(frac=1, random_state=0).to_csv(tmp_path / f"{name}.csv")
        files.append(tmp_path / f"{name}.csv")
    report = engine.evaluate_recommend(test=log_of(HELD_OUT), recommendations=files)
    second = (1 / math.log2(3) + 1 / math.log2(4)) / (1 + 1 / math.log2(3))
    for name, figure in {"perfect": 1.0, "second": second, "useless": 0.0}.items():
        assert report.baselines[name]["ndcg@10"] == pytest.approx(figure, abs=1e-9)
    assert {"popularity", "item-knn", "ease", *lists} == set(report.baselines)
    assert report.differences["ndcg@10"].baseline == "perfect"
    assert (report.protocol, report.facts["users"]) == ("test", N_USERS)


def has_ties(hits):
    """Which of two items is first that have the same score is decided by rounding."""
    return min(np.diff([-hit.score for hit in hits])) < 1e-6


def test_ours_are_the_recommendations_of_the_build(engine):
    of_users = {user: engine.recommend(user=user, k=6) for user in HELD_OUT}
    clear = {user: items for user, items in HELD_OUT.items() if not has_ties(of_users[user])}
    assert len(clear) > len(HELD_OUT) / 2
    report = engine.evaluate_recommend(test=log_of(clear), k=5)
    found = [
        ndcg([hit.id for hit in of_users[user][:5]], dict.fromkeys(items, 1), 5)
        for user, items in clear.items()
    ]
    assert report.metrics["ndcg@5"] == pytest.approx(np.mean(found))
    assert 0 < report.metrics["ndcg@5"] < 1
    alone = engine.recommend_all(k=5).to_frame()
    again = engine.evaluate_recommend(test=log_of(clear), k=5, recommendations={"same": alone})
    assert again.baselines["same"] == pytest.approx(report.metrics)


def test_a_picture_has_a_colour_for_each_line_and_leaves_out_the_worst(engine):
    theirs = {f"useless{n}": ranked({"u0": OTHERS["u0"]}) for n in range(3)}
    theirs["perfect"] = ranked(HELD_OUT)
    report = engine.evaluate_recommend(test=log_of(HELD_OUT), recommendations=theirs)
    bars, *_ = panels = report.panels()
    assert {*theirs} <= {*bars.groups}
    for panel in panels:
        names = [series.name for series in panel.series]
        assert len(names) <= 5
        assert len(names) == 1 or {"qkvsearch", "perfect"} <= {*names}


def test_what_cannot_be_judged_is_left_out_and_counted(engine):
    old = HISTORY["u0"][0]
    more = [("u0", old), ("zoe", 3), ("u1", 999), (None, 3)]
    test = pd.concat([log_of(HELD_OUT), pd.DataFrame(more, columns=["user", "item"])])
    report = engine.evaluate_recommend(test=test)
    plain = engine.evaluate_recommend(test=log_of(HELD_OUT))
    assert report.metrics == plain.metrics
    assert (report.facts["users"], report.facts["test"]) == (N_USERS, 2 * N_USERS)
    assert report.facts["users_without_history"] == 1
    notes = "\n".join(report.notes)
    for said in ("1 without a user", "1 with an item that is not in the catalog"):
        assert said in notes
    assert "1 interaction of the test with an item that the user had before" in notes
    few = engine.evaluate_recommend(test=test, users=7)
    assert (few.facts["users"], few.facts["eligible_users"]) == (7, N_USERS)


def test_others_are_judged_by_the_same_protocol(engine):
    """Items that a user had are left out, unknown ones are misses, and repeated ones count once."""
    (first, second), (old, *_) = HELD_OUT["u0"], HISTORY["u0"]
    plain = {**{user: [] for user in HELD_OUT}, "u0": ["x", first, second]}
    messy = {"u0": [old, "x", first, first, second], "nobody": [1, 2]}
    report = engine.evaluate_recommend(
        test=log_of(HELD_OUT),
        recommendations={"plain": ranked(plain), "messy": ranked(messy)},
    )
    assert report.baselines["messy"] == report.baselines["plain"]
    assert report.baselines["plain"]["ndcg@10"] > 0
    (note,) = [note for note in report.notes if note.startswith("messy: ")]
    assert f"{N_USERS - 1} users have no recommendations" in note
    for said in ("had before", "catalog does not have", "at a better rank"):
        assert said in note


def test_a_guarded_id_is_read_without_its_apostrophe(tmp_path):
    items = pd.DataFrame({"id": ["=a", "-b", "c"], "title": ["one", "two", "three"]})
    log = pd.DataFrame({"user": ["@u", "@u", "v", "v"], "item": ["=a", "c", "=a", "-b"]})
    with qkvsearch.build(tmp_path / "w", items=items, interactions=log, encoder="corpus") as engine:
        engine.recommend_all(tmp_path / "all.csv")
        assert "'@u" in (tmp_path / "all.csv").read_text("utf-8")
        test = pd.DataFrame({"user": ["@u"], "item": ["-b"]})
        report = engine.evaluate_recommend(test=test, recommendations=tmp_path / "all.csv")
        assert report.baselines["all"]["ndcg@10"] == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"recommendations": {"theirs": ranked(HELD_OUT)}}, "`test`"),
        ({"test": log_of(HELD_OUT), "protocol": "time"}, "`protocol`"),
        ({"test": log_of(HELD_OUT), "next_item": True}, "`next_item`"),
        ({"test": log_of(HISTORY)}, "had before"),
        ({"test": log_of({"zoe": [1]})}, "without a history"),
        ({"test": log_of(HELD_OUT), "recommendations": {"ease": ranked(HELD_OUT)}}, "'ease'"),
        ({"test": log_of(HELD_OUT), "recommendations": ["a/x.csv", "b/x.csv"]}, "'x'"),
        ({"test": log_of(HELD_OUT), "recommendations": [ranked(HELD_OUT)]}, "by their names"),
        ({"test": log_of(HELD_OUT), "recommendations": {"a": log_of(HELD_OUT)}}, "column rank"),
        ({"test": log_of(HELD_OUT), "recommendations": {"a": NO_RANKS}}, "rank 'first'"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_name(engine, options, named):
    with pytest.raises(QkvError, match=named):
        engine.evaluate_recommend(**options)


def test_ratings_are_predicted_by_the_stored_model(movies):
    """By the model of the build, which also tells the rating that it predicts of a hit."""
    hits = {user: movies.recommend(user=user, k=3) for user in ("u001", "u002")}
    rows = [(user, hit.id, 4, hit.predicted_rating) for user in hits for hit in hits[user]]
    test = pd.DataFrame(rows, columns=["user", "item", "rating", "predicted"])
    report = movies.evaluate_recommend(test=test[["user", "item", "rating"]])
    errors = test["predicted"] - 4
    assert report.metrics["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), abs=1e-4)
    assert report.metrics["ndcg@10"] == pytest.approx(1)
    disliked = test.assign(rating=1)[["user", "item", "rating"]]
    with pytest.raises(DataError, match="upper half"):
        movies.evaluate_recommend(test=disliked)


def test_the_command_line_writes_it(path, qkv, tmp_path):
    log_of(HELD_OUT).to_csv(tmp_path / "june.csv", index=False)
    ranked(HELD_OUT).to_csv(tmp_path / "theirs.csv", index=False)
    files = ["--test", tmp_path / "june.csv", "--recommendations", tmp_path / "theirs.csv"]
    done = qkv("-w", path, "evaluate", "recommend", *files, "--format", "json")
    report = json.loads(done.stdout)
    assert (report["users"], report["baselines"]["theirs"]["ndcg@10"]) == (N_USERS, 1.0)
    assert "80 rows read" in done.stderr
