"""Questions about predicted ratings, where they come from, and what to recommend."""

from collections.abc import Sequence

import numpy as np

from qkvsearch.lessons.course.recommender.descent import MIDDLE, PENALTY, loss_and_gradients
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Step
from qkvsearch.lessons.quizzes import Quiz, quiz


def quizzes(
    predicted: Step, reasons: Step, film_names: Sequence[str], user_names: Sequence[str]
) -> list[Quiz]:
    return [
        _rating(predicted, film_names[0], user_names[2]),
        _direction(),
        _tip(predicted, film_names, user_names[0]),
        _sum(reasons, film_names),
    ]


def _rating(predicted: Step, film_name: str, user_name: str) -> Quiz:
    user, film = predicted.found["users"][2].round(1), predicted.found["films"][0].round(1)
    return quiz(
        "Rounded, {user_name} is {user} and {film_name} is {film}; the middle of the scale is "
        "{middle}. Which rating is predicted?",
        MIDDLE + float(user @ film),
        "{middle} plus the dot product: {products}, together {score}, so {rating}.",
        tolerance=0.05,
        user_name=user_name,
        user=user,
        film_name=film_name,
        film=film,
        middle=MIDDLE,
        products=user * film,
        score=user @ film,
        rating=MIDDLE + user @ film,
    )


def _direction() -> Quiz:
    """One user, one film, one rating that is predicted too low."""
    user, film, rating = np.array([[1.0]]), np.array([[1.0]]), np.array([[MIDDLE + 2]])
    _, gradient, _ = loss_and_gradients(user, film, rating)
    by_penalty = 2 * PENALTY * user[0, 0]
    return quiz(
        "A user is the single number {user}, a film {film}. The rating is {rating}, but "
        "{predicted} is predicted. Which way does descent move the user's number?",
        float(gradient[0, 0] > 0),
        "The prediction is too low; a larger number raises it. The error is {error}, and its part "
        "of the gradient 2 · ({error}) · {film} = {by_error}. The penalty's is 2 · {penalty} · "
        "{user} = {by_penalty}. Together they are {gradient}, and the step goes against it.",
        choices=(say("up"), say("down")),
        user=user[0, 0],
        film=film[0, 0],
        rating=rating[0, 0],
        predicted=MIDDLE + user[0, 0] * film[0, 0],
        error=MIDDLE + user[0, 0] * film[0, 0] - rating[0, 0],
        penalty=PENALTY,
        by_error=gradient[0, 0] - by_penalty,
        by_penalty=by_penalty,
        gradient=gradient[0, 0],
    )


def _tip(predicted: Step, film_names: Sequence[str], user_name: str) -> Quiz:
    row, tip = predicted.found["predictions"][0], predicted.found["tips"][0]
    gaps = predicted.found["gaps"][0]
    return quiz(
        "The predicted ratings of {name} are {row}, in the order of the films. Not rated yet "
        "are: {gaps}. Which film is recommended?",
        float(tip),
        "Only films not yet rated can be recommended, and {film} has the largest prediction "
        "of them, {rating}.",
        choices=film_names,
        name=user_name,
        row=row,
        gaps=[name for name, is_gap in zip(film_names, gaps, strict=True) if is_gap],
        film=film_names[tip],
        rating=row[tip],
    )


def _sum(reasons: Step, film_names: Sequence[str]) -> Quiz:
    best = reasons.found["best"]
    parts = reasons.found["contributions"][:, best]
    return quiz(
        "The films of a history add {parts} to the score of {film}. What is the score?",
        float(reasons.found["scores"][best]),
        "The parts add up to the score: {score}.",
        parts=parts,
        film=film_names[best],
        score=reasons.found["scores"][best],
    )
