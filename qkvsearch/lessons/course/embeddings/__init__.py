"""Lesson 1: one-hot and embedding, a film as four numbers, and arithmetic with words."""

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import cosine_score
from qkvsearch.attention.symbols import numbered
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.embeddings.questions import quizzes
from qkvsearch.lessons.drawings import Arrows, Flow
from qkvsearch.lessons.messages import mark, marks, said, say
from qkvsearch.lessons.parts import Formula, Given, Matrix, Step, Table, step, tell
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench

TITLE = mark("Embeddings: things as rows of numbers")
GOAL = mark("Describe a film or a word by a few numbers, so that alike things look alike.")
MINUTES = 12

GENRES = marks("action", "romance", "drama", "thrilling")
# The first is the film "Spider-Man: No Way Home".
FILM_NAMES = marks("Spider-Man", "Car chase", "Love story", "Family")
FILMS = np.array(
    [[0.5, 0.3, 0.15, 0.05], [0.7, 0.0, 0.1, 0.2], [0.05, 0.8, 0.15, 0.0], [0.0, 0.3, 0.7, 0.0]]
)
FILM = FILMS[0]

QUALITIES = marks("royal", "female", "young", "edible")
WORDS = marks("king", "queen", "man", "woman", "prince", "princess", "boy", "girl", "apple")
VECTORS = np.array(
    [
        [0.9, 0.1, 0.2, 0.0],
        [0.85, 0.9, 0.25, 0.05],
        [0.1, 0.1, 0.3, 0.1],
        [0.1, 0.85, 0.3, 0.1],
        [0.8, 0.1, 0.9, 0.0],
        [0.85, 0.9, 0.9, 0.05],
        [0.05, 0.1, 0.9, 0.1],
        [0.1, 0.95, 0.85, 0.1],
        [0.0, 0.2, 0.1, 1.0],
    ]
)
SHOWN = 5


def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    hot, one, several = one_hots(), film(), alike()
    return [hot, one, several, apart(), arithmetic()], quizzes(
        hot, one, several, arithmetic("prince", "boy", "girl")
    )


def all_by_one_hot(n: int) -> np.ndarray:
    one_hot = np.eye(n)
    return one_hot @ one_hot.T


def one_hots(n: int = len(FILM_NAMES)) -> Step:
    """n films, each a place of its own."""
    names = said(FILM_NAMES) if n == len(FILM_NAMES) else numbered(n)
    one_hot, (cell, products) = np.eye(n), ran(all_by_one_hot, n=n)
    return step(
        "A place in a list: one-hot",
        tell(
            "A computer compares numbers, so a film has to become numbers. The simplest way "
            "is a list of all films: a film is a row with a 1 at its own place and 0 "
            "everywhere else. Such a row is called *one-hot*."
        ),
        Matrix(say("one-hot rows"), one_hot, names, names, "input"),
        tell(
            "(The word beside a matrix says what it is used for: input, score and so on. The "
            "lessons explain each of these words when they need it.)"
        ),
        tell(
            "To compare two rows, multiply them number by number and add up the results: that "
            "is their *dot product*. Here it is for every pair of films. For two different "
            "films it is always {zero}: to this list, any two films are equally unlike.",
            zero=products[0, -1],
        ),
        Matrix(say("dot products of one-hot rows"), products, names, names, "score"),
        points=(1,),
        found={"one_hot": one_hot, "products": products},
        code=cell,
    )


def with_itself(film: np.ndarray) -> float:
    return float(film @ film)


def film(numbers: np.ndarray = FILM) -> Step:
    """One film's numbers: their sum, the dot product with itself, and the length."""
    squares, (cell, itself) = numbers * numbers, ran(with_itself, film=numbers)
    length = itself**0.5
    rows: list[list[str | float]] = [
        [name, float(x), float(square)]
        for name, x, square in zip(said(GENRES), numbers, squares, strict=True)
    ]
    return step(
        "A film as four numbers",
        tell(
            "Now say what the film is *like*. The numbers of the film “Spider-Man: No Way Home” "
            "say how much action, romance, and so on it has: {film}. Such a row is an *embedding*. "
            "These four numbers are shares of the whole, so they add up to {total}.",
            film=numbers,
            total=numbers.sum(),
        ),
        Table(
            say("The film, and the dot product with itself"),
            [say("genre"), say("number"), say("number × number")],
            [*rows, [say("together"), float(numbers.sum()), itself]],
        ),
        tell(
            "The dot product of the film with itself is {itself}. Its square root, {length}, "
            "is the *length* of the row, if you think of it as an arrow.",
            itself=itself,
            length=length,
        ),
        points=(2,),
        found={
            "film": numbers,
            "sum": float(numbers.sum()),
            "self_product": itself,
            "length": length,
        },
        code=cell,
    )


def all_pairs(films: np.ndarray) -> np.ndarray:
    return films @ films.T


def alike() -> Step:
    """What one-hot rows could not say."""
    names, genres = said(FILM_NAMES), said(GENRES)
    bench = Workbench(
        name="films",
        caption=say("Change a film's numbers and see which films it becomes more like."),
        matrices={"queries": FILMS, "keys": FILMS},
        rows=names,
        columns=names,
        widths={"queries": genres, "keys": genres},
        scale=1.0,
        normalize="none",
    )
    cell, products = ran(all_pairs, films=FILMS)
    return step(
        "Embeddings know what is alike",
        tell(
            "Four films, each as four numbers. Compare them as before, by dot products: what was "
            "zero for every two films now says how much they have in common. The first film shares "
            "{near} with the second, and {far} with the fourth. Large numbers make large products, "
            "so a film may match another more than itself; step 5 takes the lengths out.",
            near=products[0, 1],
            far=products[0, 3],
        ),
        Matrix(say("films M"), FILMS, names, genres, "input"),
        Matrix(say("dot products of embeddings"), products, names, names, "score"),
        Flow(
            "alike",
            say("Point at a cell: number by number, the products add up"),
            bench,
            asks=say("film"),
            asked=say("beside the film"),
        ),
        bench,
        points=(1, 2),
        found={"films": FILMS, "products": products},
        code=cell,
    )


def distances(films: np.ndarray) -> np.ndarray:
    return np.linalg.norm(films[1:] - films[0], axis=1)


def apart(films: Array = FILMS) -> Step:
    """How far the others are from the first film, also with the columns in another order."""
    cell, far = ran(distances, films=films)
    turned, names = films[:, ::-1], said(FILM_NAMES)
    mixed_up = distances(np.vstack([turned[:1], films[1:]]))
    return step(
        "How far apart two films are",
        tell(
            "The *distance* of two rows is another measure. Subtract one from the other, number "
            "by number, and take the length of the difference. The smaller it is, the more alike "
            "they are. {second} minus {first} is {difference}; the length of that is {distance}.",
            second=names[1],
            first=names[0],
            difference=films[1] - films[0],
            distance=far[0],
        ),
        Formula(say("distance of x and y = √((x₁ − y₁)² + (x₂ − y₂)² + …)")),
        Table(
            say("Distance from {first}", first=names[0]),
            [
                say("film"),
                say("distance"),
                say("all rows reversed"),
                say("{first} alone reversed", first=names[0]),
            ],
            [
                [name, *map(float, row)]
                for name, *row in zip(names[1:], far, distances(turned), mixed_up, strict=True)
            ],
        ),
        tell(
            "Now write the four columns in the opposite order. Done in all rows, nothing changes: "
            "the same pairs of numbers are compared. Done in one row only, its action is compared "
            "with the others' thrill, and the distances mean nothing: {nearest} was nearest, now "
            "it is {wrong}. Any order of the columns will do, but all rows must have the same one. "
            "This holds for dot products, too.",
            nearest=names[1 + int(far.argmin())],
            wrong=names[1 + int(mixed_up.argmin())],
        ),
        points=(1, 2),
        found={"distances": far, "turned": distances(turned), "mixed_up": mixed_up},
        code=cell,
    )


def compared(words: np.ndarray, a: int, b: int, c: int) -> tuple[np.ndarray, np.ndarray]:
    target = words[a] - words[b] + words[c]
    return target, cosine_score(target[None], words)[0]


def arithmetic(a: str = "king", b: str = "man", c: str = "woman", vectors: Array = VECTORS) -> Step:
    """a − b + c, and which words point the same way."""
    places = [WORDS.index(word) for word in (a, b, c)]
    cell, (target, cosines) = ran(compared, words=vectors, **dict(zip("abc", places, strict=True)))
    order = [int(i) for i in np.argsort(-cosines, kind="stable") if i not in places]
    named, sum_of = said(WORDS), " − ".join(say(word) for word in (a, b)) + " + " + say(c)
    return step(
        "Arithmetic with words",
        tell(
            "Words can have embeddings, too. These were written by hand so that the columns "
            "have names; a computer learns them from text, and its columns have none. The "
            "*cosine* of two rows is their dot product divided by both lengths: it compares "
            "directions, and is at most 1."
        ),
        Matrix(say("words"), vectors, named, said(QUALITIES), "input"),
        Formula(f"{sum_of} = ?"),
        tell(
            "Take the first word, subtract the second, add the third: {target}. Of the other "
            "words, *{nearest}* points most nearly the same way.",
            target=target,
            nearest=named[order[0]],
        ),
        _in_a_plane(vectors, places, order),
        Table(
            say("Nearest to the result"),
            [say("word"), say("cosine")],
            [[named[i], float(cosines[i])] for i in order[:SHOWN]],
        ),
        points=(3,),
        found={
            "target": target,
            "cosines": cosines,
            "neighbours": [WORDS[i] for i in order],
            "cosine": float(cosines[order[0]]),
        },
        code=cell,
    )


def _in_a_plane(vectors: Array, places: list[int], others: list[int]) -> Arrows:
    """Two of the four numbers: the way from the second word to the first, gone from the third."""
    named = said(WORDS)
    # In these two numbers a princess is a queen, and a boy a man.
    grown = [place for place in others if vectors[place, QUALITIES.index("young")] < 0.5]
    return Arrows(
        "arithmetic",
        say(
            "Two of the four numbers of some words in a plane: the way from the second word to the "
            "first, gone from the third"
        ),
        vectors[places, :2],
        [named[place] for place in places],
        (say(QUALITIES[0]), say(QUALITIES[1])),
        against=0,
        chosen=3,
        coefficients=(1.0, -1.0, 1.0),
        total=say("result"),
        dots=vectors[grown, :2],
        dot_labels=[named[place] for place in grown],
    )
