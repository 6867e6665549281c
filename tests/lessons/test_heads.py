"""Lesson 10: what one row of weights cannot do, what several can, and what each head is for."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.attention import attention
from qkvsearch.lessons.course import heads
from qkvsearch.lessons.course.heads import learned
from qkvsearch.lessons.parts import Curve, Text
from qkvsearch.lessons.workbench import Workbench


@pytest.fixture
def course(taught):
    return taught("heads")


def test_it_has_its_points_a_workbench_and_quizzes(course):
    assert {point for step in course.steps for point in step.points} == {63, 64, 65, 66}
    assert any(isinstance(part, Workbench) for step in course.steps for part in step.parts)


@pytest.mark.point(63)
def test_no_row_of_weights_takes_a_number_from_each_of_two(course):
    found = course.showing(63).found
    np.testing.assert_allclose(found["output"], [2.5, 2.5])
    assert found["apart"] == pytest.approx(1.5 * np.sqrt(2))
    np.testing.assert_array_equal(found["by_column"], [4, 4])
    # No row drawn at random comes nearer, and one that lies between the values can be met.
    weights = np.random.default_rng(0).dirichlet(np.ones(3), size=2000)
    assert np.linalg.norm(weights @ heads.VALUES - [4, 4], axis=1).min() >= found["apart"] - 1e-9
    assert heads.one_row(wanted=np.array([2.5, 2.5])).found["apart"] == pytest.approx(0, abs=1e-9)


@pytest.mark.point(63)
def test_two_heads_learn_what_one_of_the_same_size_cannot(course):
    found = next(step.found for step in course.steps if "unseen" in step.found)
    one, two = found["unseen"]
    assert one.mean() > 0.1 > 1000 * two.mean()
    curves = [part for step in course.steps for part in step.parts if isinstance(part, Curve)]
    assert [len(curve.values) for curve in curves] == [learned.ROUNDS] * 2
    w_one, w_two = (learned.train(n, 1)[0] for n in (1, 2))
    assert {k: v.shape for k, v in w_one.items()} == {k: v.shape for k, v in w_two.items()}


@pytest.mark.point(63)
def test_where_both_numbers_come_from_one_token_one_head_is_enough(monkeypatch):
    """The counterfactual: it is the two places that one row cannot serve."""
    both = learned.two_places

    def one_place(seed):
        x, _ = both(seed)
        return x, np.roll(x[..., :2], 1, axis=1)

    monkeypatch.setattr(learned, "two_places", one_place)
    w, _ = learned.train(1, learned.ROUNDS)
    assert learned.loss_on_new(w, 1).mean() < 0.01


@pytest.mark.point(64)
def test_the_layer_is_heads_split_and_joined(course):
    found = next(step.found for step in course.steps if "alone" in step.found)
    assert found["apart"] == 0
    assert found["weights"].shape == (2, 3, 3)
    assert np.abs(found["alone"] - found["output"]).max() > 0.5
    x = np.random.default_rng(0).normal(size=(5, 4))
    other = heads.joined(x, np.random.default_rng(1).normal(size=(4, 4))).found
    assert other["apart"] == 0


@pytest.mark.point(64)
def test_a_head_sees_only_its_own_columns(course):
    found = course.showing(64).found
    assert found["most"] == ["a", "b"]
    moved = heads.W_QUERY.copy()
    moved[:, 2:] *= 5
    first, second, _ = heads.in_two_heads(heads.X, moved, heads.W_KEY, heads.W_VALUE)
    np.testing.assert_array_equal(first, found["first"])
    assert np.abs(second - found["second"]).max() > 0.1


@pytest.mark.point(64)
def test_without_the_last_matrix_no_number_knows_both_heads():
    x, w = heads.X, (heads.W_QUERY, heads.W_KEY, heads.W_VALUE)
    value = heads.W_VALUE.copy()
    value[:, 2:] += 1  # of the second head
    before, after = (
        heads.by_the_layer(x, *w[:2], v, np.eye(4), 2)[0] for v in (heads.W_VALUE, value)
    )
    np.testing.assert_array_equal(before[:, :2], after[:, :2])
    mixed = [heads.by_the_layer(x, *w[:2], v, heads.W_OUT, 2)[0] for v in (heads.W_VALUE, value)]
    assert (np.abs(mixed[1] - mixed[0])[:, :2] > 0.1).all()


@pytest.mark.point(65)
def test_more_heads_have_as_many_numbers_to_learn(course):
    counts = course.showing(65).found["counts"]
    assert (counts[:, 2] == 4 * 64 * 64).all()
    assert (counts[:, 3] == counts[0, 3]).all()
    np.testing.assert_array_equal(counts[:, 4], counts[:, 0] * 100)


@pytest.mark.point(66)
def test_what_is_lost_with_a_head_says_what_it_is_for(course):
    found = course.showing(66).found
    first, second = found["lost"]
    assert found["whole"].max() < 0.001
    assert first[1] > 0.5 > 50 * first[0]  # head 1: the number from after
    assert second[0] > 0.5
    # Where it looks does not say so: it looks before, too.
    assert found["before"][0] > 0.2
    text = " ".join(part.text for part in course.showing(66).parts if isinstance(part, Text))
    assert "Without head 1 the error of the number from after grows most" in text


def test_the_weights_shown_are_the_learned_ones(course):
    w, _ = learned.train(2, learned.ROUNDS)
    x, _ = learned.two_places(seed=9)
    weights = attention(*learned.heads_of(x[:1], w, 2), return_weights=True)[1][0]
    shown = [course.showing(66).found[name] for name in ("first", "second")]
    np.testing.assert_allclose(shown, weights)


def test_answers_and_near_misses(course):
    right, wrong = ["1 3", "80", "16", "2", "b"], ["2 6", "18", "8", "1", "a"]
    for quiz, good, bad in zip(course.quizzes, right, wrong, strict=True):
        assert (quiz.is_right(good), quiz.is_right(bad)) == (True, False), quiz.name
