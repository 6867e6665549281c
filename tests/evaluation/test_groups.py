"""Quality by groups: what is in a group, and that groups add up to the whole."""

import itertools

import numpy as np
import pytest

from qkvsearch.evaluation.groups import groups_of
from qkvsearch.evaluation.held_out import HeldOutUsers
from qkvsearch.evaluation.match_grades import by_grade
from qkvsearch.evaluation.recommend_groups import RecommendGroups
from qkvsearch.evaluation.recommend_protocol import evaluate_recommend
from qkvsearch.evaluation.splits import split
from qkvsearch.rank.ranking import Hit


@pytest.fixture(scope="module")
def held_out(log):
    return HeldOutUsers.of(split(log, "random"), (1, 5))


@pytest.fixture(scope="module")
def evaluation(log_with_new_items):
    return evaluate_recommend(log_with_new_items, k=5)


def test_equal_numbers_are_together_and_no_group_is_empty():
    numbers = np.array([1] * 50 + [2, 3, 4])
    groups = groups_of(numbers, np.ones(53), 5)
    assert set(groups[:50].tolist()) == {0}
    assert sorted(set(groups.tolist())) == [*range(max(groups) + 1)]
    assert (np.diff(groups[np.argsort(numbers, kind="stable")]) >= 0).all()


def test_users_of_all_histories_add_up_to_the_mean(evaluation):
    groups = evaluation.by_history
    assert len(groups) == 5
    assert sum(group.users for group in groups) == evaluation.facts["users"]
    assert all(before.high < after.low for before, after in itertools.pairwise(groups))
    for system in ("qkvsearch", "collaborative", "popularity", "ease"):
        total = sum(group.users * group.values[system] for group in groups)
        metrics = evaluation.systems()[system]
        assert total / evaluation.facts["users"] == pytest.approx(metrics["ndcg@5"])
    for group in groups:
        assert group.interval[0] <= group.values["qkvsearch"] <= group.interval[1]


def test_items_of_all_popularities_add_up(evaluation):
    groups = evaluation.by_popularity
    assert sum(group.items for group in groups) == evaluation.facts["items"]
    assert sum(group.interactions for group in groups) == pytest.approx(1)
    for system in groups[0].recommended:
        assert sum(group.recommended[system] for group in groups) == pytest.approx(1)
    assert groups[0].low == groups[0].high == 0, "cold items are a group of their own"
    assert groups[0].interactions == 0


def test_the_most_popular_items_are_all_that_popularity_recommends(evaluation):
    groups = evaluation.by_popularity
    assert groups[0].recommended["popularity"] == groups[0].values["popularity"] == 0
    assert groups[-1].recommended["popularity"] > groups[-1].recommended["qkvsearch"]


def test_who_recommends_what_is_held_out_finds_all_and_others_nothing(held_out):
    groups = RecommendGroups(held_out, 60, 0)
    right = [[*items] for items in held_out.relevant]
    every_item = set(range(60))
    wrong = [sorted(every_item - {*items}) for items in held_out.relevant]
    groups.add("right", right, np.ones(len(right)))
    groups.add("wrong", wrong, np.zeros(len(right)))
    found = groups.by_popularity()
    assert {group.values["right"] for group in found} == {1.0}
    assert {group.values["wrong"] for group in found} == {0.0}
    assert sum(group.held_out for group in found) == sum(map(len, held_out.relevant))
    assert groups.by_history()[0].interval == (1, 1)


def test_json_has_the_groups(evaluation):
    found = evaluation.to_dict()
    assert found["by_history"][0].keys() == {"items", "users", "ndcg@5", "interval"}
    assert found["by_popularity"][0].keys() == {
        "users", "items", "interactions", "held_out", "found@5", "interval", "recommended",
    }  # fmt: skip


# --- match grades ---


def hits(*matches):
    return [Hit(n, f"i{n}", "", 1.0, 0.1, match=match) for n, match in enumerate(matches, 1)]


def test_right_hits_are_counted_by_grade_among_the_first_ten():
    rankings = [hits("strong", "good", "weak"), hits("good", *["weak"] * 10)]
    judged = [{"i1": 1, "i2": 0}, {"i1": 2, "i3": 1, "i11": 1}]
    found = by_grade(rankings, judged)
    assert [found[name].hits for name in ("strong", "good", "weak")] == [1, 2, 10]
    assert [found[name].right for name in ("strong", "good", "weak")] == [1.0, 0.5, 0.1]
    low, high = found["good"].interval
    assert low <= 0.5 <= high


def test_a_grade_without_hits_has_no_share():
    found = by_grade([hits("good")], [{"i1": 1}])
    assert (found["strong"].hits, found["strong"].right, found["strong"].interval) == (
        0,
        None,
        None,
    )


def test_judged_queries_have_intervals_and_grades(shop):
    queries = {"a": "red apple", "none": "unjudged", "b": "claw hammer"}
    found = shop.evaluate_search(queries, {"a": {"1": 1}, "b": {"4": 1}})
    low, high = found.intervals["mrr@10"]
    assert low <= found.metrics["mrr@10"] <= high
    assert low < high
    assert found.match_grades["strong"].hits == 2, "the unjudged query is not counted"
    assert found.match_grades["strong"].right == 0.5
    assert found.to_dict()["match_grades"]["strong"]["right"] == 0.5
