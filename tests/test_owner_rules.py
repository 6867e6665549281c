"""The owner's rules: pins, buries and boosts, in searches, recommendations and measurements."""

import shutil

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.engine import Engine
from qkvsearch.errors import DamagedError, QkvError, UnknownIdError, WorkspaceError
from qkvsearch.heads import dense, quantized
from qkvsearch.heads.quantized import QuantizedKeys
from qkvsearch.rank.owner_rules import query_key
from qkvsearch.store import rules_file

ITEMS = pd.DataFrame(
    {
        "id": range(1, 13),
        "title": [
            "two person tent",
            "family tent",
            "winter tent",
            "tent pegs",
            "gas stove",
            "wood stove",
            "camping kettle",
            "steel kettle",
            "climbing rope",
            "rope bag",
            "café table",
            "帐篷 灯",
        ],
        "stock": [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1],
        "brand": ["Calder", "Ostrava"] * 6,
    }
)
LOG = pd.DataFrame(
    [(user, item) for user in range(9) for item in range(1, 13) if (user + item) % 3 == 0],
    columns=["user", "item"],
)


@pytest.fixture(scope="module")
def camp_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("camp") / "ws"
    qkvsearch.build(path, items=ITEMS, interactions=LOG, encoder="corpus").close()
    return path


@pytest.fixture
def camp(camp_path, tmp_path):
    with Engine(shutil.copytree(camp_path, tmp_path / "camp")) as engine:
        yield engine


def ids(ranking):
    return [hit.id for hit in ranking]


def check_sums(ranking):
    """Parts, reasons, and what heads add are the score of every hit."""
    assert len(ranking)
    for i, hit in enumerate(ranking):
        assert ranking.parts(i).sums.sum() == pytest.approx(hit.score, abs=1e-4)
        assert sum(one.value for one in ranking.reasons(i)) == pytest.approx(hit.score, abs=1e-4)
        if hit.heads is not None:
            assert sum(hit.heads.values()) == pytest.approx(hit.score, abs=1e-4)


def lines(ranking, index=0):
    return {reason.text: reason.value for reason in ranking.reasons(index)}


# --- pins and buries ---


def test_pinned_items_come_first_in_their_order(camp):
    before = ids(camp.search("tent"))
    others = [id_ for id_ in before if id_ not in (3, 9)]
    camp.add_rule(pin="tent", items=[9, 3])
    after = camp.search("tent")
    assert ids(after) == [9, 3, *others][: len(after)]
    assert [hit.match for hit in after[:2]] == ["strong", "strong"]
    assert lines(after)["pinned for this query"] > 0
    check_sums(after)
    assert ids(camp.search("tent", rules=False)) == before


def test_a_pinned_item_that_is_first_by_itself_is_not_lowered(camp):
    first = camp.search("gas stove")[0]
    camp.add_rule(pin="gas stove", items=[first.id])
    pinned = camp.search("gas stove")[0]
    assert (pinned.id, pinned.score >= first.score) == (first.id, True)


@pytest.mark.parametrize(
    "typed", ["Café  Table", "CAFE TABLE", " cafe\ttable ", "cafe\u0301 table"]
)
def test_a_query_is_compared_without_case_accents_and_blanks(camp, typed):
    camp.add_rule(pin="café table", items=[1])
    assert ids(camp.search(typed))[0] == 1
    assert query_key(typed) == "cafe table"


def test_traditional_and_simplified_characters_are_one_query(camp):
    camp.add_rule(pin="帳篷", items=[1])
    assert ids(camp.search("帐篷"))[0] == 1


def test_other_queries_are_as_before(camp):
    before = [camp.search(text).to_records() for text in ("tents", "winter tent", "stove")]
    camp.add_rule(pin="tent", items=[9])
    assert [camp.search(text).to_records() for text in ("tents", "winter tent", "stove")] == before


def test_a_corrected_query_has_the_rules_of_what_it_is_read_as(camp):
    camp.add_rule(pin="kettle", items=[9])
    ranking = camp.search("ketttle")
    assert ranking.corrections
    assert ids(ranking)[0] == 9


def test_pinned_items_are_hits_where_nothing_else_is(camp):
    assert not camp.search("zanzibar")
    camp.add_rule(pin="zanzibar", items=[9, 3])
    ranking = camp.search("zanzibar", facets="brand")
    assert ids(ranking) == [9, 3]
    assert [hit.match for hit in ranking] == ["strong", "strong"]
    assert not any("No hits" in note for note in ranking.notes)
    assert ranking.facets == {"brand": {"Calder": 2}}
    check_sums(ranking)


def test_words_that_are_too_common_can_have_pins(camp):
    assert not camp.search("the")
    camp.add_rule(pin="the", items=[9])
    assert ids(camp.search("the")) == [9]
    assert not camp.search("the", where="id <> 9")


def test_filters_of_the_user_are_obeyed(camp):
    camp.add_rule(pin="tent", items=[9])
    assert 9 not in ids(camp.search("tent", where="id <> 9"))
    assert 9 not in ids(camp.search("tent -rope"))
    camp.add_rule(pin="zanzibar", items=[9])
    ranking = camp.search("zanzibar", where="id <> 9")
    assert not ranking
    assert any("No hits" in note for note in ranking.notes)


def test_buried_items_come_last(camp):
    before = ids(camp.search("tent"))
    camp.add_rule(bury="tent", items=before[:2])
    after = camp.search("tent", k=12)
    assert ids(after)[-2:] == before[:2]
    assert lines(after, len(after) - 1)["placed last for this query"] < 0
    check_sums(after)


def test_a_buried_item_that_is_no_hit_stays_none(camp):
    camp.add_rule(bury="gas stove", items=[12])
    assert 12 not in ids(camp.search("gas stove", k=12))


def test_the_empty_query_has_rules_too(camp):
    camp.add_rule(pin="", items=[12])
    ranking = camp.search("")
    assert ids(ranking)[0] == 12
    check_sums(ranking)


def test_a_pinned_item_is_no_weak_hit(camp):
    camp.add_rule(pin="tent", items=[9])
    ranking = camp.search("tent", weak=False)
    assert (ids(ranking)[0], ranking[0].match) == (9, "strong")
    assert ranking.total == len(ranking) == camp.search("tent", rules=False).total + 1
    camp.add_rule(pin="zanzibar", items=[9])
    pinned = camp.search("zanzibar", weak=False)
    assert (ids(pinned), pinned.total, pinned.no_hits) == ([9], 1, None)


CLIMBING = "climbing red green blue yellow white black"


@pytest.mark.parametrize(
    "rule",
    [
        {"pin": CLIMBING, "items": [12]},
        {"boost": "id <> 9", "by": 9},
        {"boost": "id = 9", "by": -9},
    ],
)
def test_rules_make_no_other_hit_a_better_or_worse_match(camp, rule):
    before = {hit.id: hit.match for hit in camp.search(CLIMBING)}
    assert before[9] == "strong"
    assert {"weak"} == {match for id_, match in before.items() if id_ != 9}
    camp.add_rule(**rule)
    after = camp.search(CLIMBING)
    assert after[0].id != 9
    assert {hit.id: hit.match for hit in after if hit.id != 12} == {
        id_: match for id_, match in before.items() if id_ != 12
    }


def test_an_order_by_a_column_is_obeyed(camp):
    camp.add_rule(pin="tent", items=[9])
    assert ids(camp.search("tent", sort="-id"))[0] == 9
    assert ids(camp.search("tent", sort="id"))[-1] == 9


def test_pages_of_hits_go_on_below_pinned_ones(camp):
    camp.add_rule(pin="tent", items=[9, 8])
    whole = ids(camp.search("tent", k=5))
    assert ids(camp.search("tent", k=2)) + ids(camp.search("tent", k=3, offset=2)) == whole


def test_pinned_items_have_exact_scores_where_others_are_estimates(tmp_path, monkeypatch):
    """As in a catalog of 100,000 items, whose keys are int8."""
    monkeypatch.setattr(dense, "MIN_QUANTIZED", 100)
    monkeypatch.setattr(quantized.QuantizedQuery, "min_candidates", 5)
    words = ["tent", "stove", "rope", "kettle", "lamp", "boots", "harness", "jacket"]
    rng = np.random.default_rng(0)
    titles = [" ".join(rng.choice(words, 3)) for _ in range(400)]
    items = pd.DataFrame({"id": range(400), "title": titles})
    with qkvsearch.build(tmp_path / "ws", items=items, encoder="corpus") as engine:
        assert isinstance(engine.models.dense_keys("lsa"), QuantizedKeys)
        far = [hit.id for hit in engine.search("tent rope", heads="lsa", k=400)][-10:]
        engine.add_rule(pin="tent rope", items=far)
        engine.add_rule(boost="id % 7 = 0", by=50)
        ranking = engine.search("tent rope", heads="lsa", k=20)
        assert ids(ranking)[:10] == far
        assert all(id_ % 7 == 0 for id_ in ids(ranking)[10:])
        check_sums(ranking)
        without_weak = engine.search("tent rope", heads="lsa", k=20, weak=False)
        assert ids(without_weak)[:10] == far
        check_sums(without_weak)


# --- boosts ---


def test_a_boost_adds_what_it_says(camp):
    before = {hit.id: hit.score for hit in camp.search("tent", k=12)}
    camp.add_rule(boost="stock = 1", by=0.5, name="in stock")
    after = camp.search("tent", k=12)
    assert {hit.id for hit in after} == set(before)
    for i, hit in enumerate(after):
        is_in_stock = hit.id % 2 == 0
        assert hit.score == pytest.approx(before[hit.id] + 0.5 * is_in_stock, abs=1e-5)
        assert lines(after, i).get("in stock") == (0.5 if is_in_stock else None)
    check_sums(after)


def test_a_boost_makes_no_item_a_hit(camp):
    before = camp.search("gas stove", k=12, facets="brand")
    camp.add_rule(boost="brand = 'Calder'", by=100)
    after = camp.search("gas stove", k=12, facets="brand")
    assert {hit.id for hit in after} == {hit.id for hit in before}
    assert after.facets == before.facets
    assert not camp.search("zanzibar")


def test_a_boost_without_a_name_has_its_condition_as_the_line(camp):
    camp.add_rule(boost="stock = 1", by=-1)
    camp.add_rule(boost="id < 4", by=0.25, name="new")
    ranking = camp.search("family tent", k=1)
    assert ranking[0].id == 2
    assert (lines(ranking)["stock = 1"], lines(ranking)["new"]) == (-1.0, 0.25)


def test_a_pin_is_before_any_boost(camp):
    camp.add_rule(boost="id = 5", by=1000)
    camp.add_rule(pin="stove", items=[9])
    assert ids(camp.search("stove"))[:2] == [9, 5]


def test_the_order_by_popularity_is_boosted_in_its_own_unit(camp):
    before = {hit.id: hit.score for hit in camp.search("", k=12)}
    camp.add_rule(boost="id = 12", by=2, name="new")
    ranking = camp.search("", k=12)
    deviation = np.std(list(before.values())) or 1.0
    score = next(hit.score for hit in ranking if hit.id == 12)
    assert score == pytest.approx(before[12] + 2 * deviation, rel=1e-4)


def test_recommendations_are_boosted_and_not_pinned(camp):
    before = {hit.id: hit.score for hit in camp.recommend(user=1, k=12)}
    camp.add_rule(boost="stock = 1", by=0.5, name="in stock")
    camp.add_rule(pin="", items=[1])
    after = camp.recommend(user=1, k=12)
    added = {hit.id: hit.score - before[hit.id] for hit in after}
    unit = added[next(id_ for id_ in added if id_ % 2 == 0)]
    assert unit > 0
    assert all(
        value == pytest.approx(unit if id_ % 2 == 0 else 0.0, abs=1e-5)
        for id_, value in added.items()
    )
    check_sums(after)
    best = next(i for i, hit in enumerate(after) if hit.id % 2 == 0)
    assert lines(after, best)["in stock"] == pytest.approx(unit, abs=1e-5)
    assert {hit.id: hit.score for hit in camp.recommend(user=1, k=12, rules=False)} == before


def test_the_entries_of_a_recommendation_name_the_boost(camp):
    camp.add_rule(boost="stock = 1", by=1, name="in stock")
    for hit in camp.recommend(user=1, k=12, explain=True):
        entries = [entry for entry in hit.because if entry["title"] == "in stock"]
        assert len(entries) == (hit.id % 2 == 0)
        assert sum(one["contribution"] for one in hit.because) == pytest.approx(hit.score, abs=1e-4)


@pytest.mark.parametrize("damping", [0, 0.5])
def test_recommendations_for_all_users_are_boosted_alike(camp, damping):
    camp.add_rule(boost="stock = 1", by=0.5)
    table = camp.recommend_all(k=3, damping=damping).to_frame()
    for user in range(3):
        one = camp.recommend(user=user, k=3, damping=damping)
        rows = table[table["user"] == user]
        assert rows["score"].tolist() == pytest.approx([hit.score for hit in one], abs=1e-5)
    plain = camp.recommend_all(k=3, damping=damping, rules=False).to_frame()
    assert plain["score"].tolist() != table["score"].tolist()


def test_items_by_text_alone_are_boosted(tmp_path):
    with qkvsearch.build(tmp_path / "ws", items=ITEMS, encoder="corpus") as engine:
        before = {hit.id: hit.score for hit in engine.recommend(likes=[1], k=11)}
        engine.add_rule(boost="id = 12", by=3)
        ranking = engine.recommend(likes=[1], k=11)
        assert ranking[0].id == 12
        assert ranking[0].score > before[12]
        check_sums(ranking)


# --- what is stored ---


def test_rules_are_numbered_and_no_number_is_given_again(camp):
    assert [row["number"] for row in camp.add_rule(pin="tent", items=["family tent"])] == [1]
    camp.add_rule(boost="stock = 1", by=0.5, name="in stock")
    assert camp.rules().to_records() == [
        {
            "number": 1,
            "kind": "pin",
            "query": "tent",
            "items": [2],
            "where": None,
            "by": None,
            "name": None,
            "problem": None,
        },
        {
            "number": 2,
            "kind": "boost",
            "query": None,
            "items": [],
            "where": "stock = 1",
            "by": 0.5,
            "name": "in stock",
            "problem": None,
        },
    ]
    camp.remove_rule(2)
    assert camp.add_rule(boost="stock = 1", by=1)[0]["number"] == 3
    with pytest.raises(UnknownIdError, match="no rule 2; there are 1, 3"):
        camp.remove_rule(2)


def test_rules_stay_whatever_becomes_of_the_builds(camp):
    camp.add_rule(pin="tent", items=[9])
    more = pd.DataFrame({"id": [90], "title": ["dome tent"], "stock": [1], "brand": ["Calder"]})
    camp.add(more)
    assert ids(camp.search("tent"))[0] == 9
    camp.record(1, 90)
    for change in (camp.learn, camp.compact, camp.rollback):
        change()
        assert ids(camp.search("tent"))[0] == 9
    path = camp.workspace.path
    qkvsearch.repair(path)
    with qkvsearch.build(path, items=ITEMS, encoder="corpus") as again:
        assert ids(again.search("tent"))[0] == 9


def test_a_rule_counts_at_once_for_who_has_the_workspace_open(camp):
    with Engine(camp.workspace.path) as other:
        before = ids(other.search("tent"))
        camp.add_rule(pin="tent", items=[9])
        assert ids(other.search("tent"))[0] == 9
        camp.remove_rule(1)
        assert ids(other.search("tent")) == before


def test_what_is_gone_is_said_and_skipped(camp):
    camp.add_rule(pin="tent", items=[9, 3])
    camp.add_rule(boost="stock = 1", by=100)
    camp.remove([9])
    ranking = camp.search("tent")
    assert ids(ranking)[0] == 3
    assert ranking.notes == ["Rule 1 is skipped in part: 9 is not in the catalog."]
    camp.remove([3])
    (note,) = camp.search("tent").notes
    assert note == "Rule 1 is skipped: 9, 3 are not in the catalog."
    assert not camp.search("stove").notes
    path = camp.workspace.path
    bare = ITEMS.drop(columns="stock")
    with qkvsearch.build(path, items=bare, interactions=LOG, encoder="corpus") as again:
        (note,) = again.search("stove").notes
        assert note.startswith("Rule 2 is skipped: its condition 'stock = 1': no such column")
        assert again.recommend(user=1).notes[0] == note
        problems = [row["problem"] for row in again.rules()]
        assert (problems[0], "no such column" in problems[1]) == (None, True)


def test_the_name_of_a_rule_is_one_line(camp):
    (row,) = camp.add_rule(boost="stock = 1", by=0.5, name=" in\n stock ")
    assert row["name"] == "in stock"
    assert "in stock" in lines(camp.search("family tent", k=1))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({}, "one of `pin`, `bury` and `boost`"),
        ({"pin": "tent", "bury": "tent", "items": [1]}, "one of `pin`, `bury` and `boost`"),
        ({"pin": "tent"}, "`pin`: name at least one item"),
        ({"pin": "tent", "items": [99]}, "99"),
        ({"pin": "tent", "items": [1], "by": 1.0}, "`by`"),
        ({"boost": "stock = 1", "items": [1], "by": 1.0}, "`items`"),
        ({"boost": "stock = 1"}, "`by` must be"),
        ({"boost": "stock = 1", "by": 0.0}, "`by` must be"),
        ({"boost": "stock = 1", "by": float("nan")}, "`by` must be"),
        ({"boost": "stock = 1", "by": 1001}, "`by` must be"),
        ({"boost": "stokc = 1", "by": 1.0}, "`boost` 'stokc = 1': no such column"),
        ({"boost": "stock = 1", "by": 1.0, "name": " "}, "`name`"),
    ],
)
def test_what_cannot_be_a_rule_is_refused(camp, rule, said):
    with pytest.raises(QkvError, match=said):
        camp.add_rule(**rule)
    assert not camp.rules()


def test_a_rule_that_another_one_has_or_contradicts_is_refused(camp):
    camp.add_rule(pin="tent", items=[1, 2])
    camp.add_rule(boost="stock = 1", by=1)
    for again in (
        {"pin": "TENT", "items": [2]},
        {"bury": "tent", "items": [1]},
        {"boost": "stock = 1", "by": 2},
    ):
        with pytest.raises(QkvError, match=r"rule \d .*remove it first"):
            camp.add_rule(**again)
    camp.add_rule(pin="tent", items=[3])
    assert ids(camp.search("tent"))[:3] == [1, 2, 3]


def test_damage_is_reported_and_repaired(camp):
    camp.add_rule(pin="tent", items=[9])
    path = camp.workspace.path
    file = path / rules_file.RULES
    file.write_text(file.read_text("utf-8").replace("tent", "rent"), "utf-8")
    with Engine(path) as other:
        with pytest.raises(DamagedError, match=r"rules\.json"):
            other.search("tent")
        assert other.search("tent", rules=False)
        with pytest.raises(DamagedError, match=r"rules\.json"):
            other.info(verify=True)
        with pytest.raises(DamagedError):
            other.add_rule(pin="tent", items=[9])
    assert "rules.damaged" in qkvsearch.repair(path).lost[0]
    with Engine(path) as other:
        assert other.search("tent")
        assert other.add_rule(pin="tent", items=[9])[0]["number"] == 1


def test_a_disk_that_cannot_be_written_leaves_the_rules_as_they_were(camp, monkeypatch):
    camp.add_rule(pin="tent", items=[9])

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(rules_file, "write_checksummed", full)
    with pytest.raises(WorkspaceError, match="the rules are as before"):
        camp.add_rule(pin="stove", items=[1])
    assert len(camp.rules()) == 1


def test_a_search_without_rules_reads_no_file(camp, monkeypatch):
    def read(_):
        raise AssertionError

    monkeypatch.setattr(rules_file.RulesFile, "read", read)
    assert camp.search("tent")
    assert camp.recommend(user=1)


# --- measurements ---

QUERIES, QRELS = {"q1": "tent", "q2": "stove"}, {"q1": {"9": 1}, "q2": {"5": 1}}


def test_judged_queries_count_rules_and_show_them_beside_none(camp):
    before = camp.evaluate_search(QUERIES, QRELS)
    assert "no rules" not in before.baselines
    camp.add_rule(pin="tent", items=[9])
    after = camp.evaluate_search(QUERIES, QRELS)
    assert after.metrics["mrr@10"] > before.metrics["mrr@10"]
    assert after.baselines["no rules"] == before.metrics
    assert after.baselines["lexical"] == before.baselines["lexical"]
    without = camp.evaluate_search(QUERIES, QRELS, rules=False)
    assert without.metrics == before.metrics
    assert "no rules" not in without.baselines


def test_made_queries_count_rules_and_say_so(camp):
    before = camp.evaluate_search()
    camp.add_rule(boost="stock = 1", by=1000)
    after = camp.evaluate_search()
    assert after.notes[0] == "1 rule of the owner counts."
    assert after.metrics["mrr@10"] < before.metrics["mrr@10"]
    assert after.baselines == before.baselines
    assert camp.evaluate_search(rules=False).metrics == before.metrics


def test_a_comparison_says_which_rule_moved_an_item(camp):
    camp.add_rule(boost="stock = 0", by=50, name="on order")
    camp.add_rule(pin="stove", items=[9])
    result = camp.compare(before_rules=False, queries=["tent", "stove"])
    tents, stoves = ({move.id: move.by for move in query.moves} for query in result.queries)
    assert tents[3].startswith("the owner's boost “on order”, which counts only now: +50")
    assert stoves[9] == "the owner's rule “pinned for this query”, which counts only now"
    assert [result.to_dict()[side]["rules"] for side in ("before", "after")] == [0, 2]
    back = camp.compare(before_rules=True, rules=False, queries=["stove"])
    assert "which no longer counts" in {move.id: move.by for move in back.queries[0].moves}[9]
    assert camp.compare(before_rules=True, heads="lexical", queries=["stove"]).kept == 1


def test_held_out_interactions_leave_boosts_out_and_say_so(camp):
    camp.add_rule(boost="stock = 1", by=0.5)
    assert "Left out: 1 owner's boost." in camp.evaluate_recommend(k=2).notes
