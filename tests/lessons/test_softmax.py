"""Lesson 5: scores to weights, temperature, and the root of the width."""

import math

import numpy as np
import pytest

from qkvsearch.attention import softmax
from qkvsearch.lessons.compute.softmax import largest_by_width

Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
K = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])


@pytest.fixture(scope="module")
def course(taught):
    return taught("softmax")


@pytest.mark.point(28)
def test_the_score_of_one_and_two_is_a_dot_product_and_that_of_one_and_one_is_there(course):
    found = course.showing(28).computed
    assert found["scores"].shape == (3, 3)
    assert found["scores"][0, 1] == Q[0] @ K[1] == 2
    assert found["scores"][0, 0] == Q[0] @ K[0] == 1


@pytest.mark.point(51)
def test_softmax_is_taken_per_row(course):
    found = course.showing(51).computed
    assert np.allclose(found["weights"].sum(axis=1), 1, atol=1e-12)
    assert not np.allclose(found["weights"].sum(axis=0), 1, atol=0.1)


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


@pytest.mark.point(30)
def test_the_largest_score_dominates_and_the_output_becomes_its_value(course):
    found = course.showing(30).computed
    assert (np.diff(found["weights"][:, 1]) > 0).all()
    assert found["weights"][-1, 1] == pytest.approx(1, abs=1e-6)
    distance = np.linalg.norm(found["outputs"] - [0, 4], axis=1)
    assert (np.diff(distance) < 0).all()
    assert distance[-1] < 1e-5


@pytest.mark.point(50)
def test_the_variance_of_a_score_is_about_the_width(course):
    found = course.showing(50).computed
    assert found["variances"] == pytest.approx([4, 16, 64, 256], rel=0.1)
    assert found["scaled"] == pytest.approx([1] * 4, rel=0.1)


@pytest.mark.point(50)
def test_without_the_division_the_gradient_shrinks(course):
    _, gradients, _, scaled = course.steps[5].computed["slopes"].T
    assert (np.diff(gradients) < 0).all()
    assert gradients[-1] < 0.25 * gradients[0]
    assert scaled.min() > 0.9 * scaled.max()
    assert largest_by_width([1024])[0, 1] < gradients[-1]
