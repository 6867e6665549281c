"""What people liked, disliked, used much or gave back, from the file to the reasons of a hit."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns

N_USERS, N_ITEMS, N = 60, 40, 1500
ITEMS = pd.DataFrame({"id": range(N_ITEMS), "title": [f"thing {item}" for item in range(N_ITEMS)]})


def drawn(seed=0):
    """Distinct pairs of users and items."""
    rng = np.random.default_rng(seed)
    pairs = {"user": rng.integers(0, N_USERS, N), "item": rng.integers(0, N_ITEMS, N)}
    return pd.DataFrame(pairs).drop_duplicates(), rng


def built(path, log, columns=None, items=ITEMS, **options):
    return qkv.build(path, items=items, interactions=log, columns=columns, **options)


def reasons(ranking):
    return {reason["id"] for hit in ranking for reason in hit.because}


def assert_reasons_add_up(ranking):
    for hit in ranking:
        total = sum(reason["contribution"] for reason in hit.because)
        assert total == pytest.approx(hit.score, abs=1e-5)


@pytest.fixture(scope="module")
def rarely_disliked(tmp_path_factory):
    """1s, and a dislike, 0, of a few users: the engine, and the log."""
    log, _ = drawn()
    log["rating"] = 1
    log.loc[log.index[[5, 600, 1000]], "rating"] = 0
    return built(tmp_path_factory.mktemp("rare"), log), log


def test_a_rare_dislike_is_no_reason(rarely_disliked):
    engine, log = rarely_disliked
    assert engine.info()["rating_scale"] == [0, 1]
    for user, item in log.loc[log["rating"] == 0, ["user", "item"]].itertuples(index=False):
        ranking = engine.recommend(user=user, k=5, explain=True)
        assert item not in reasons(ranking) | {hit.id for hit in ranking}
        assert_reasons_add_up(ranking)


def test_users_of_fours_and_fives_like_what_they_gave_fours(tmp_path):
    log, rng = drawn()
    log["rating"] = rng.choice([4, 5], len(log))
    log.loc[log["user"] == 7, "rating"] = 4
    engine = built(tmp_path, log)
    assert engine.info()["rating_scale"] == [1, 5]
    met = set(log.loc[log["user"] == 7, "item"])
    ranking = engine.recommend(user=7, k=3, explain=True)
    assert reasons(ranking) == met
    assert all(len(engine.recommend(user=user, k=3)) for user in log["user"].unique())


def test_a_scale_that_is_said_decides_what_is_liked(tmp_path):
    log, rng = drawn()
    log["rating"] = rng.choice([4, 5], len(log))
    engine = built(tmp_path, log, Columns(rating_scale=(0, 9)))
    assert engine.info()["rating_scale"] == [0, 9]
    disliked = set(log.loc[(log["user"] == 3) & (log["rating"] == 4), "item"])
    ranking = engine.recommend(user=3, k=3, explain=True)
    assert reasons(ranking)
    assert not reasons(ranking) & disliked
    assert engine.evaluate_recommend(k=5).metrics["rmse"] < 1


def test_a_rating_in_the_lower_half_is_no_reason_whatever_ranks(tmp_path):
    log, rng = drawn()
    log["rating"] = rng.integers(1, 6, len(log))
    log["time"] = np.arange(len(log))
    trains = find_spec("torch") is not None
    engine = built(tmp_path, log, next_item=trains)
    of_user = log[log["user"] == 5]
    disliked = set(of_user.loc[of_user["rating"] < 3, "item"])
    liked = set(of_user.loc[of_user["rating"] >= 3, "item"])
    assert disliked
    for model in ("preferences", *["next-item"] * trains):
        ranking = engine.recommend(user=5, k=3, explain=True, model=model)
        assert reasons(ranking) - {None} == liked
        assert not disliked & {hit.id for hit in ranking}
        assert_reasons_add_up(ranking)


# --- weights ---


def orders(*rows):
    return pd.DataFrame(rows, columns=["user", "item", "quantity", "time"])


def bought(seed=0):
    """Purchases of one, by everyone, at times that tell them apart."""
    log, _ = drawn(seed)
    return log.assign(quantity=1, time=np.arange(len(log)))


def test_a_refunded_item_is_known_and_no_reason_and_not_recommended_again(tmp_path):
    log = bought()
    item = int(log.loc[log["user"] == 2, "item"].iloc[0])
    engine = built(tmp_path, pd.concat([log, orders((2, item, -1, 10**6))]))
    history = engine.models.history(engine.catalog.users.position(2))
    row = history.positions.tolist().index(item)
    assert (history.weights[row], history.confidences[row]) == (0, 0)
    ranking = engine.recommend(user=2, k=N_ITEMS, explain=True)
    assert item not in reasons(ranking) | {hit.id for hit in ranking}
    assert_reasons_add_up(ranking)
    again = engine.recommend(user=2, k=N_ITEMS, seen=True, explain=True)
    assert item not in reasons(again)


def test_who_gave_everything_back_is_recommended_nothing(tmp_path):
    own = orders((99, 1, 2, 1), (99, 2, 1, 2), (99, 1, -2, 3), (99, 2, -1, 4))
    engine = built(tmp_path, pd.concat([bought(), own]))
    assert len(engine.recommend(user=99)) == 0
    assert engine.users[99]["interactions"] == 2


def test_heavy_use_counts_more_than_light_use_of_the_same_item(tmp_path):
    log = bought()
    log["quantity"] = np.where(log["user"] % 2, 100, 1)
    engine = built(tmp_path, log)
    feedback = engine.models.feedback
    light, usual, heavy = feedback.confidences(
        np.array([3, 3, 3]), None, np.array([1, feedback.usual_weights[3], 100], np.float32)
    )
    assert usual == pytest.approx(1)
    assert 0 < light < usual < heavy


def test_what_is_said_to_be_liked_counts_as_much_as_usual_use(tmp_path):
    engine = built(tmp_path, bought())
    history = engine.current_build.recommender.histories.of(None, [3])
    assert history.confidences.tolist() == [1]


@pytest.mark.slow
def test_evaluation_and_tuning_take_what_was_given_back_for_no_hit(tmp_path):
    log = bought()
    back = log[log["user"] < 10].assign(quantity=-1, time=10**6)
    kept = built(tmp_path / "kept", log).evaluate_recommend(k=5)
    found = built(tmp_path / "back", pd.concat([log, back])).evaluate_recommend(k=5)
    assert found.facts["users"] == kept.facts["users"] - 10


def test_weights_follow_their_items_when_others_join_and_leave(tmp_path):
    log = bought()
    log["quantity"] = log["item"] + 1
    engine = built(tmp_path, log)
    before = engine.models.feedback.usual_weights.copy()
    engine.remove(0)
    engine.add(pd.DataFrame({"id": [500], "title": ["new"]}))
    history = engine.models.history(engine.catalog.users.position(4))
    ids, _ = engine.catalog.names(history.positions)
    assert history.weights.tolist() == [id_ + 1 for id_ in ids]
    after = engine.models.feedback.usual_weights
    assert after[engine.catalog.titles.item_position(7)] == before[7]
    assert after[engine.catalog.titles.item_position(500)] == 0
    assert engine.recommend(likes=[500, 3], k=1)


# --- ids ---


@pytest.fixture
def folded(tmp_path):
    log = bought().assign(user=lambda frame: "Ann" + frame["user"].astype(str))
    log.loc[::3, "user"] = log.loc[::3, "user"].str.upper()
    items = ITEMS.assign(id="K" + ITEMS["id"].astype(str))
    log["item"] = "k" + log["item"].astype(str)
    return built(tmp_path / "folded", log, Columns(fold_ids=True), items)


def test_folded_ids_are_found_in_any_case_wherever_they_are_named(folded):
    assert len(folded.users) == N_USERS
    assert "aNN7" in folded.users
    assert folded.users["ANN7"] == folded.users["ann7"]
    assert list(folded.recommend(user="ann7")) == list(folded.recommend(user="ANN7"))
    (hit,) = folded.recommend(user="ann7", only=["K3", "k4"], k=1, seen=True)
    assert hit.id in ("K3", "K4")
    assert folded.items["k3"]["id"] == "K3"
    assert folded.similar("k3", k=1)


def test_folding_outlives_every_change(folded):
    more = {"id": ["k3", "k900", "K900"], "title": ["other", "new", "newer"]}
    assert folded.add(pd.DataFrame(more)).added == 1
    assert len(folded.items) == N_ITEMS + 1
    assert folded.items["K3"]["title"] == "other"
    folded.remove("k900")
    again = pd.DataFrame({"user": ["Zoe", "ZOE", "zoe"], "item": ["k1", "K2", "k2"]})
    folded.record_many(again)
    folded.learn()
    assert folded.users["zOE"]["interactions"] == 2
    assert folded.users["ANN7"] == folded.users["ann7"]


def test_without_folding_the_report_says_how_many_would_join(tmp_path):
    log = pd.DataFrame({"user": ["USER@X", "user@x", "b"], "item": [1, 2, 1]})
    lines = built(tmp_path, log).info()["rows"]
    assert any("ids differ in case alone: 1 user" in line for line in lines)


def test_a_recorded_007_is_not_the_item_7_of_a_later_build(tmp_path):
    texts = pd.DataFrame({"id": ["007", "7", "x"], "title": ["agent", "seven", "ex"]})
    log = pd.DataFrame({"user": ["a", "a", "b"], "item": ["007", "7", "x"]})
    built(tmp_path, log, items=texts).record("c", "007")
    numbers = built(tmp_path, log.assign(item=[7, 8, 8]), items=ITEMS)
    assert numbers.snapshot.records.user("c").interactions == []


def test_a_whole_number_with_a_point_is_the_same_user_and_item_everywhere(tmp_path):
    engine = built(tmp_path, bought())
    before = engine.users[7]["interactions"]
    new = engine.recommend(user=7, k=1)[0].id
    engine.record("7.0", f"{new}.0")
    assert engine.users[7]["interactions"] == before + 1
    engine.record("1017.0", 3)
    engine.record(1017.0, 4)
    assert engine.users["1017"] == {"id": 1017, "interactions": 2}
    assert engine.recommend(user="7.0", only=["3.0"], seen=True)[0].id == 3


def test_a_scale_where_there_are_no_ratings_is_refused(tmp_path):
    with pytest.raises(DataError, match="`rating_scale` is of ratings"):
        built(tmp_path, bought(), Columns(rating_scale=(1, 5)))
