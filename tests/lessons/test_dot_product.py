"""Lesson 2: angles, a lover of action, and all users and films at once."""

import numpy as np
import pytest

FILM_NAMES = ["Spider-Man", "Car chase", "Love story", "Family"]


@pytest.fixture(scope="module")
def course(taught):
    return taught("dot-product")


@pytest.mark.point(4)
def test_a_right_angle_gives_0_and_beyond_it_the_product_is_negative(course):
    found = course.showing(4).computed
    degrees, products = found["degrees"], found["products"]
    assert np.allclose(degrees, [0, 45, 90, 135, 180])
    assert products.tolist() == [6, 4, 0, -2, -4]


@pytest.mark.point(5)
def test_a_lover_of_action_gets_the_action_film_first(course):
    found = course.showing(5).computed
    assert found["films"][found["order"][0]].argmax() == 0
    assert FILM_NAMES[found["order"][0]] == "Car chase"
    assert (np.diff(found["user_scores"][0][found["order"]]) < 0).all()


@pytest.mark.point(6)
def test_all_pairs_at_once_are_all_pairs_one_by_one(course):
    found = course.showing(6).computed
    assert found["scores"].shape == (3, 4)
    assert np.allclose(found["scores"], found["loops"], atol=1e-12)
    assert found["scores"][0, 1] == pytest.approx(0.76)
