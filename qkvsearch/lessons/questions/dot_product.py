"""Questions about angles, and about users and films."""

from __future__ import annotations

from collections.abc import Sequence

from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Step
from qkvsearch.lessons.quizzes import Quiz


def quizzes(
    angles: Step,
    all_pairs: Step,
    film_names: Sequence[str],
    user_names: Sequence[str],
) -> list[Quiz]:
    users, films, scores = (all_pairs.found[name] for name in ("users", "films", "scores"))
    wide = int(angles.found["degrees"].argmax())
    best = int(scores[1].argmax())
    return [
        Quiz(
            "dot-product.1",
            say(
                "A user is {user}, a film {film}. What is the score?", user=users[1], film=films[2]
            ),
            float(scores[1, 2]),
            say(
                "Number by number: {products}, together {score}.",
                products=users[1] * films[2],
                score=scores[1, 2],
            ),
        ),
        Quiz(
            "dot-product.2",
            say("Two arrows are at an angle of more than 90°. What is their dot product?"),
            0.0,
            say(
                "Beyond a right angle the cosine is negative, and so is the product: at "
                "{degrees}° it was {product}.",
                degrees=angles.found["degrees"][wide],
                product=angles.found["products"][wide],
            ),
            choices=(say("negative"), say("zero"), say("positive")),
        ),
        Quiz(
            "dot-product.3",
            say("Which film does {user} get first?", user=user_names[1]),
            float(best),
            say(
                "The row of scores is {row}: the largest belongs to {film}.",
                row=scores[1],
                film=film_names[best],
            ),
            choices=film_names,
        ),
        Quiz(
            "dot-product.4",
            say(
                "{n} users and {m} films: how many scores has the matrix U·Mᵀ?",
                n=len(users),
                m=len(films),
            ),
            float(scores.size),
            say(
                "A cell for every pair: {n} × {m} = {cells}.",
                n=len(users),
                m=len(films),
                cells=scores.size,
            ),
        ),
    ]
