"""Judging recommendations: every figure is what it says, and patterns are found."""

import sys
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from threadpoolctl import threadpool_limits

from qkvsearch.errors import DataError, QkvError
from qkvsearch.evaluation import held_out, recommend_protocol, systems
from qkvsearch.evaluation.metrics import diversity, ndcg, recall, reciprocal_rank
from qkvsearch.evaluation.recommend_protocol import evaluate_recommend, rating_errors
from qkvsearch.evaluation.results import Difference, Evaluation
from qkvsearch.evaluation.splits import split
from qkvsearch.tables.ids import Ids
from qkvsearch.tables.interactions import Interactions
from tests.evaluation.parts import pairs, protocols

RANKED = {
    f"{name}@10"
    for name in (
        "ndcg", "recall", "precision", "hit_rate", "mrr", "map", "novelty", "diversity", "coverage",
    )
}  # fmt: skip


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="training needs torch")


@pytest.fixture(scope="module")
def evaluated(log):
    """The evaluation of the log with options, each computed once, on two threads."""

    @cache
    def once(protocol="random", **options):
        with threadpool_limits(2):
            return evaluate_recommend(log, protocol, **options)

    return once


# --- figures ---


@protocols
def test_a_pattern_is_found_that_popularity_cannot_see(evaluated, protocol):
    found = evaluated(protocol)
    popular, biases = found.baselines["popularity"], found.baselines["biases"]
    for name in ("ndcg@10", "recall@10", "mrr@10", "coverage@10"):
        assert found.metrics[name] > popular[name], name
    for name in ("rmse", "mae"):
        assert found.metrics[name] < biases[name], name


def test_who_met_an_item_is_its_audience_whatever_they_thought_of_it(log, monkeypatch):
    """Diversity is by the audiences; a bad rating weighs nothing in what is learned."""
    train = split(log, "random").train
    met = np.zeros(train.matrix().shape)
    met[train.users, train.items] = 1
    seen = []

    def spied(rankings, audiences, k):
        seen.append(audiences.toarray())
        return diversity(rankings, audiences, k)

    monkeypatch.setattr(recommend_protocol.metrics, "diversity", spied)
    evaluate_recommend(log, "random")
    assert seen
    assert all(np.array_equal(audiences, met.T) for audiences in seen)


def by_definition(scores, parts, k):
    """nDCG, recall and MRR with one sort of the whole catalog for each user."""
    met = pairs(parts.history)
    figures = []
    for user in sorted(set(parts.test.users.tolist())):
        own = (parts.test.users == user) & (parts.test.ratings > 3)
        relevant = dict.fromkeys(parts.test.items[own].tolist(), 1)
        if relevant:
            ranked = [
                item
                for item in sorted(range(len(scores[user])), key=lambda i: (-scores[user][i], i))
                if (user, item) not in met
            ]
            figures.append([f(ranked, relevant, k) for f in (ndcg, recall, reciprocal_rank)])
    return np.mean(figures, axis=0)


@protocols
def test_popularity_ranks_the_whole_catalog_but_for_the_history(log, evaluated, protocol):
    parts = split(log, protocol)
    height = (parts.train.ratings - 1) / 4
    likes = np.where(height >= 0.5, height**2, 0)
    counts = np.bincount(parts.train.items, likes, minlength=len(log.item_ids))
    expected = by_definition(np.tile(counts.astype(np.float32), (len(log.user_ids), 1)), parts, 10)
    popular = evaluated(protocol).baselines["popularity"]
    figures = [popular[f"{name}@10"] for name in ("ndcg", "recall", "mrr")]
    assert figures == pytest.approx(expected)


def test_blocks_of_users_change_nothing(log, evaluated, monkeypatch):
    monkeypatch.setattr(held_out, "MAX_SCORES", 7 * len(log.item_ids))
    assert evaluate_recommend(log).to_dict() == evaluated().to_dict()


@protocols
def test_one_and_two_threads_give_the_same_figures_and_leave_the_log(log, evaluated, protocol):
    before = [array.copy() for array in (log.users, log.items, log.ratings, log.times)]
    with threadpool_limits(1):
        assert evaluate_recommend(log, protocol).to_dict() == evaluated(protocol).to_dict()
    after = (log.users, log.items, log.ratings, log.times)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert evaluate_recommend(log, protocol, random_state=1).metrics != evaluated(protocol).metrics


def test_only_what_was_liked_counts_as_relevant(log, evaluated):
    plain = replace(log, ratings=None)
    liked, any_met = evaluated(), evaluate_recommend(plain)
    assert liked.facts["test"] == any_met.facts["test"]
    assert liked.facts["users"] <= any_met.facts["users"]
    assert set(any_met.metrics) == RANKED
    assert set(any_met.baselines) == {"popularity", "item-knn", "ease"}
    parts = split(log, "random")
    relevant = held_out.relevant_items(parts.test, (1, 5))
    assert sum(map(len, relevant.values())) == (parts.test.ratings > 3).sum()


def test_one_rating_for_everything_tells_no_likes_apart(log):
    same = replace(log, ratings=np.full(len(log), 5, np.float32))
    found, plain = evaluate_recommend(same), evaluate_recommend(replace(log, ratings=None))
    assert found.metrics["ndcg@10"] == plain.metrics["ndcg@10"]
    assert found.metrics["rmse"] == pytest.approx(0, abs=1e-6)


def test_who_likes_nothing_is_recommended_nothing_as_by_the_engine():
    rows = [(user, item, 5) for user in "abc" for item in range(6)]
    rows += [("grump", item, 1) for item in range(4)] + [("grump", 4, 5)]
    users, items, ratings = zip(*rows, strict=True)
    log = Interactions.from_columns(users, items, ratings=ratings, times=range(len(rows)))
    found = evaluate_recommend(log, "leave-last-out", k=6)
    assert found.facts["users"] == 4
    assert found.metrics["recall@6"] == pytest.approx(3 / 4)
    assert found.baselines["popularity"]["recall@6"] == 1


def test_the_facts_say_what_the_figures_rest_on(log, evaluated):
    facts = evaluated("time").facts
    parts = split(log, "time")
    assert (facts["train"], facts["test"]) == (len(parts.train), len(parts.test))
    assert facts["items"] == 60
    assert facts["users_without_history"] == parts.newcomers


def test_k_may_exceed_the_catalog(log):
    found = evaluate_recommend(log, k=1000)
    assert found.metrics["recall@1000"] == 1
    assert found.baselines["popularity"]["recall@1000"] == 1


def test_only_dislikes_are_nothing_to_judge_by():
    log = Interactions.from_columns(
        [1, 1, 2, 2], [1, 2, 1, 2], ratings=[5, 1, 5, 1], times=[1, 2, 1, 2]
    )
    with pytest.raises(DataError, match="no rating held out is in the upper half"):
        evaluate_recommend(log, "leave-last-out")


def test_every_stage_is_told_to_its_end(log, keys):
    last = {}
    note = lambda stage, done, total: last.update({stage: (done, total)})  # noqa: E731
    evaluate_recommend(log, keys=keys[:60], progress=note)
    assert "placing items by their text" in last
    assert [stage for stage, (done, total) in last.items() if done != total] == []


# --- samples of users ---


def test_of_many_users_a_sample_is_judged_and_that_is_said(evaluated):
    every, some = evaluated(users=0), evaluated(users=30)
    assert (some.facts["users"], some.facts["eligible_users"]) == (30, every.facts["users"])
    assert every.facts["users"] == every.facts["eligible_users"] > 80
    assert some.facts["train"] == every.facts["train"]
    (note,) = some.notes
    assert f"30 of {every.facts['users']} users, drawn at random (`users`)" in note
    assert every.notes == []
    (low, high), (lowest, highest) = (x.intervals["ndcg@10"] for x in (every, some))
    assert high - low < highest - lowest
    assert some.metrics["rmse"] == every.metrics["rmse"]  # of all ratings held out


def test_a_sample_is_of_the_same_users_for_the_same_seed(log):
    parts = split(log, "random")
    every = held_out.HeldOutUsers.of(parts, (1, 5))
    one, same, other = (held_out.HeldOutUsers.of(parts, (1, 5), 30, seed) for seed in (0, 0, 1))
    assert one.users.tolist() == same.users.tolist() != other.users.tolist()
    assert one.users.tolist() == sorted(set(one.users.tolist()) & set(every.users.tolist()))
    place = {user: i for i, user in enumerate(every.users.tolist())}
    rows = [place[user] for user in one.users.tolist()]
    assert one.relevant == [every.relevant[row] for row in rows]
    assert (one.liked != every.liked[rows]).nnz == 0
    assert (one.seen != every.seen[rows]).nnz == 0
    assert (one.train != every.train).nnz == 0


def test_no_more_users_than_asked_for_are_judged_as_all_are(log, evaluated):
    n = evaluated(users=0).facts["users"]
    assert evaluate_recommend(log, users=n).to_dict() == evaluated(users=0).to_dict()
    assert evaluate_recommend(log, users=n - 1).facts["users"] == n - 1


# --- intervals and baselines ---


def test_intervals_hold_the_figures_and_are_narrower_for_more_users(evaluated):
    found = evaluated()
    assert set(found.intervals) == set(found.metrics) - {"coverage@10"}
    assert all(low <= found.metrics[name] <= high for name, (low, high) in found.intervals.items())
    low, high = found.intervals["ndcg@10"]
    assert 0.01 < high - low < 0.2


def test_differences_are_to_the_best_baseline_of_each_figure(evaluated):
    found = evaluated()
    for name, difference in found.differences.items():
        others = {s: m[name] for s, m in found.baselines.items() if name in m}
        best = (min if name in ("rmse", "mae") else max)(others, key=others.get)
        assert others[difference.baseline] == others[best]
        assert difference.difference == pytest.approx(found.metrics[name] - others[best])
        assert difference.low <= difference.difference <= difference.high
    assert found.differences["rmse"].baseline == "biases"


def test_errors_are_those_of_all_ratings_not_of_users(log, evaluated):
    found, parts = evaluated(), split(log, "random").rated()
    errors = rating_errors(parts, 0, lambda stage, done, total: None)
    for system, figures in (("qkvsearch", found.metrics), ("biases", found.baselines["biases"])):
        predicted = parts.test.ratings + errors[system]
        assert figures["rmse"] == pytest.approx(
            root_mean_squared_error(parts.test.ratings, predicted)
        )
        assert figures["mae"] == pytest.approx(mean_absolute_error(parts.test.ratings, predicted))


def test_what_is_too_much_for_a_baseline_is_left_out_and_said(log, monkeypatch):
    monkeypatch.setattr(systems, "MAX_EASE_ITEMS", 20)
    found = evaluate_recommend(log)
    assert set(found.baselines) == {"popularity", "item-knn", "ease", "biases"}
    assert list(found.facts["left_out"]) == ["ease"]
    assert found.facts["left_out"]["ease"].startswith("40 of 60 items, all but the 20 that most")
    assert found.notes == [f"Left out of ease: {found.facts['left_out']['ease']}."]


def test_settings_are_those_that_are_judged(log, evaluated):
    poor = evaluate_recommend(log, settings={"n_components": 1, "max_iter": 1})
    poor, usual = (found.heads["collaborative"] for found in (poor, evaluated()))
    assert poor["ndcg@10"] < usual["ndcg@10"]


@pytest.mark.parametrize("protocol", ["random", "leave-last-out", "strong"])
def test_users_with_no_item_one_or_all_are_judged_or_left_out(protocol):
    users = [*"aaaa", *"bbbb", *"cc", "d"]
    items = [*range(4), *range(4), 0, 1, 0]
    log = Interactions.from_columns(users, items, times=range(len(users)))
    log = replace(log, user_ids=Ids([*"abcd", "nobody"]))
    found = evaluate_recommend(log, protocol, k=3)
    assert 1 <= found.facts["users"] <= 3
    assert all(np.isfinite(value) for value in found.metrics.values())


# --- what comes next ---


@needs_torch
def test_what_comes_next_for_certain_is_found_by_it_alone(quick):
    """Everyone goes round: the last step follows from the one before it, by order alone."""
    users, days = np.divmod(np.arange(40 * 9), 9)
    log = Interactions.from_columns(users, (5 * users + days) % 12, times=days)
    found = evaluate_recommend(log, "leave-last-out", k=1, next_item=True)
    assert found.baselines["next-item"]["hit_rate@1"] == 1
    assert found.baselines["popularity"]["hit_rate@1"] < 0.5


@pytest.mark.parametrize("protocol", ["random", "strong"])
def test_what_comes_next_is_not_judged_by_what_came_before(log, protocol):
    with pytest.raises(QkvError, match=f"{protocol} holds out.*use leave-last-out or time"):
        evaluate_recommend(log, protocol, next_item=True)


def test_without_pytorch_it_is_said_before_any_work(log, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    steps = []
    with pytest.raises(QkvError, match="needs PyTorch"):
        evaluate_recommend(log, "time", next_item=True, progress=lambda *step: steps.append(step))
    assert steps == []


# --- sentences ---


@pytest.mark.parametrize(
    ("name", "difference", "said"),
    [
        ("ndcg@10", Difference("ease", -0.02, -0.03, -0.01), "ease is ahead of qkvsearch by 0.02"),
        ("ndcg@10", Difference("ease", 0.02, 0.01, 0.03), "qkvsearch is ahead of ease by 0.0200"),
        ("ndcg@10", Difference("mine", 0.0, 0.0, 0.0), "qkvsearch and mine are equal"),
        ("rmse", Difference("biases", -0.02, -0.03, -0.01), "qkvsearch is ahead of biases"),
        (
            "ndcg@10",
            Difference("ease", -0.02, -0.05, 0.01),
            "by 0.0200, which could be chance (95% interval -0.0100 to 0.0500)",
        ),
    ],
)
def test_a_sentence_says_who_is_ahead(name, difference, said):
    heads = {"collaborative": {name: 0.4}, "neighbours": {name: 0.6}}
    found = Evaluation("random", {name: 0.5}, differences={name: difference}, heads=heads)
    assert said in found.verdict(name)
    assert found.verdict("recall@10") == found.advice("recall@10") == ""
    if name == "ndcg@10" and difference.difference < 0:
        assert "tune searches" in found.advice(name)
        assert "recommend --heads neighbours reaches 0.6000 alone." in found.advice(name)
