"""Lesson 2: angles, a lover of action, and all users and films at once."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.lessons import lesson
from qkvsearch.lessons.workbench import Workbench

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


@pytest.mark.point(4)
def test_the_sign_goes_by_the_angle_of_any_arrows():
    rng = np.random.default_rng(0)
    arrows = {"a": rng.normal(size=2), "b": rng.normal(size=(50, 2))}
    found = lesson("dot-product", changes=arrows).steps[0].computed
    assert ((found["degrees"] > 90) == (found["products"] < 0)).all()
    assert 0 < (found["products"] < 0).sum() < 50


@pytest.mark.point(5)
def test_a_lover_of_action_gets_the_action_film_first(course):
    found = course.showing(5).computed
    assert found["films"][found["order"][0]].argmax() == 0
    assert FILM_NAMES[found["order"][0]] == "Car chase"
    assert (np.diff(found["user_scores"][0][found["order"]]) < 0).all()


@pytest.mark.point(5)
def test_a_lover_of_romance_gets_the_love_story():
    users = np.array([[0.0, 1.0, 0.0, 0.0]] * 3)
    found = lesson("dot-product", changes={"users": users}).steps[1].computed
    assert FILM_NAMES[found["order"][0]] == "Love story"


@pytest.mark.point(6)
def test_all_pairs_at_once_are_all_pairs_one_by_one(course):
    found = course.showing(6).computed
    assert found["scores"].shape == (3, 4)
    assert np.allclose(found["scores"], found["loops"], atol=1e-12)
    assert found["scores"][0, 1] == pytest.approx(0.76)


@pytest.mark.point(6)
def test_other_users_and_films_too():
    rng = np.random.default_rng(1)
    matrices = {"users": rng.normal(size=(3, 4)), "films": rng.normal(size=(4, 4))}
    found = lesson("dot-product", changes=matrices).steps[2].computed
    assert np.allclose(found["scores"], found["loops"], atol=1e-12)


def test_the_workbench_follows_an_edit(course):
    (bench,) = (part for part in course.showing(6).parts if isinstance(part, Workbench))
    films = bench.matrices["keys"].copy()
    films[0, 0] += 1
    moved = bench.steps({"keys": films})["scores"] - bench.steps()["scores"]
    assert np.allclose(moved[:, 0], bench.matrices["queries"][:, 0])
    assert not moved[:, 1:].any()


def test_quizzes_know_their_own_answers(course):
    assert [q.solution for q in course.quizzes[:4]] == ["0.76", "negative", "Love story", "12"]
    assert all(quiz.is_right(quiz.solution) for quiz in course.quizzes)
