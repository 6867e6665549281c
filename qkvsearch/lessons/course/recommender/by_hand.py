"""Of lesson 3: what one rating does to one number, and what becomes of a film without any."""

from collections.abc import Sequence

import numpy as np
from numpy import ndarray as Array

from qkvsearch.lessons.course.recommender.descent import (
    MIDDLE,
    PENALTY,
    RATE,
    RATINGS,
    STEPS,
    WIDTH,
    descend,
    loss_and_gradients,
    start,
)
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Formula, Part, Table, Text, tell


def one_number(users: Array, films: Array, table: Array, names: Sequence[str]) -> list[Part]:
    """The gradient of the first user's first number, rating by rating; names: user, *films."""
    user, *film_names = names
    rated = np.flatnonzero(~np.isnan(table[0]))
    errors = MIDDLE + films[rated] @ users[0] - table[0, rated]
    products, n = errors * films[rated, 0], int((~np.isnan(table)).sum())
    rows: list[list[str | float]] = [
        [film_names[i], float(error), float(films[i, 0]), float(product)]
        for i, error, product in zip(rated, errors, products, strict=True)
    ]
    own = users[0, 0]
    return [
        tell(
            "The rule for one rating: the *error* is the prediction minus the rating, and error² "
            "has the slope 2 · error. In the prediction a number of u is multiplied by a number "
            "of m: its slope is 2 · error · m. In the same way a number of m has the slope "
            "2 · error · u. The mean divides by the {n} known ratings, and the penalty adds "
            "2 · {penalty} · u.",
            n=n,
            penalty=PENALTY,
        ),
        Formula(say("slope by u = 2·error·m    slope by m = 2·error·u")),
        tell("Here it is for the first number of {user}, which is {own}:", user=user, own=own),
        Table(
            say("The ratings of {user}", user=user),
            [
                say("film"),
                say("error"),
                say("first number of the film"),
                say("error × this number"),
            ],
            rows,
        ),
        tell(
            "Together {together}. Times 2, divided by {n}, plus 2 · {penalty} · {own}: the "
            "gradient is {gradient}.",
            together=products.sum(),
            n=n,
            penalty=PENALTY,
            own=own,
            gradient=2 * products.sum() / n + 2 * PENALTY * own,
        ),
    ]


def one_step(user: str, table: Array = RATINGS) -> Text:
    """The first step of descent, for the number whose gradient was computed by hand."""
    users, films = start(table.shape, WIDTH)
    gradient = loss_and_gradients(users, films, table)[1][0, 0]
    return tell(
        "The first step by hand, with the learning rate {rate}: the first number of {user} was "
        "{own}, its gradient {gradient}. It becomes {own} − {rate} · {gradient} = {moved}.",
        rate=RATE,
        user=user,
        own=users[0, 0],
        gradient=gradient,
        moved=users[0, 0] - RATE * gradient,
    )


def moved_bias(mean: float, rating: float, bias: float = 0.0) -> float:
    """A bias after one step on half the squared error of one rating, without a penalty."""
    return bias - RATE * (mean + bias - rating)


def a_bias(mean: float, user: str, film: str, table: Array = RATINGS) -> list[Text]:
    """A step of a user's bias, from 0 and beside a film whose own is 0."""
    rating = table[0, 0]
    return [
        tell(
            "A bias is learned by descent, too. It is added and not multiplied, so for one "
            "rating, and leaving the penalty out, its slope is 2 · error alone. Many books take"
            " half of error² as the loss: then the 2 goes away, and a step is b ← b − rate · "
            "error, and u ← u − rate · error · m. (If they write the error as rating minus "
            "prediction, the step has a plus.)"
        ),
        tell(
            "For example, {user} begins with bᵤ = 0, and bₘ and u·m are 0, too. Then {film} is "
            "predicted {mean}. The rating is {rating}, the error {error}. With the rate {rate}, bᵤ "
            "becomes 0 − {rate} · ({error}) = {moved}.",
            user=user,
            film=film,
            mean=mean,
            rating=rating,
            error=mean - rating,
            rate=RATE,
            moved=moved_bias(mean, rating),
        ),
    ]


def unrated(ratings: Array) -> tuple[Array, Array, Array]:
    """Of one more film, which nobody has rated: its numbers at the start and after descent, and
    the ratings that are then predicted for it.
    """
    wider = np.column_stack([ratings, np.full(len(ratings), np.nan)])
    _, drawn = start(wider.shape, WIDTH)
    users, films, _ = descend(wider, WIDTH, RATE, STEPS)
    return drawn[-1], films[-1], MIDDLE + users @ films[-1]


def without_ratings(table: Array = RATINGS) -> Text:
    before, after, predictions = unrated(table)
    return tell(
        "And a film that nobody has rated? Put one more in the table, with gaps only. It stands "
        "in no error, so no error moves its numbers. The penalty alone does, towards 0: from "
        "{before} at random to {after}. Without a penalty they would stay at the random start. "
        "Its predicted ratings are {predictions}, the middle for everybody: nothing was learned "
        "about it. The same holds for a user without ratings. A gap is filled well only where "
        "both the user and the film have ratings elsewhere.",
        before=before,
        after=after,
        predictions=predictions,
    )
