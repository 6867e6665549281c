"""Lesson 3: a recommender that learns its embeddings from ratings, and the one you used."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch.lessons.cells import Cell, ran
from qkvsearch.lessons.course.recommender.by_hand import (
    a_bias,
    one_number,
    one_step,
    without_ratings,
)
from qkvsearch.lessons.course.recommender.descent import (
    MIDDLE,
    PENALTY,
    RATE,
    RATINGS,
    STEPS,
    WIDTH,
    by_nudging,
    fit,
    loss_and_gradients,
    start,
    walked,
)
from qkvsearch.lessons.course.recommender.questions import quizzes
from qkvsearch.lessons.drawings import Descent, Flow
from qkvsearch.lessons.messages import mark, marks, said, say
from qkvsearch.lessons.parts import Curve, Formula, Given, Matrix, Step, Table, step, tell
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench

TITLE = mark("A recommender that learns")
GOAL = mark("Learn embeddings of users and films from ratings, and fill the gaps.")
MINUTES = 15

USER_NAMES = marks("Ana", "Ben", "Chloe", "Dan", "Eve")
FILM_NAMES = marks("Car chase", "Spider-Man", "Space race", "Love story", "Wedding")


# Steps between two places that are drawn of the way.
EVERY = 5


def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    fitted = fit()
    steps = [ratings(), slope(), downhill(fitted), predicted(fitted), product(), reasons()]
    return steps, quizzes(steps[3], steps[5], said(FILM_NAMES), said(USER_NAMES))


def known_cells(ratings: np.ndarray) -> np.ndarray:
    known = ~np.isnan(ratings)
    return known


def ratings(table: np.ndarray = RATINGS) -> Step:
    cell, known = ran(known_cells, ratings=table)
    cells: list[list[str | float]] = [
        [name, *(float(rating) if is_known else "?" for rating, is_known in zip(*row, strict=True))]
        for name, *row in zip(said(USER_NAMES), table, known, strict=True)
    ]
    return step(
        "Ratings with gaps",
        tell(
            "{n} people rated films from one star to five. Nobody has seen everything: "
            "{gaps} cells are empty. What would they say of the films they have not seen?",
            n=len(table),
            gaps=int((~known).sum()),
        ),
        Table(say("Ratings; ? is a gap"), [say("user"), *said(FILM_NAMES)], cells),
        tell(
            "Until now the numbers of films and users were given. Nobody writes them down for "
            "thousands of films. So let a computer find them: {width} numbers for each user "
            "and film, such that their dot products come near the ratings that are known. "
            "What the columns mean is then up to the computer.",
            width=WIDTH,
        ),
        points=(7,),
        found={"ratings": table, "known": known},
        code=cell,
    )


def first_guess(ratings: np.ndarray, width: int) -> tuple[float, np.ndarray]:
    users, films = start(ratings.shape, width)
    loss, by_users, by_films = loss_and_gradients(users, films, ratings)
    return loss, np.vstack([by_users, by_films])


def slope(table: np.ndarray = RATINGS) -> Step:
    """The first guess, its loss, and the gradient by rule and by trial."""
    users, films = start(table.shape, WIDTH)
    names = said(USER_NAMES)
    cell, (loss, gradient) = ran(first_guess, ratings=table, width=WIDTH)
    nudged = np.vstack(by_nudging(users, films, table))
    return step(
        "Guess, and measure how wrong it is",
        tell(
            "Begin with random numbers. A prediction is the middle of the scale, {middle}, "
            "plus the dot product of user and film. The *loss* says how wrong the predictions "
            "are: the mean of the squared errors over the known ratings, plus a penalty "
            "for large numbers, which keeps guesses modest. At first it is {loss}.",
            middle=MIDDLE,
            loss=loss,
        ),
        Formula(
            say(
                "loss = mean(({middle} + u·m − r)²) + {penalty}·(Σu² + Σm²)",
                middle=MIDDLE,
                penalty=PENALTY,
            )
        ),
        Matrix(say("users U, random"), users, names, "12", "query"),
        Matrix(say("films M, random"), films, said(FILM_NAMES), "12", "key"),
        tell(
            "(u is a user's row, m a film's, r the rating; Σ says: add up.) For each number of "
            "U and M, ask: if it grows a little, how fast does the loss change? That is the "
            "*gradient*. Calculus gives it by a rule."
        ),
        *one_number(users, films, table, [names[0], *said(FILM_NAMES)]),
        tell(
            "To check the rule, nudge each number and measure again: the two differ by "
            "{difference} at most.",
            difference=np.abs(gradient - nudged).max(),
        ),
        _both_ways(gradient, nudged),
        points=(7,),
        found={"loss": loss, "gradient": gradient, "nudged": nudged},
        code=cell,
    )


def _both_ways(gradient: np.ndarray, nudged: np.ndarray) -> Table:
    """The gradient of the users, by rule and by trial."""
    rows = np.hstack([gradient, nudged])[: len(USER_NAMES)]
    return Table(
        say("Gradient of the users"),
        [
            say("user"),
            say("first, by rule"),
            say("second, by rule"),
            say("first, by nudging"),
            say("second, by nudging"),
        ],
        [[name, *map(float, row)] for name, row in zip(said(USER_NAMES), rows, strict=True)],
    )


def downhill(fitted: Cell) -> Step:
    users, films, losses = fitted.value
    penalty = PENALTY * ((users**2).sum() + (films**2).sum())
    return step(
        "Walk downhill",
        tell(
            "The gradient points uphill, to a larger loss. So move every number a little the "
            "other way, then compute the gradient anew, and repeat. The *learning rate* says how "
            "large each move is. This is *gradient descent*; what networks learn, they learn by "
            "it. (← means: becomes.)"
        ),
        Formula(say("u ← u − learning rate · gradient")),
        one_step(say(USER_NAMES[0])),
        walk(losses),
        Curve(say("loss"), say("steps"), losses),
        tell(
            "After {steps} steps the loss has fallen from {first} to {last}. Of that, {penalty} "
            "is the penalty: the predictions are wrong by {error}, squared and on average.",
            steps=len(losses) - 1,
            first=losses[0],
            last=losses[-1],
            penalty=penalty,
            error=losses[-1] - penalty,
        ),
        Matrix(say("users U, learned"), users, said(USER_NAMES), "12", "query"),
        Matrix(say("films M, learned"), films, said(FILM_NAMES), "12", "key"),
        points=(7,),
        found={"users": users, "films": films, "losses": losses},
        code=fitted,
    )


def walk(losses: np.ndarray, table: np.ndarray = RATINGS) -> Descent:
    """The same on a map."""
    users, films = walked(table, WIDTH, RATE, STEPS, every=EVERY)
    return Descent(
        "map",
        say("Watch the embeddings being learned: play it, step by step, and change the rate"),
        table,
        users,
        films,
        losses,
        every=EVERY,
        rate=RATE,
        middle=MIDDLE,
        penalty=PENALTY,
        user_names=said(USER_NAMES),
        item_names=said(FILM_NAMES),
    )


def all_ratings(users: np.ndarray, films: np.ndarray) -> np.ndarray:
    return MIDDLE + users @ films.T


def predicted(fitted: Cell, table: np.ndarray = RATINGS) -> Step:
    """What the learned embeddings say of every pair, gaps included."""
    users, films, _ = fitted.value
    cell, predictions = ran(all_ratings, users=users, films=films)
    bench = Workbench(
        name="ratings",
        caption=say("Change an embedding that was learned and see whose scores move."),
        matrices={"queries": users, "keys": films},
        rows=said(USER_NAMES),
        columns=said(FILM_NAMES),
        scale=1.0,
        normalize="none",
    )
    gaps = np.isnan(table)
    tips = np.where(gaps, predictions, -np.inf).argmax(axis=1)
    names = said(USER_NAMES)
    return step(
        "Fill the gaps",
        tell(
            "Users are the queries, films the keys, as in the lesson before: U·Mᵀ has a score "
            "for every pair, also where there was a gap. Add the middle of the scale and it "
            "is a predicted rating. On average the predictions differ from the known ratings by "
            "{error}.",
            error=np.abs(predictions - table)[~gaps].mean(),
        ),
        Matrix(say("predicted ratings"), predictions, names, said(FILM_NAMES), "score"),
        Table(
            say("The best film that somebody has not rated"),
            [say("user"), say("film"), say("predicted rating")],
            [
                [name, said(FILM_NAMES)[tip], float(predictions[i, tip])]
                for i, (name, tip) in enumerate(zip(names, tips, strict=True))
            ],
        ),
        without_ratings(table),
        recommended(users, films, gaps),
        bench,
        points=(7, 5, 6),
        found={
            "predictions": predictions,
            "tips": tips.tolist(),
            "gaps": gaps,
            "users": users,
            "films": films,
        },
        code=cell,
    )


def recommended(users: np.ndarray, films: np.ndarray, gaps: np.ndarray) -> Flow:
    """What was predicted as attention: rated films are hidden, and the values are the films."""
    own = Workbench(
        name="recommended",
        caption="",
        matrices={"queries": users, "keys": films, "values": np.eye(len(films))},
        rows=said(USER_NAMES),
        columns=said(FILM_NAMES),
        scale=1.0,
    )
    return Flow(
        "recommended",
        say(
            "To recommend, hide the films that a user has rated. The scores of the others become "
            "shares that add up to 1, by softmax (lesson 5)"
        ),
        own,
        asks=say("user"),
        asked=say("film"),
        seen=gaps,
    )


# Of `BiasedMF`, for a table this small: its defaults are made for thousands of users.
SETTINGS = {"n_components": WIDTH, "max_iter": 300, "damping": 1.0, "bias_reg": 1.0}


def by_biased_mf(ratings: np.ndarray, settings: dict[str, Any]) -> tuple[np.ndarray, float]:
    from qkvsearch import BiasedMF

    known = ~np.isnan(ratings)
    table = csr_matrix((ratings[known], known.nonzero()), shape=ratings.shape)
    model = BiasedMF(**settings, random_state=0).fit(table)
    u, m = np.indices(ratings.shape)
    return model.predict(u.ravel(), m.ravel()).reshape(ratings.shape), model.mean_


def product(table: np.ndarray = RATINGS) -> Step:
    """The package's model of ratings on the same table."""
    cell, (predictions, mean) = ran(by_biased_mf, ratings=table, settings=SETTINGS)
    return step(
        "The ratings that this program predicts",
        tell(
            "`qkvsearch` predicts ratings in the same way. Its model, `BiasedMF`, also learns "
            "who is generous and which film everybody likes, and keeps predictions on the "
            "scale. Fitted to the same table, it says:"
        ),
        Formula("r̂ = μ + bᵤ + bₘ + u·m"),
        tell(
            "Here r̂ is the predicted rating and μ the mean of all ratings, {mean}; bᵤ and bₘ say "
            "how far a user and a film are from it; the rest is the dot product that you know.",
            mean=mean,
        ),
        Matrix(
            say("ratings by BiasedMF"), predictions, said(USER_NAMES), said(FILM_NAMES), "score"
        ),
        *a_bias(mean, say(USER_NAMES[0]), say(FILM_NAMES[0]), table),
        points=(7,),
        found={"predictions": predictions, "mean": mean},
        code=cell,
    )


def by_history(ratings: np.ndarray, user: int, width: int) -> tuple[np.ndarray, ...]:
    from qkvsearch import ImplicitALS

    liked = csr_matrix(np.nan_to_num(ratings) > MIDDLE, dtype=np.float32)
    model = ImplicitALS(n_components=width, random_state=0).fit(liked)
    history = liked[user].indices
    contributions = model.factors_.history_vectors(history) @ model.item_embeddings_.T
    scores = model.fold_in(history) @ model.item_embeddings_.T
    return history, contributions, scores


def reasons(user: int = 0, table: np.ndarray = RATINGS) -> Step:
    """The package's recommendations, and what of a user's history each score is the sum of."""
    cell, (history, contributions, scores) = ran(by_history, ratings=table, user=user, width=WIDTH)
    films = said(FILM_NAMES)
    best = int(np.where(np.isnan(table[user]), scores, -np.inf).argmax())
    return step(
        "The recommendations, and the reason for each",
        tell(
            "To recommend, `qkvsearch` looks at likes only, here the ratings above {middle}. Its "
            "model, `ImplicitALS`, learns embeddings again: a film that somebody likes should get "
            "a score near 1, every other film a score near 0. {name} likes the films in the rows "
            "below. Their numbers come from the embeddings that were learned.",
            middle=MIDDLE,
            name=said(USER_NAMES)[user],
        ),
        Matrix(
            say("what each liked film adds"),
            contributions,
            [films[i] for i in history],
            films,
            "weighted",
        ),
        Matrix(
            say("scores: the sum of each column"),
            scores[None],
            [said(USER_NAMES)[user]],
            films,
            "score",
        ),
        tell(
            "A user's embedding is a sum over the films of their history, so a score is one, too. "
            "That is the reason given with every recommendation, and what the rows add up to is "
            "the score itself: they differ by {difference}. Among films not yet rated, {film} "
            "comes first, with a score of {score}: `qkvsearch recommend --explain` shows such "
            "sums.",
            difference=np.abs(contributions.sum(axis=0) - scores).max(),
            film=films[best],
            score=scores[best],
        ),
        points=(7, 5),
        found={
            "history": history.tolist(),
            "contributions": contributions,
            "scores": scores,
            "best": best,
        },
        code=cell,
    )
