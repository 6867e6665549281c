"""Lesson 11: what one row of weights cannot do, what several can, and what each head is for."""

import numpy as np
import pytest

from qkvsearch.attention import attention
from qkvsearch.lessons.compute.heads import ROUNDS, before_and_after, new_errors, project, train
from qkvsearch.lessons.parts import Curve, Text


@pytest.fixture
def course(taught):
    return taught("heads")


@pytest.fixture
def found(course):
    """What each step found, counted from 1."""
    return {n: step.computed for n, step in enumerate(course.steps, start=1)}


@pytest.mark.point(63)
def test_no_row_of_weights_takes_a_number_from_each_of_two(found):
    np.testing.assert_allclose(found[1]["output"], [2.5, 2.5])
    assert found[1]["apart"] == pytest.approx(1.5 * np.sqrt(2))
    np.testing.assert_array_equal(found[1]["by_column"], [4, 4])


@pytest.mark.point(63)
def test_two_heads_learn_what_one_of_the_same_size_cannot(course, found):
    one, two = found[5]["errors_1"], found[5]["errors_2"]
    assert one.mean() > 0.1 > 1000 * two.mean()
    curves = [part for step in course.steps for part in step.parts if isinstance(part, Curve)]
    assert [len(curve.values) for curve in curves] == [ROUNDS] * 2
    w_one, w_two = (train(n)[0] for n in (1, 2))
    assert {k: v.shape for k, v in w_one.items()} == {k: v.shape for k, v in w_two.items()}


@pytest.mark.point(63)
def test_where_both_numbers_come_from_one_token_one_head_is_enough():
    """The counterfactual: it is the two positions that one row cannot serve."""

    def before_alone(seed):
        x, _ = before_and_after(seed)
        return x, np.roll(x[..., :2], 1, axis=1)

    matrices, _ = train(1, before_alone)
    assert new_errors(matrices, 1, task=before_alone).mean() < 0.01


@pytest.mark.point(64)
def test_the_layer_is_heads_split_and_joined(found):
    assert found[3]["apart"] == 0
    assert found[3]["weights"].shape == (2, 3, 3)
    assert np.abs(found[3]["alone"] - found[3]["outputs"]).max() > 0.5


@pytest.mark.point(64)
def test_a_head_sees_only_its_own_columns(found):
    assert found[2]["most"] == ["a", "b"]


@pytest.mark.point(65)
def test_more_heads_have_as_many_numbers_to_learn(course):
    counts = course.showing(65).computed["counts"]
    assert (counts[:, 2] == 4 * 64 * 64).all()
    assert (counts[:, 3] == counts[0, 3]).all()
    np.testing.assert_array_equal(counts[:, 4], counts[:, 0] * 100)


@pytest.mark.point(66)
def test_what_is_lost_with_a_head_says_what_it_is_for(course):
    found = course.showing(66).computed
    first, second = found["lost"]
    assert found["whole"].max() < 0.001
    assert first[1] > 0.5 > 50 * first[0]  # head 1: the number from after
    assert second[0] > 0.5
    # What it attends to does not show that: it attends to the token before, too.
    assert found["before"][0] > 0.2
    text = " ".join(part.text for part in course.showing(66).parts if isinstance(part, Text))
    assert "Without head 1 the error of the number from after grows most" in text


def test_the_weights_shown_are_the_learned_ones(course):
    x, _ = before_and_after(seed=9)
    weights = attention(*project(x[:1], train(2)[0], 2), return_weights=True)[1][0]
    shown = [course.showing(66).computed[name] for name in ("learned_1", "learned_2")]
    np.testing.assert_allclose(shown, weights)
