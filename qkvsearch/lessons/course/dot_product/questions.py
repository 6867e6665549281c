"""Questions about angles, and about users and films."""

from collections.abc import Sequence

import numpy as np

from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Step
from qkvsearch.lessons.quizzes import Quiz, quiz


def quizzes(
    angles: Step, all_pairs: Step, film_names: Sequence[str], user_names: Sequence[str]
) -> list[Quiz]:
    users, films, scores = (all_pairs.found[name] for name in ("users", "films", "scores"))
    return [
        quiz(
            "A user is {user}, a film {film}. What is the score?",
            float(scores[1, 2]),
            "Number by number: {products}, together {score}.",
            user=users[1],
            film=films[2],
            products=users[1] * films[2],
            score=float(scores[1, 2]),
        ),
        beyond_a_right_angle(angles),
        the_first_film(scores[1], user_names[1], film_names),
        quiz(
            "{n} users and {m} films: how many scores has the matrix U·Mᵀ?",
            float(scores.size),
            "A cell for every pair: {n} × {m} = {cells}.",
            n=len(users),
            m=len(films),
            cells=scores.size,
        ),
    ]


def beyond_a_right_angle(angles: Step) -> Quiz:
    wide = int(angles.found["degrees"].argmax())
    return quiz(
        "Two arrows are at an angle of more than 90°. What is their dot product?",
        0.0,
        "Beyond a right angle the cosine is negative, and so is the product: at "
        "{degrees}° it was {product}.",
        choices=(say("negative"), say("zero"), say("positive")),
        degrees=angles.found["degrees"][wide],
        product=angles.found["products"][wide],
    )


def the_first_film(scores: np.ndarray, user: str, films: Sequence[str]) -> Quiz:
    """scores (n_films,): the user's."""
    best = int(scores.argmax())
    return quiz(
        "Which film does {user} get first?",
        float(best),
        "The row of scores is {row}: the largest belongs to {film}.",
        choices=films,
        user=user,
        row=scores,
        film=films[best],
    )
