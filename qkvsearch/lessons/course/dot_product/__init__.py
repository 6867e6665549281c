"""Lesson 2: the dot product as an angle, as a match of a user and a film, and of all pairs."""

import numpy as np

from qkvsearch.attention import cosine_score
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.dot_product.questions import quizzes
from qkvsearch.lessons.course.embeddings import FILM_NAMES, FILMS, GENRES
from qkvsearch.lessons.drawings import Arrows, Flow
from qkvsearch.lessons.messages import mark, marks, said, say
from qkvsearch.lessons.parts import Formula, Given, Matrix, Step, Table, step, tell
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench

TITLE = mark("The dot product: how well two rows match")
GOAL = mark("Read a dot product as an angle and as a match, for one pair and for all.")
MINUTES = 10

ARROW = np.array([2.0, 0.0])
# The same length or another, from the same direction to the opposite one.
OTHERS = np.array([[3.0, 0.0], [2.0, 2.0], [0.0, 3.0], [-1.0, 1.0], [-2.0, 0.0]])

USER_NAMES = marks("Ana", "Ben", "Chloe")
# How much they like each genre of `FILMS`; below 0 is dislike.
USERS = np.array([[0.9, -0.3, 0.1, 0.6], [-0.5, 0.9, 0.4, 0.0], [0.2, 0.1, 0.8, -0.4]])


def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    turned, first, everyone = angles(), one_user(), all_pairs()
    return [turned, first, everyone], quizzes(turned, everyone, said(FILM_NAMES), said(USER_NAMES))


def products_with(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return b @ a


def angles(arrow: np.ndarray = ARROW, others: np.ndarray = OTHERS) -> Step:
    """Arrows in the plane against one of them."""
    cell, value = ran(products_with, a=arrow, b=others)
    cosines = cosine_score(arrow[None], others)[0]
    degrees = np.degrees(np.arccos(np.clip(cosines, -1, 1)))
    names = [f"b{i + 1}" for i in range(len(others))]
    table: list[list[str | float]] = [
        [name, float(degree), float(product)]
        for name, degree, product in zip(names, degrees, value, strict=True)
    ]
    return step(
        "Two arrows and the angle between them",
        tell(
            "A row of two numbers is an arrow on paper: the first says how far to the right, the "
            "second how far up. Our arrow is a = {arrow}. Here are others, turning away from it.",
            arrow=arrow,
        ),
        Arrows(
            "angles",
            say("Two arrows, the angle between them, and the shadow of one on the other"),
            np.vstack([arrow, others]),
            ["a", *names],
            (say("to the right"), say("up")),
            chosen=2,
        ),
        Matrix(say("arrows b"), others, names, [say("to the right"), say("up")], "key"),
        Formula(f"a·b = |a|·|b|·cos({say('angle')})"),
        tell(
            "The dot product adds the products of the numbers. It is also both lengths, |a| "
            "and |b|, times the cosine of the angle between the arrows. So it is positive for "
            "a small angle, 0 for a right angle (90°), and negative beyond."
        ),
        Table(
            say("Angles and dot products with a"),
            [say("arrow"), say("angle in degrees"), say("a·b")],
            table,
        ),
        points=(4,),
        found={"arrow": arrow, "degrees": degrees, "products": value},
        code=cell,
    )


def all_products(users: np.ndarray, films: np.ndarray) -> np.ndarray:
    return users @ films.T


def one_user(user: np.ndarray = USERS[0], films: np.ndarray = FILMS) -> Step:
    """Films in the order in which they match a user."""
    cell, scores = ran(all_products, users=user[None], films=films)
    order = np.argsort(-scores[0], kind="stable")
    names = said(FILM_NAMES)
    first = films[order[0]]
    return step(
        "A user and the films",
        tell(
            "{name} loves action, likes thrills and avoids romance. Written in the same four "
            "columns as the films, that is a row of numbers, too; below 0 is dislike.",
            name=said(USER_NAMES)[0],
        ),
        Matrix(say("user u"), user[None], [said(USER_NAMES)[0]], said(GENRES), "query"),
        Matrix(say("films M"), films, names, said(GENRES), "key"),
        tell(
            "The dot product of the user and a film is a *score*: what the film has, times how "
            "much it is liked, added up. For {film} these are {products}, together {score}. It "
            "comes first, and {last} comes last.",
            film=names[order[0]],
            products=user * first,
            score=scores[0, order[0]],
            last=names[order[-1]],
        ),
        Matrix(say("scores of user u"), scores, [said(USER_NAMES)[0]], names, "score"),
        points=(5,),
        found={"user": user, "films": films, "scores": scores, "order": order.tolist()},
        code=cell,
    )


def all_pairs(users: np.ndarray = USERS, films: np.ndarray = FILMS) -> Step:
    """One product of matrices beside two loops."""
    bench = Workbench(
        name="match",
        caption=say("Change what somebody likes, or what a film is, and see who should watch it."),
        matrices={"queries": users, "keys": films},
        rows=said(USER_NAMES),
        columns=said(FILM_NAMES),
        widths={"queries": said(GENRES), "keys": said(GENRES)},
        scale=1.0,
        normalize="none",
    )
    cell, scores = ran(all_products, users=users, films=films)
    loops = one_by_one(users, films)
    return step(
        "All users and all films at once",
        tell(
            "Put the users in a matrix U, a row each, and the films in a matrix M. Mᵀ is M "
            "turned on its side, columns for rows. The product U·Mᵀ then has a row for each "
            "user and a column for each film, and in each cell the dot product of the two."
        ),
        Formula("U·Mᵀ"),
        Matrix(say("users U"), users, said(USER_NAMES), said(GENRES), "query"),
        Matrix(say("scores U·Mᵀ"), scores, said(USER_NAMES), said(FILM_NAMES), "score"),
        tell(
            "Going through all pairs one by one gives the same: the largest difference is "
            "{difference}, which is rounding. (≈0 says: not exactly 0, but too small for the "
            "digits shown.) In the words of this course, a user asks, so the user's row is a "
            "*query*; a film can be found by its row, which is a *key*.",
            difference=np.abs(scores - loops).max(),
        ),
        Flow(
            "pairs",
            say("Point at a cell: number by number, the products add up to the score"),
            bench,
            asks=say("user"),
            asked=say("film"),
        ),
        bench,
        points=(6, 5),
        found={"users": users, "films": films, "scores": scores, "loops": loops},
        code=cell,
    )


def one_by_one(users: np.ndarray, films: np.ndarray) -> np.ndarray:
    """Every pair's dot product, number by number: (n_users, n_films)."""
    scores = np.zeros((len(users), len(films)))
    for i, user in enumerate(users):
        for j, film in enumerate(films):
            for liked, has in zip(user, film, strict=True):
                scores[i, j] += liked * has
    return scores
