"""Whether a history tells less than single likes mostly do: the level, and what is said of it."""

import numpy as np
import pytest

from qkvsearch.models import strength
from qkvsearch.models.preferences import Preferences
from qkvsearch.models.recommend_heads import COLLABORATIVE
from qkvsearch.models.strength import Strength, best_unseen, usual_level
from qkvsearch.models.user_history import History
from qkvsearch.models.user_vectors import ImplicitFactors


def history(positions, confidences=None):
    n = len(positions)
    counted = np.ones(n) if confidences is None else np.array(confidences)
    return History(np.array(positions), counted, np.full(n, np.nan), np.zeros(n, np.int64))


@pytest.fixture(scope="module")
def factors():
    """40 items, of which each later one is longer, so that it says more; the nearest of each is
    itself.
    """
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 8)) * np.linspace(0.02, 1, 40)[:, None]
    return ImplicitFactors(vectors, vectors.T @ vectors, alpha0=0.5, reg=0.1, nu=1.0, n_items=40)


def alone(factors, item):
    scores = factors.item_embeddings @ factors.fold_in([item])
    return best_unseen(scores, history([item]))


def level_of(factors, n_liking):
    return usual_level(Preferences({COLLABORATIVE: factors}).scores, n_liking)


@pytest.mark.parametrize("at_a_time", [2**22, 90])
def test_nine_of_ten_single_likes_come_above_the_level(factors, monkeypatch, at_a_time):
    monkeypatch.setattr(strength, "MAX_SCORES", at_a_time)
    rng = np.random.default_rng(1)
    items = rng.integers(0, 40, 600)
    level = level_of(factors, np.bincount(items, minlength=40))
    best = np.array([alone(factors, item) for item in items])
    assert (best < level - 1e-6).mean() <= 0.1
    assert (best <= level + 1e-6).mean() > 0.1
    assert level > 0


def test_items_without_likes_do_not_count_and_a_sample_is_enough(factors, monkeypatch):
    n_liking = np.repeat([0, 20], 20)
    some = level_of(factors, n_liking)
    assert level_of(factors, np.full(40, 20)) < some
    monkeypatch.setattr(strength, "MAX_DRAWN", 100)
    assert level_of(factors, n_liking) == pytest.approx(some, rel=0.2)
    assert level_of(factors, np.zeros(40, int)) == 0


def test_the_best_score_is_of_what_the_history_has_not():
    assert best_unseen(np.array([0.5, 0.9, 0.1]), history([1])) == 0.5
    assert best_unseen(np.array([0.5, 0.9]), history([0, 1])) == -np.inf


N_LIKING = np.array([0, 1, 2, 3, 500], dtype=np.int32)


@pytest.mark.parametrize(
    ("positions", "best", "said"),
    [
        ([4], 0.05, ""),
        ([4], 0.03, ""),
        ([4], 0.012, "one item that 500 people of the log liked; the best score is 0.012, where"),
        ([3], 0.03, ""),
        ([2], 0.9, "rest on one item that 2 people of the log liked. More"),
        ([1], 0.9, "one item that 1 person of the log liked. "),
        ([0], 0.9, "one item that nobody of the log liked. "),
        ([0, 1, 2], 0.9, "3 items, the best known of which 2 people of the log liked. "),
        ([0, 4], 0.9, ""),
    ],
)
def test_too_little_is_said_in_numbers(positions, best, said):
    rule, told = Strength(0.03, N_LIKING), history(positions)
    why = rule.why_weak(told, best)
    assert bool(why) == rule.is_weak(told, best) == bool(said)
    assert said in why
    assert ("0.030 or more" in why) == (best < 0.03)


def test_what_was_disliked_makes_no_history_strong():
    liked_little = history([4, 1], [0.0, 1.0])
    assert Strength(0.03, N_LIKING).n_users(liked_little) == 1
    assert "one item" in Strength(0.03, N_LIKING).why_weak(liked_little, 0.9)


def test_an_item_is_no_recommendation_to_who_likes_it():
    vectors = np.eye(6) + 0.1
    factors = ImplicitFactors(vectors, vectors.T @ vectors, alpha0=0.5, reg=0.1, nu=1.0, n_items=6)
    level = level_of(factors, np.ones(6, int))
    assert level == pytest.approx(alone(factors, 0), rel=1e-5)
    assert level < (vectors @ factors.fold_in([0]))[0] / 2


def test_where_no_other_item_has_a_score_no_score_is_named():
    why = Strength(0.03, N_LIKING).why_weak(history([0]), -np.inf)
    assert "inf" not in why
    assert "no other item has a score" in why
