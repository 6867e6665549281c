"""Lesson 3: embeddings fitted to ratings, and the package's recommender on the same table."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.lessons.compute import recommender
from qkvsearch.lessons.compute.recommender import MIDDLE, PENALTY, RATE, RATINGS, descend, start
from qkvsearch.lessons.messages import shown
from qkvsearch.lessons.parts import ShownTable


@pytest.fixture(scope="module")
def course(taught):
    return taught("recommender")


@pytest.mark.point(7)
def test_the_gradient_equals_finite_differences(course):
    found = course.steps[1].computed
    assert np.abs(found["gradient"]).max() > 0.1
    assert np.allclose(found["gradient"], found["nudged"], atol=1e-8)


@pytest.mark.point(7)
def test_what_the_code_shown_computes_is_what_descent_goes_by(course):
    found = course.steps[1].computed
    loss, by_users, by_films = recommender.loss_and_gradients(*start(RATINGS.shape), RATINGS)
    assert found["loss"] == pytest.approx(loss, abs=1e-12)
    assert np.allclose(found["gradient"], np.vstack([by_users, by_films]), atol=1e-12)


@pytest.mark.point(7)
def test_the_gradient_by_hand_and_the_step_by_it_are_those_of_descent(course):
    (ratings,) = (
        part
        for part in course.steps[1].parts
        if isinstance(part, ShownTable) and part.caption == "The ratings of Ana"
    )
    users, _ = start(RATINGS.shape)
    known = ~np.isnan(RATINGS)
    together = sum(row[-1] for row in ratings.rows)
    by_hand = 2 * together / known.sum() + 2 * PENALTY * users[0, 0]
    assert by_hand == pytest.approx(course.steps[1].computed["nudged"][0, 0], abs=1e-8)
    assert f"the gradient is {shown(by_hand)}." in course.steps[1].parts[-1].text
    moved = descend(RATINGS, RATE, 1)[0][0, 0]
    texts = [part.text for part in course.steps[2].parts if hasattr(part, "text")]
    assert any(f"= {shown(moved)}." in text for text in texts)


@pytest.mark.point(7)
def test_a_film_without_ratings_learns_nothing():
    """One rating of it moves its numbers, and each user's prediction its own way."""
    drawn, learned, predictions = recommender.unrated(RATINGS)
    assert np.abs(learned).max() < 0.05 * np.abs(drawn).max()
    np.testing.assert_allclose(learned / drawn, (learned / drawn)[0])  # all shrink alike
    np.testing.assert_allclose(predictions, MIDDLE, atol=0.05)
    rated = np.column_stack([RATINGS, [5, *[np.nan] * 4]])
    assert np.abs(descend(rated)[1][-1] - drawn).max() > 0.1


@pytest.mark.point(7)
def test_the_loss_falls_at_every_step(course):
    losses = course.steps[2].computed["losses"]
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < 0.2 * losses[0]
    assert losses[0] == pytest.approx(course.steps[1].computed["loss"], abs=1e-12)


@pytest.mark.point(7)
def test_predictions_come_near_the_ratings_and_fill_the_gaps_by_preference(course):
    found = course.steps[3].computed
    known = course.steps[0].computed["known"]
    assert np.abs(found["predictions"] - RATINGS)[known].max() < 1
    # Ana likes chases and has not seen the race; Eve likes love stories, not a wedding.
    assert found["predictions"][0, 2] > 4
    assert found["predictions"][0, 4] < 2
    assert found["tips"][4] == 4


@pytest.mark.point(5, 6)
def test_a_predicted_rating_is_the_dot_product_of_user_and_film(course):
    found = course.showing(6).computed
    assert course.showing(6) is course.showing(5)
    by_pairs = [[user @ film for film in found["films"]] for user in found["users"]]
    assert np.allclose(found["predictions"], MIDDLE + np.array(by_pairs), atol=1e-12)


@pytest.mark.point(7)
def test_starts_end_in_two_valleys_that_fit_equally_well_and_fill_gaps_differently(course):
    """Each of 197 walks ends where one of the two starts ends, and none of the other three does."""
    found = course.steps[4].computed
    starts = [start(RATINGS.shape, seed) for seed in range(200)]
    users, films = (np.stack(side) for side in zip(*starts, strict=True))
    for ends in recommender.walk(users, films, RATINGS, RATE, 2000):
        users, films, losses = ends
    np.testing.assert_array_equal(found["ends"], losses)
    assert (found["is_low"].sum(), len(losses)) == (197, 200)
    assert {f"{loss:.3f}" for loss in losses} == {"0.390", "0.391", "0.798"}
    predictions = MIDDLE + users @ films.swapaxes(1, 2)
    apart = [np.abs(predictions - found[name]).max(axis=(1, 2)) for name in ("first", "second")]
    assert ((np.min(apart, axis=0) < 0.4) == found["is_low"]).all()
    assert min((near < 0.4).sum() for near in apart) > 80
    assert np.abs(found["first"] - found["second"]).max() > 1.5
    assert found["errors"] == pytest.approx([0.15, 0.15], abs=0.005)


@pytest.mark.point(7)
def test_one_more_rating_can_decide(course):
    """With Chloe's rating of the car chase, the first start ends where the second one did."""
    found = course.steps[4].computed
    assert [best[1] for best in found["best"]] == [1, 0]
    rated = RATINGS.copy()
    rated[2, 0] = 5
    users, films, _ = descend(rated, steps=2000)
    np.testing.assert_allclose(MIDDLE + users @ films.T, found["second"], atol=0.6)


@pytest.mark.point(7)
def test_the_packages_model_of_ratings_agrees_on_who_likes_what(course, taught):
    biased = taught("appendix").steps[1].computed["biased"]
    assert ((biased > 3) == (course.steps[3].computed["predictions"] > 3)).all()


@pytest.mark.point(7)
def test_what_the_history_adds_is_the_score(course, assert_adds_up):
    found = course.steps[5].computed
    assert found["history"].tolist() == [0, 1]
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
    assert int(hit.id) == course.steps[5].computed["best"]
    assert {int(reason["id"]) for reason in hit.because} == {0, 1}
