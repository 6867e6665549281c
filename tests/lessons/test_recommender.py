"""Lesson 3: embeddings fitted to ratings, and the package's recommender on the same table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.lessons.course.recommender import predicted, slope
from qkvsearch.lessons.course.recommender.descent import MIDDLE, RATINGS, fit
from qkvsearch.lessons.parts import Curve


@pytest.fixture(scope="module")
def course(taught):
    return taught("recommender")


@pytest.mark.point(7)
def test_the_gradient_equals_finite_differences(course):
    found = course.steps[1].found
    assert np.abs(found["gradient"]).max() > 0.1
    assert np.allclose(found["gradient"], found["nudged"], atol=1e-8)


@pytest.mark.point(7)
def test_on_other_ratings_the_gradient_is_another_and_as_exact():
    turned = 6 - RATINGS
    there, here = slope(turned).found, slope().found
    assert np.allclose(there["gradient"], there["nudged"], atol=1e-8)
    assert not np.allclose(there["gradient"], here["gradient"], atol=0.05)


@pytest.mark.point(7)
def test_the_loss_falls_at_every_step(course):
    (curve,) = (part for part in course.steps[2].parts if isinstance(part, Curve))
    assert (np.diff(curve.values) < 0).all()
    assert curve.values[-1] < 0.2 * curve.values[0]
    assert curve.values[0] == course.steps[1].found["loss"]


@pytest.mark.point(7)
def test_predictions_come_near_the_ratings_and_fill_the_gaps_by_taste(course):
    found = course.steps[3].found
    known = course.showing(7).found["known"]
    assert np.abs(found["predictions"] - RATINGS)[known].max() < 1
    # Ana likes chases and has not seen the race; Eve likes love stories, not a wedding.
    assert found["predictions"][0, 2] > 4
    assert found["predictions"][0, 4] < 2
    assert found["tips"][4] == 4


@pytest.mark.point(7)
def test_who_likes_the_opposite_gets_the_opposite():
    turned = 6 - RATINGS
    assert predicted(fit(turned), turned).found["predictions"][0, 2] < MIDDLE


@pytest.mark.point(5, 6)
def test_a_predicted_rating_is_the_dot_product_of_user_and_film(course):
    found = course.showing(6).found
    assert course.showing(6) is course.showing(5)
    by_pairs = [[user @ film for film in found["films"]] for user in found["users"]]
    assert np.allclose(found["predictions"], MIDDLE + np.array(by_pairs), atol=1e-12)


@pytest.mark.point(7)
def test_the_packages_model_of_ratings_agrees_on_who_likes_what(course):
    predictions = course.steps[4].found["predictions"]
    assert ((predictions > 3) == (course.steps[3].found["predictions"] > 3)).all()


@pytest.mark.point(7)
def test_what_the_history_adds_is_the_score(course, assert_adds_up):
    found = course.steps[5].found
    assert found["history"] == [0, 1]
    for parts, score in zip(found["contributions"].T, found["scores"], strict=True):
        assert_adds_up(parts, score)
    assert found["best"] == 2


@pytest.mark.point(7)
def test_the_reasons_are_those_of_an_engine_built_from_the_same_likes(course, tmp_path):
    users, films = np.nonzero(np.nan_to_num(RATINGS) > MIDDLE)
    engine = qkvsearch.build(
        tmp_path / "ws",
        items=pd.DataFrame({"id": range(5), "title": ["car", "spider", "race", "love", "ring"]}),
        interactions=pd.DataFrame({"user": users, "item": films}),
        encoder="corpus",
    )
    hit = engine.recommend(user=0, k=1, explain=True)[0]
    assert int(hit.id) == course.steps[5].found["best"]
    assert {int(reason["id"]) for reason in hit.because} == {0, 1}


def test_quizzes_know_their_own_answers(course):
    assert [quiz.name for quiz in course.quizzes] == [f"recommender.{i}" for i in range(1, 5)]
    assert course.quizzes[1].solution == "up"
    assert course.quizzes[2].solution == "Space race"
    assert all(quiz.is_right(quiz.solution) for quiz in course.quizzes)
