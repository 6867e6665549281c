"""Metrics against trec_eval's own figures, against their definitions, and at their ends."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.metrics.pairwise import cosine_similarity

from qkvsearch.evaluation.metrics import (
    average_precision,
    coverage,
    diversity,
    hit,
    ndcg,
    novelty,
    precision,
    recall,
    reciprocal_rank,
)
from qkvsearch.evaluation.search_protocol import evaluate_search

ITEMS = [f"v{number}" for number in range(150)]
grades = st.dictionaries(st.sampled_from(ITEMS[:30]), st.integers(0, 4), min_size=1)
rankings = st.lists(st.sampled_from(ITEMS[:40]), unique=True)


@pytest.fixture(scope="module")
def ir_measures():
    return pytest.importorskip("ir_measures", reason="the published figures need ir-measures")


def published(ir_measures, rankings, judgements):
    """nDCG@10, RR@10 and R@100 by trec_eval, on scores that keep the order of the rankings."""
    wanted = [ir_measures.nDCG @ 10, ir_measures.RR @ 10, ir_measures.R @ 100]
    run = {
        query: {item: float(-rank) for rank, item in enumerate(ranked)}
        for query, ranked in rankings.items()
    }
    figures = ir_measures.calc_aggregate(wanted, judgements, run)
    return dict(
        zip(("ndcg@10", "mrr@10", "recall@100"), (figures[name] for name in wanted), strict=True)
    )


@settings(max_examples=60)
@given(asked=st.dictionaries(st.sampled_from("abcdef"), st.tuples(rankings, grades), min_size=1))
def test_search_figures_are_those_of_trec_eval(ir_measures, asked):
    found = {query: ranked for query, (ranked, _) in asked.items()}
    judgements = {query: judged for query, (_, judged) in asked.items()}
    ours = evaluate_search(
        lambda text, k: found[text][:k], {query: query for query in asked}, judgements
    )
    expected = published(ir_measures, found, judgements)
    assert ours.metrics == pytest.approx(expected, abs=1e-9)


def test_figures_of_long_rankings_are_those_of_trec_eval(ir_measures):
    rng = np.random.default_rng(0)
    found = {f"q{i}": rng.permutation(ITEMS).tolist() for i in range(40)}
    judgements = {
        query: {str(item): int(rng.integers(0, 4)) for item in rng.choice(ITEMS, 60, replace=False)}
        for query in found
    }
    ours = evaluate_search(lambda text, k: found[text], {name: name for name in found}, judgements)
    assert ours.metrics == pytest.approx(published(ir_measures, found, judgements), abs=1e-9)
    assert 0 < ours.metrics["recall@100"] < 1


@settings(max_examples=40)
@given(asked=st.lists(st.tuples(rankings, grades), min_size=1, max_size=6), k=st.integers(1, 25))
def test_every_figure_is_that_of_ir_measures_at_any_k(ir_measures, asked, k):
    ours = {
        "nDCG": ndcg,
        "R": recall,
        "P": precision,
        "Success": hit,
        "RR": reciprocal_rank,
        "AP": average_precision,
    }
    wanted = {name: getattr(ir_measures, name) @ k for name in ours}
    judgements = {f"q{i}": judged for i, (_, judged) in enumerate(asked)}
    run = {
        f"q{i}": {item: float(-rank) for rank, item in enumerate(ranked)}
        for i, (ranked, _) in enumerate(asked)
    }
    published = {
        (figure.query_id, figure.measure): figure.value
        for figure in ir_measures.iter_calc(wanted.values(), judgements, run)
    }
    for i, (ranked, judged) in enumerate(asked):
        for name, function in ours.items():
            # Who has no ranking at all is missing there, and 0 here.
            expected = published.get((f"q{i}", wanted[name]), 0.0)
            assert function(ranked, judged, k) == pytest.approx(expected, abs=1e-9), name


def test_no_order_beats_the_ideal_one():
    judged = {"a": 3, "b": 1, "c": 2}
    figures = {order: ndcg(order, judged, 3) for order in itertools.permutations("abcx", 3)}
    assert max(figures, key=figures.get) == ("a", "c", "b")
    assert figures["a", "c", "b"] == 1


def test_perfect_rankings_give_1_and_worst_ones_0():
    judged = {"a": 2, "b": 1, "z": 0}
    for metric in (ndcg, reciprocal_rank, recall, precision, hit, average_precision):
        assert metric(["a", "b", "x"], judged, 2) == 1
        assert metric(["x", "y", "z", "a"], judged, 3) == 0
        assert metric([], judged, 3) == 0
        assert metric(["a"], {}, 3) == 0
        assert metric(["z"], {"z": 0}, 3) == 0


def test_gains_are_linear_and_spam_gains_nothing():
    assert ndcg(["b", "a"], {"a": 2, "b": 1}) == pytest.approx(
        (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    )
    assert ndcg(["spam", "a"], {"a": 1, "spam": -2}) == ndcg(["x", "a"], {"a": 1})


def test_coverage_counts_distinct_items():
    assert coverage([[0, 1], [1, 2]], n_items=6) == 0.5
    assert coverage([], n_items=6) == 0
    assert coverage([range(6)], n_items=6) == 1


def test_novelty_is_in_bits_of_how_many_met_an_item():
    shares = {"all": 1, "half": 1 / 2, "eighth": 1 / 8}
    assert novelty(["all"], shares) == 0
    assert novelty(["half", "eighth"], shares) == 2
    assert novelty(["half", "eighth"], shares, k=1) == 1
    assert novelty([], shares) == 0


def test_ten_items_count_unless_told():
    ranked, grades, shares = list(range(12)), {9: 1, 10: 1}, [1.0] * 9 + [0.5, 0.5, 0.5]
    for metric in (ndcg, reciprocal_rank, recall, precision, hit, average_precision):
        assert metric(ranked, grades) == metric(ranked, grades, k=10) > metric(ranked, grades, k=9)
    assert novelty(ranked, shares) == 0.1
    alike = csr_matrix([[1, 0]] * 9 + [[0, 1]] * 3)
    assert diversity([ranked], alike) == diversity([ranked[:10]], alike, k=99)


def test_diversity_of_lists_by_hand():
    # Items 0 and 1 share both users, 2 has another; 3 nobody.
    met_by = csr_matrix([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    lists = [[0, 1], [0, 2], [0, 1, 2], [3, 0], [2], []]
    assert diversity(lists, met_by) == pytest.approx([0, 1, 2 / 3, 1, 0, 0])
    assert diversity([[0, 1, 2]], met_by, k=2) == pytest.approx([0])
    assert len(diversity([], met_by)) == 0


def test_diversity_is_by_the_cosines_of_the_pairs(scattered):
    rng = np.random.default_rng(4)
    rankings = [rng.permutation(40)[: rng.integers(41)].tolist() for _ in range(30)]
    alike = cosine_similarity(scattered.astype(np.float64))
    found = diversity(rankings, scattered, k=25)
    for ranked, value in zip(rankings, found, strict=True):
        pairs = list(itertools.combinations(ranked[:25], 2))
        expected = 1 - np.mean([alike[pair] for pair in pairs]) if pairs else 0
        assert value == pytest.approx(expected, abs=1e-12)
