"""Lesson 3: embeddings fitted to ratings, and the package's recommender on the same table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.lessons.course.recommender import by_hand, descent, predicted, slope
from qkvsearch.lessons.course.recommender.descent import MIDDLE, RATE, RATINGS, WIDTH, fit
from qkvsearch.lessons.messages import shown
from qkvsearch.lessons.parts import Curve, Table


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
def test_the_gradient_by_hand_and_the_step_by_it_are_those_of_descent(course):
    (ratings,) = (
        part
        for part in course.steps[1].parts
        if isinstance(part, Table) and part.caption == "The ratings of Ana"
    )
    users, _ = descent.start(RATINGS.shape, WIDTH)
    known = ~np.isnan(RATINGS)
    together = sum(row[-1] for row in ratings.rows)
    by_hand = 2 * together / known.sum() + 2 * descent.PENALTY * users[0, 0]
    assert by_hand == pytest.approx(course.steps[1].found["nudged"][0, 0], abs=1e-8)
    assert f"the gradient is {shown(by_hand)}." in course.steps[1].parts[-3].text
    moved = descent.descend(RATINGS, WIDTH, RATE, 1)[0][0, 0]
    texts = [part.text for part in course.steps[2].parts if hasattr(part, "text")]
    assert any(f"= {shown(moved)}." in text for text in texts)


@pytest.mark.point(7)
def test_a_film_without_ratings_learns_nothing(monkeypatch):
    """One rating of it moves its numbers, and each user's prediction its own way."""
    drawn, learned, predictions = by_hand.unrated(RATINGS)
    assert np.abs(learned).max() < 0.05 * np.abs(drawn).max()
    np.testing.assert_allclose(learned / drawn, (learned / drawn)[0])  # all shrink alike
    np.testing.assert_allclose(predictions, MIDDLE, atol=0.05)
    monkeypatch.setattr(descent, "PENALTY", 0)
    drawn, learned, _ = by_hand.unrated(RATINGS)
    assert (drawn == learned).all()
    rated = np.column_stack([RATINGS, [5, *[np.nan] * 4]])
    assert np.abs(descent.descend(rated, WIDTH, RATE, 300)[1][-1] - drawn).max() > 0.1


@pytest.mark.point(7)
def test_a_bias_moves_by_the_error_alone_and_what_is_multiplied_by_what_multiplies_it():
    def half(b, u, m, mean=3.0, rating=5.0):
        return (mean + b + u * m - rating) ** 2 / 2

    def slope(of, at, nudge=1e-6):
        return (of(at + nudge) - of(at - nudge)) / (2 * nudge)

    for m in (0.5, 2.0):
        error = 3 + 0.1 + 0.7 * m - 5
        assert slope(lambda b, m=m: half(b, 0.7, m), 0.1) == pytest.approx(error)
        assert slope(lambda u, m=m: half(0.1, u, m), 0.7) == pytest.approx(error * m)
    assert by_hand.moved_bias(3.0, 5.0, 0.1) == pytest.approx(0.1 - RATE * (3.1 - 5))


@pytest.mark.point(7)
def test_the_loss_falls_at_every_step(course):
    (curve,) = (part for part in course.steps[2].parts if isinstance(part, Curve))
    assert (np.diff(curve.values) < 0).all()
    assert curve.values[-1] < 0.2 * curve.values[0]
    assert curve.values[0] == course.steps[1].found["loss"]


@pytest.mark.point(7)
def test_predictions_come_near_the_ratings_and_fill_the_gaps_by_preference(course):
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
