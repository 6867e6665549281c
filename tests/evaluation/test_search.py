"""Judging a search: what is averaged, what is missing, what is asked how deep."""

import pytest

from qkvsearch.errors import DataError
from qkvsearch.evaluation.search_protocol import evaluate_search
from qkvsearch.tables.ids import Ids

FOUND = {"first": ["a", "b"], "second": ["x", "a"], "nothing": [], "spare": ["a"]}
QUERIES = {"q1": "first", "q2": "second", "q3": "nothing", "q4": "spare"}
JUDGEMENTS = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1, "gone": 2}}


def search(text, k):
    return FOUND[text][:k]


def test_averages_are_over_the_judged_queries_and_no_hits_count_0():
    found = evaluate_search(search, QUERIES, JUDGEMENTS)
    assert found.metrics["mrr@10"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert found.metrics["recall@100"] == pytest.approx(2 / 3)
    assert found.facts["queries"] == 3
    assert found.facts["queries_without_hits"] == 1
    assert found.facts["queries_without_judgements"] == ["q4"]


def test_judged_items_that_cannot_be_found_are_listed_and_count_as_missed():
    found = evaluate_search(search, QUERIES, JUDGEMENTS, catalog=Ids(["a", "b", "x"]))
    assert found.facts["items_not_in_catalog"] == ["gone"]
    assert found.metrics == evaluate_search(search, QUERIES, JUDGEMENTS).metrics


def test_a_judgement_of_an_unknown_query_is_refused_with_near_matches():
    with pytest.raises(DataError, match="name query 'q11', which has no text; did you mean q1"):
        evaluate_search(search, QUERIES, {"q11": {"a": 1}})


def test_without_any_judgement_there_is_nothing_to_average():
    with pytest.raises(DataError, match="nothing to average"):
        evaluate_search(search, QUERIES, {})


def test_baselines_are_judged_alike_and_whole_numbers_are_ids():
    judged = evaluate_search(
        lambda text, k: [7, 8],
        {"1": "x"},
        {"1": {"7": 1}},
        baselines={"worse": lambda text, k: [8, 7]},
    )
    assert judged.metrics["mrr@10"] == 1
    assert judged.baselines["worse"]["mrr@10"] == 0.5
    assert judged.to_dict()["baselines"] == judged.baselines


def test_every_search_is_asked_for_100_hits_and_progress_is_told():
    asked, told = [], []
    evaluate_search(
        lambda text, k: asked.append(k) or [],
        QUERIES,
        JUDGEMENTS,
        progress=lambda *where: told.append(where),
    )
    assert set(asked) == {100}
    assert told[-1] == ("asking qkvsearch", 3, 3)
