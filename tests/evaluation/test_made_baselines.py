"""Made queries beside the lexical head alone, and by the popularity of the item."""

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.evaluation.made_queries.kinds import make_queries
from qkvsearch.evaluation.made_queries.popularity import first_by_popularity
from qkvsearch.evaluation.made_queries.report import ask, evaluate_made_queries

COLOURS = ["Red", "Blue", "Grey", "Green"]
THINGS = ["tent", "kettle", "rope", "lamp", "stove"]


@pytest.fixture(scope="module")
def titles():
    """Twenty titles that share their words."""
    pairs = enumerate(product(COLOURS, THINGS))
    rows = [(n, f"{colour} {thing} number {n}") for n, (colour, thing) in pairs]
    return pd.DataFrame(rows, columns=["id", "title"])


@pytest.fixture(scope="module")
def with_log(titles, tmp_path_factory):
    """Item n was met by n users."""
    met = [(f"u{user}", item) for item in range(20) for user in range(item)]
    log = pd.DataFrame(met, columns=["user", "item"])
    path = tmp_path_factory.mktemp("made") / "ws"
    with qkvsearch.build(path, items=titles, interactions=log, encoder="corpus") as engine:
        yield engine


@pytest.fixture(scope="module")
def report(with_log):
    """By another head than the one beside it, so that the two differ."""
    return with_log.evaluate_search(heads="lsa")


def test_the_baseline_is_the_report_of_the_lexical_head(with_log, report):
    lexical = with_log.evaluate_search(heads="lexical")
    assert report.baselines["lexical"] == pytest.approx(lexical.metrics)
    for name, figures in report.kinds.items():
        assert figures.first_by_lexical == pytest.approx(lexical.kinds[name].first)
        assert report.to_dict()["kinds"][name]["first_by_lexical"] == figures.first_by_lexical


def test_every_query_of_the_mean_is_in_one_group_of_popularity(with_log, report):
    groups = report.first_by_popularity
    n_counted = sum(each.queries for each in report.kinds.values() if each.counts)
    assert len(groups) > 1
    assert sum(group.queries for group in groups) == n_counted
    assert all(a.high < b.low for a, b in pairwise(groups))
    for system, mean in (("qkvsearch", report.metrics), ("lexical", report.baselines["lexical"])):
        n_first = sum(group.queries * group.first[system] for group in groups)
        assert n_first / n_counted == pytest.approx(mean["first"])
    told = report.to_dict()["first_by_popularity"]
    assert [group["queries"] for group in told] == [group.queries for group in groups]


def test_groups_are_those_of_the_items(with_log, report):
    """Item n is in row n and was met by n users."""
    queries = make_queries(with_log.current_build, 0)
    counted = [each for each in queries if report.kinds[each.kind].counts]
    items = Counter(each.item for each in counted)
    for group in report.first_by_popularity:
        n_queries = sum(n for item, n in items.items() if group.low <= item <= group.high)
        assert group.queries == n_queries


def test_found_by_lexical_is_its_rank(with_log):
    """The lexical head is asked once, for both figures."""
    build = with_log.current_build
    outcomes = ask(build, make_queries(build, 0), ["contrastive"])
    missed = [each for each in outcomes if not each.is_first]
    assert missed
    for each in missed:
        assert ("lexical" in each.found_by) == (each.lexical_rank == 1)


def test_without_a_log_there_is_no_popularity(titles, tmp_path):
    with qkvsearch.build(tmp_path / "ws", items=titles, encoder="corpus") as engine:
        assert evaluate_made_queries(engine.current_build).first_by_popularity == []


def test_the_first_system_is_ours():
    popularity = np.repeat([1, 9], 10)
    is_first = {"qkvsearch": popularity == 9, "lexical": popularity == 1}
    rare, popular = first_by_popularity(popularity, is_first)
    assert (rare.first, popular.first) == (
        {"qkvsearch": 0.0, "lexical": 1.0},
        {"qkvsearch": 1.0, "lexical": 0.0},
    )
    assert rare.interval[0] == 0 < rare.interval[1] < 0.5 < popular.interval[0]
    assert first_by_popularity(np.array([], dtype=int), {}) == []
