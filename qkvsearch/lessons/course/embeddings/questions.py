"""Questions about one-hot rows, embeddings and arithmetic with words."""

import numpy as np

from qkvsearch.lessons.messages import said, say
from qkvsearch.lessons.parts import Step
from qkvsearch.lessons.quizzes import Quiz, quiz


def quizzes(one_hots: Step, film: Step, alike: Step, other: Step) -> list[Quiz]:
    """other: the arithmetic of prince − boy + girl."""
    hot, films = one_hots.found["one_hot"], alike.found["films"]
    first, third = films[0], films[2]
    return [
        quiz(
            "Two different one-hot rows: {a} and {b}. What is their dot product?",
            float(one_hots.found["products"][0, 2]),
            "Number by number: {products}. Wherever one row has its 1, the other has a 0.",
            a=hot[0],
            b=hot[2],
            products=hot[0] * hot[2],
        ),
        quiz(
            "Two films: {a} and {b}. What is their dot product?",
            float(alike.found["products"][0, 2]),
            "Number by number: {products}, together {total}.",
            a=first,
            b=third,
            products=first * third,
            total=alike.found["products"][0, 2],
        ),
        _word_after(other),
        quiz(
            "All numbers of “Spider-Man: No Way Home” are doubled. What is its length now?",
            float(np.linalg.norm(2 * film.found["film"])),
            "The length was the root of {itself}, about {length}. Every number twice as large "
            "makes the arrow twice as long. Rounded only at the end, that is {doubled}.",
            itself=film.found["self_product"],
            length=film.found["length"],
            doubled=2 * film.found["length"],
        ),
    ]


def _word_after(other: Step) -> Quiz:
    found = other.found
    choices = sorted(found["neighbours"])
    nearest = found["neighbours"][0]
    return quiz(
        "prince − boy + girl: which word is nearest?",
        float(choices.index(nearest)),
        "The result is {target}: royal, female and young. *{nearest}* points most nearly "
        "the same way, with a cosine of {cosine}.",
        choices=said(choices),
        target=found["target"],
        nearest=say(nearest),
        cosine=found["cosine"],
    )
