"""Lesson 5: scores to weights, temperature, and the root of the width."""

from __future__ import annotations

import math

import numpy as np
import pytest

from qkvsearch.attention import softmax
from qkvsearch.attention.gradients import softmax_vjp
from qkvsearch.lessons import lesson
from qkvsearch.lessons.compute.softmax import largest_by_width

Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
K = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])


@pytest.fixture(scope="module")
def course(taught):
    return taught("softmax")


def changed(**changes):
    """The steps of the lesson with other values in its setup."""
    return lesson("softmax", changes=changes).steps


@pytest.mark.point(28)
def test_the_score_of_one_and_two_is_a_dot_product_and_that_of_one_and_one_is_there(course):
    found = course.showing(28).computed
    assert found["scores"].shape == (3, 3)
    assert found["scores"][0, 1] == Q[0] @ K[1] == 2
    assert found["scores"][0, 0] == Q[0] @ K[0] == 1


@pytest.mark.point(28)
def test_the_second_key_moves_only_the_second_column(course):
    keys = K.copy()
    keys[1] += [3, 0]
    moved = changed(K=keys)[0].computed["scores"] - course.steps[0].computed["scores"]
    assert moved.tolist() == [[0, 3, 0], [0, 0, 0], [0, 3, 0]]


@pytest.mark.point(51)
def test_softmax_is_taken_per_row(course):
    found = course.showing(51).computed
    assert np.allclose(found["weights"].sum(axis=1), 1, atol=1e-12)
    assert not np.allclose(found["weights"].sum(axis=0), 1, atol=0.1)


@pytest.mark.point(51)
def test_a_query_changes_its_own_row_alone(course):
    queries = Q.copy()
    queries[1] += 1
    same = changed(Q=queries)[1].computed["weights"] == course.steps[1].computed["weights"]
    assert same.all(axis=1).tolist() == [True, False, True]


@pytest.mark.point(51)
def test_only_differences_of_scores_count(course):
    found = course.steps[1].computed
    row = np.log(found["raised"][0])
    for shift in (-3.0, 50.0):
        assert np.allclose(softmax(row + shift), found["weights"][0], atol=1e-12)
    assert np.abs(softmax(row + np.eye(3)[0]) - found["weights"][0]).max() > 0.1


@pytest.mark.point(9)
def test_the_first_row_by_hand(course):
    found = course.showing(9).computed
    total = math.e + math.e**2 + 1
    assert found["weights"][0] == pytest.approx([math.e / total, math.e**2 / total, 1 / total])
    assert found["outputs"][0] == pytest.approx(found["weights"][0] @ found["values"])


def test_the_temperature_evens_out_or_sharpens(course):
    weights = course.steps[2].computed["weights"]
    assert (np.diff(weights.max(axis=1)) > 0).all()
    far = changed(temperatures=[1e9, 1e-9])[2].computed["weights"]
    assert np.allclose(far, [[1 / 3] * 3, [0, 1, 0]])


@pytest.mark.point(30)
def test_the_largest_score_dominates_and_the_output_becomes_its_value(course):
    found = course.showing(30).computed
    assert (np.diff(found["weights"][:, 1]) > 0).all()
    assert found["weights"][-1, 1] == pytest.approx(1, abs=1e-6)
    distance = np.linalg.norm(found["outputs"] - [0, 4], axis=1)
    assert (np.diff(distance) < 0).all()
    assert distance[-1] < 1e-5


@pytest.mark.point(30)
def test_taking_from_the_score_takes_from_the_output():
    found = changed(more=[0.0, -50.0])[3].computed
    assert found["weights"][1, 1] == pytest.approx(0, abs=1e-12)
    assert found["outputs"][1, 1] < found["outputs"][0, 1]


@pytest.mark.point(50)
def test_the_variance_of_a_score_is_about_the_width(course):
    found = course.showing(50).computed
    assert found["variances"] == pytest.approx([4, 16, 64, 256], rel=0.1)
    assert found["scaled"] == pytest.approx([1] * 4, rel=0.1)
    assert changed(widths=[9] * 3, n=50_000)[4].computed["variances"][:1] == pytest.approx(
        [9], rel=0.03
    )


@pytest.mark.point(50)
def test_without_the_division_the_gradient_shrinks(course):
    _, gradients, _, scaled = course.steps[5].computed["slopes"].T
    assert (np.diff(gradients) < 0).all()
    assert gradients[-1] < 0.25 * gradients[0]
    assert scaled.min() > 0.9 * scaled.max()
    assert largest_by_width([1024])[0, 1] < gradients[-1]


def test_quizzes_know_their_own_answers(course):
    assert [course.quizzes[i].solution for i in (0, 1, 2, 4)] == ["2", "3", "0.25", "8"]
    assert all(quiz.is_right(quiz.solution) for quiz in course.quizzes)


@pytest.mark.point(50)
def test_the_variance_is_d_where_numbers_are_independent_and_have_mean_0():
    d, rng = 64, np.random.default_rng(1)
    queries, keys = rng.normal(size=(2, 20_000, d))
    assert (queries * keys).sum(axis=1).var() == pytest.approx(d, rel=0.05)
    assert (queries * queries).sum(axis=1).var() == pytest.approx(2 * d, rel=0.05)
    repeated = np.repeat(queries[:, :1] * keys[:, :1], d, axis=1)
    assert repeated.sum(axis=1).var() == pytest.approx(d**2, rel=0.1)
    assert ((1 + queries) * (1 + keys)).sum(axis=1).var() == pytest.approx(3 * d, rel=0.05)


@pytest.mark.point(50)
def test_the_gradient_of_a_weight_by_its_own_score_is_w_times_1_minus_w():
    weights, pull = softmax_vjp(np.array([[2.0, 1.0, -1.0]]))
    for i, w in enumerate(weights[0]):
        assert pull(np.eye(3)[[i]])[0, i] == pytest.approx(w * (1 - w))
