"""How many hits a search has, in which order they are, and why there are none."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import QkvError
from qkvsearch.heads import dense
from qkvsearch.heads.quantized import QuantizedQuery
from qkvsearch.rank import search, text_search
from qkvsearch.scores import approximate
from qkvsearch.tables.samples import datasets_folder

KINDS = ["tent", "stove", "kettle", "rope", "lamp"]
ITEMS = pd.DataFrame(
    [
        {
            "id": number,
            "title": f"{size} {kind}",
            "description": f"A {kind} for {use}.",
            "brand": ["Calder", "Ostrava", None][number % 3],
            "price": None if number == 3 else 20 + 7 * number % 50,
        }
        for number, (kind, size, use) in enumerate(
            (kind, size, use)
            for kind in KINDS
            for size, use in [("Light", "long tours"), ("Winter", "cold nights"), ("Big", "camps")]
        )
    ]
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    with qkv.build(tmp_path_factory.mktemp("shop") / "ws", items=ITEMS, encoder="corpus") as engine:
        yield engine


def ids(ranking):
    return [hit.id for hit in ranking]


def test_a_word_that_nothing_knows_is_the_reason(shop):
    found = shop.search("xqzvw Blorpt", where="price < 0")
    assert found.no_hits.to_dict() == {"reason": "unknown_words", "words": ["xqzvw", "Blorpt"]}
    assert (found.total, found.total_weak) == (0, 0)


@pytest.mark.parametrize("query", ["tent", ""])
def test_a_condition_that_leaves_nothing_is_the_reason(shop, query):
    found = shop.search(query, where="price < 0")
    told = found.no_hits
    assert (told.reason, told.where) == ("filtered_out", "price < 0")
    assert told.total == shop.search(query).total > 0


def test_operators_are_a_reason_and_a_condition_beside_them_is_another(shop):
    told = shop.search("tent brand:Nobody").no_hits
    assert (told.reason, told.operators) == ("filtered_out", ["brand:Nobody"])
    assert told.total == shop.search("tent").total
    told = shop.search('"tent light"').no_hits
    assert told.operators == ['"tent light"']
    assert told.total == shop.search("tent light").total
    # Each of them alone leaves nothing as well.
    told = shop.search("tent brand:Nobody", where="price < 0").no_hits
    assert (told.operators, told.where) == (["brand:Nobody"], "price < 0")
    assert told.total == shop.search("tent").total


def test_what_nothing_answers_has_no_other_reason(shop, things):
    assert things.search("je ne sais pas quoi", weak=False).no_hits.reason == "not_answered"
    # Without the condition there is nothing either.
    filtered = things.search("je ne sais pas quoi", where="id = 'v001'")
    assert filtered.no_hits.reason == "not_answered"


def test_weak_hits_alone_are_hits_only_where_they_are_listed(shop):
    where = "title NOT LIKE '%tent%'"
    listed = shop.search("tent", where=where)
    assert listed
    assert {hit.match for hit in listed} == {"weak"}
    assert (listed.total, listed.no_hits) == (0, None)
    left_out = shop.search("tent", where=where, weak=False)
    assert not left_out
    assert left_out.total_weak == listed.total_weak > 0
    # The words alone have hits: the condition leaves only what they did not earn.
    assert left_out.no_hits.reason == "filtered_out"
    assert left_out.no_hits.total == 3
    assert any("`weak`" in note for note in left_out.notes)
    assert ids(shop.search("tent", where=where, weak=False, anyway=True))


@pytest.mark.parametrize(
    ("query", "reason"), [("the", "too_common"), ("?!", "no_words"), ("the of", "too_common")]
)
def test_a_query_that_says_nothing_is_told_apart(shop, query, reason):
    assert shop.search(query).no_hits.reason == reason


def test_items_without_texts_are_the_reason(tmp_path):
    log = pd.DataFrame({"user": [1, 1, 2, 2, 3], "item": [7, 8, 7, 9, 8]})
    with qkv.build(tmp_path / "log", interactions=log) as engine:
        assert engine.search("tent").no_hits.reason == "no_texts"
        assert engine.search("7").no_hits is None


def test_weak_hits_are_below_all_others_or_left_out(shop):
    as_ranked = shop.search("winter tent", k=99)
    grades = [hit.match for hit in as_ranked]
    assert 0 < grades.count("weak") < len(grades)
    below = shop.search("winter tent", k=99, weak=True)
    hits = [hit for hit in as_ranked if hit.match != "weak"]
    weak = [hit for hit in as_ranked if hit.match == "weak"]
    assert ids(below) == ids(hits) + ids(weak)
    assert [hit.rank for hit in below] == [*range(1, len(below) + 1)]
    assert ids(shop.search("winter tent", k=99, weak=False)) == ids(hits)
    assert (below.total, below.total_weak) == (len(hits), len(weak))
    # The weight of a hit does not depend on what else is listed.
    weights = {hit.id: hit.weight for hit in as_ranked}
    assert {hit.id: hit.weight for hit in below} == weights
    across = shop.search("winter tent", k=2, offset=len(hits) - 1, weak=True)
    assert ids(across) == ids(below)[len(hits) - 1 : len(hits) + 1]


def test_a_column_puts_all_hits_in_order_with_empty_cells_last(shop):
    prices = dict(zip(ITEMS["id"], ITEMS["price"], strict=True))
    hits = {hit.id for hit in shop.search("light stove rope", k=99, weak=False)}
    rising = ids(shop.search("light stove rope", k=99, sort="price"))
    assert set(rising) == hits
    assert 3 in hits
    assert rising[-1] == 3
    known = [prices[id_] for id_ in rising[:-1]]
    assert known == sorted(known)
    falling = shop.search("light stove rope", k=2, sort="-price")
    assert ids(falling) == [*rising[-2::-1], 3][:2]
    with_weak = shop.search("light stove rope", k=99, sort="price", weak=True)
    assert ids(with_weak)[: len(hits)] == rising
    weak = [prices[id_] for id_ in ids(with_weak)[len(hits) :]]
    assert weak == sorted(weak)
    with pytest.raises(QkvError, match=r"`sort`: no column 'prise'; did you mean price"):
        shop.search("xqzvw", sort="prise")
    assert (
        "`sort`: there are no interactions with these items."
        in shop.search("tent", sort="users").notes
    )


def test_one_hit_of_each_value_is_one_in_the_total(shop):
    asked = {"distinct": "brand", "k": 99}
    found = shop.search("winter", weak=True, **asked)
    assert len(found) == found.total + found.total_weak
    brands = [ITEMS["brand"][id_] for id_ in ids(found)]
    named = [brand for brand in brands if brand is not None]
    assert len(named) == len(set(named))
    assert len(shop.search("winter", weak=False, **asked)) == found.total


def test_a_page_beyond_the_last_hit_has_hits_before_it(shop):
    assert shop.search("tent", offset=99).no_hits is None
    assert shop.search("tent", k=0).no_hits is None


def test_no_count_reads_what_a_search_did_not_ask(shop, monkeypatch):
    """A search in Python pays for no total."""

    def refused(*_):
        raise AssertionError

    monkeypatch.setattr(text_search, "weak_items", refused)
    found = shop.search("tent")
    assert found
    with pytest.raises(AssertionError):
        _ = found.total


def test_the_weak_items_of_all_are_those_whose_grade_is_weak(videos):
    queries = ["river bank", "guitar spaceship", "walking a dog in the early light", "bread"]
    for query in [*queries, "v018 guitar spaceship"]:
        found = videos.search(query, k=999)
        weak = {hit.id for hit in found if hit.match == "weak"}
        assert {*videos.catalog.names(np.flatnonzero(found.found.weak))[0]} == weak


@pytest.mark.slow
def test_estimates_count_as_many_hits_as_exact_scores(tmp_path, monkeypatch):
    """A pretrained head tells which items are near, and few of them are candidates."""
    pytest.importorskip("wordllama", reason="needs qkvsearch[encoders]")
    data = pd.read_csv(datasets_folder() / "videos.csv")
    with qkv.build(tmp_path / "exact", items=data, encoder="static") as exact:
        monkeypatch.setattr(dense, "MIN_QUANTIZED", 1)
        monkeypatch.setattr(QuantizedQuery, "min_candidates", 1)
        monkeypatch.setattr(approximate, "SPARE", 1)
        monkeypatch.setattr(text_search, "DEPTH", 1)
        monkeypatch.setattr(search, "DEPTH", 1)
        with qkv.build(tmp_path / "int8", items=data, encoder="static") as estimated:
            for query in ("instrument", "boat", "baking", "woodwork", "animals in snow"):
                expected = exact.search(query, weak=False)
                found = estimated.search(query, weak=False)
                # Which items are above the mean, and so weak at all, is an estimate.
                assert found.total == expected.total
                assert ids(found) == ids(expected)
                scores = [hit.score for hit in expected]
                assert [hit.score for hit in found] == pytest.approx(scores, abs=0.05)
