"""What the command line can do, an engine can: its items and users, measuring, tuning, changing."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.evaluation import tuning

# --- the workspace as objects ---


def test_items_are_rows_by_id_or_title(shop, shop_items):
    assert len(shop.items) == len(shop_items)
    assert list(shop.items) == sorted(shop_items["id"])
    assert shop.items[4] == shop.items["4"] == shop.items["steel hammer"]
    assert shop.items[4]["title"] == "steel hammer"
    assert shop.items[4]["made"] == 2004
    assert 4 in shop.items
    assert 4444 not in shop.items
    frame = shop.items.to_frame()
    assert frame["id"].tolist() == list(shop.items)
    assert dict(shop.items)[4] == frame[frame["id"] == 4].iloc[0].to_dict()


def test_users_are_those_of_the_build_and_those_recorded_since(films):
    log = films.models.log()
    counts = np.bincount(log.users)
    assert list(films.users) == list(log.user_ids)
    assert films.users.to_frame()["interactions"].tolist() == counts.tolist()
    films.record("newcomer", "Alien", 5)
    films.record("newcomer", "Heat")
    films.record("newcomer", "Heat", 3)
    assert len(films.users) == len(counts) + 1
    assert films.users["newcomer"] == {"id": "newcomer", "interactions": 2}
    assert list(films.users)[-1] == "newcomer"
    assert films.users.to_frame().iloc[-1].tolist() == ["newcomer", 2]


def test_a_workspace_without_interactions_has_no_users(things):
    assert len(things.users) == 0
    assert list(things.users.to_frame().columns) == ["id", "interactions"]


def test_an_engine_says_what_it_holds(shop, shop_path):
    assert repr(shop) == f"<Engine {shop_path}: {len(shop.items)} items, 7 users, encoder corpus>"
    assert repr(shop.items) == f"<{len(shop.items)} items>"
    assert repr(shop.users) == "<7 users>"


def test_only_what_nobody_interacted_with_is_cold(shop):
    counts = shop.models.item_counts
    ranking = shop.recommend(likes=[1], seen=True, k=99)
    assert {0, 1} <= set(counts[ranking.positions])
    for hit, count in zip(ranking, counts[ranking.positions], strict=True):
        assert hit.cold is (True if count == 0 else None)


# --- measuring and changing, in Python as on the command line ---


def test_a_search_is_judged_from_files_and_from_dictionaries(shop, tmp_path):
    queries = {"q1": "red apple", "q2": "hammer", "q3": "unjudged"}
    qrels = {"q1": {"1": 2}, "q2": {"4": 1, "nowhere": 1}}
    (tmp_path / "q.tsv").write_text("".join(f"{q}\t{text}\n" for q, text in queries.items()))
    lines = [f"{q}\t{i}\t{grade}" for q, judged in qrels.items() for i, grade in judged.items()]
    (tmp_path / "qrels.tsv").write_text("\n".join(lines))
    seen = []
    found = shop.evaluate_search(queries, qrels, progress=lambda *where: seen.append(where))
    assert found == shop.evaluate_search(tmp_path / "q.tsv", tmp_path / "qrels.tsv")
    assert list(found.baselines) == ["lexical"]
    assert found.metrics["mrr@10"] == 1
    assert list(found.notes) == [
        "1 query without judgements left out: q3",
        "1 item not in catalog counts as missed: nowhere",
    ]
    assert "notes" not in found.to_dict()
    assert seen[-1] == ("asking lexical", 2, 2)
    alone = shop.evaluate_search(queries, qrels, heads="lexical")
    assert (alone.baselines, alone.metrics) == ({}, found.baselines["lexical"])


def test_a_search_without_questions_cannot_be_judged(shop):
    for given in ((None, {}), ({}, None)):
        with pytest.raises(QkvError, match=r"queries|qrels"):
            shop.evaluate_search(*given)


def test_recommendations_are_judged_by_the_log(movies, films):
    seen = []
    found = movies.evaluate_recommend("strong", k=5, progress=lambda *where: seen.append(where[0]))
    assert found.facts["k"] == 5
    assert {"learning preferences", "ranking by qkvsearch", "learning ratings"} <= set(seen)
    assert list(found.notes) == []
    films.record("newcomer", "Alien", 5)
    films.snapshot.facts["tuned"] = {"protocol": "time", "settings": {"n_components": 4}}
    other = films.evaluate_recommend("strong", k=5)
    assert other.metrics["ndcg@5"] != found.metrics["ndcg@5"]
    assert other.notes[0] == "Left out: 1 recorded interaction."
    assert other.notes[1].startswith("With the settings that tune found with `protocol` time; ")
    assert len(other.notes) == 2


@pytest.mark.parametrize(
    ("given", "trials", "minutes"),
    [
        ({}, 27, 5.0),
        ({"trials": 9}, 9, None),
        ({"minutes": 0.5}, 27, 0.5),
        ({"trials": 9, "minutes": 60}, 9, 60),
    ],
    ids=str,
)
def test_a_search_ends_by_trials_or_by_time(movies, monkeypatch, given, trials, minutes):
    asked = {}

    def find(log, protocol, **options):
        asked.update(options)
        return tuning.Tuning(protocol, "ndcg@10", {}, {}, {}, 0.0, (0.0, 0.0), [])

    monkeypatch.setattr(tuning, "tune", find)
    assert not movies.tune(**given).worthwhile
    assert (asked["trials"], asked["minutes"]) == (trials, minutes)


def test_what_needs_a_log_says_so_without_one(things, tmp_path):
    for question in (
        things.evaluate_recommend,
        things.tune,
        lambda: things.recommend(likes=["Why do cats purr?"], damping=1),
        lambda: things.recommend_all(tmp_path / "all.csv"),
    ):
        with pytest.raises(WorkspaceError, match="build with `interactions`"):
            question()


def test_changes_say_how_far_they_are(shop_copy):
    stages = []
    with qkvsearch.open(shop_copy) as engine:
        more = pd.DataFrame({"id": [77], "title": ["blue apple"], "made": [2020]})
        for change in (partial(engine.add, more), partial(engine.remove, 77)):
            stages.clear()
            change(progress=lambda stage, done, total: stages.append(stage))
            assert stages[-1] == "saving"
