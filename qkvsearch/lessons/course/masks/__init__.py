"""Lesson 8: masks, step by step on four tokens in one layer, the last of them padding."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy import ndarray as Array

from qkvsearch.errors import DataError
from qkvsearch.lessons.cells import given as given_values
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.masks import layers, one_layer
from qkvsearch.lessons.course.masks.one_layer import WORDS, named, outputs, under, visible
from qkvsearch.lessons.course.masks.questions import quizzes
from qkvsearch.lessons.drawings import Flow
from qkvsearch.lessons.messages import mark, say
from qkvsearch.lessons.own_numbers import with_own
from qkvsearch.lessons.parts import Formula, Given, Matrix, Step, step, tell
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import MASKS, PROJECTED, Workbench

TITLE = mark("Masks, or what a token may attend to")
GOAL = mark("Say what each mask does, and why it is needed in every layer.")
MINUTES, FURTHER = 27, 9
TAKES = (*PROJECTED, "mask")

X = np.array([[1, 0, 2], [0, 1, 1], [1, 1, 0], [2, 0, 1]], dtype=float)
W_QUERY = np.array([[1, 0], [0, 1], [1, 1]], dtype=float)
W_KEY = np.array([[0, 1], [1, 0], [1, 0]], dtype=float)
W_VALUE = np.array([[1, 1], [2, 0], [0, 1]], dtype=float)
TOKENS = "abcD"
FEWEST, NARROWEST = 3, 3


def projected(X: Array, W_K: Array, W_Q: Array, W_V: Array) -> tuple[Array, Array, Array]:
    K, Q, V = X @ W_K, X @ W_Q, X @ W_V
    return K, Q, V


def scored(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    scores = Q @ K.T
    return scores


@np.errstate(all="ignore")  # the reader's numbers may be too large for exp
def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    bench = workbench(given)
    core = [
        tokens(bench),
        scores(bench),
        one_layer.no_mask(bench),
        one_layer.added(bench),
        one_layer.padding(bench),
        one_layer.look_ahead(bench),
        side_by_side(bench),
        layers.every_layer(bench),
    ]
    further = [
        projections(bench),
        one_layer.paddings_own_row(bench),
        layers.batches(bench),
        one_layer.both_sides(bench),
        one_layer.a_finite_number(),
        layers.passes(),
        layers.order_stays(bench),
        layers.no_mixing(bench),
    ]
    further.append(answers([*core, *further]))
    beyond = [replace(step, is_further=True) for step in further]
    return [*core, *beyond], quizzes(bench, core[-1].found["moved"])


def workbench(given: Given) -> Workbench:
    """Tokens a, b, c and the padding D, or the reader's, of which the last is the padding.

    Raises `DataError` for fewer than three, which leaves nothing to attend to, and for inputs of
    fewer than three numbers, of which LayerNorm leaves nothing, or a sign.
    """
    if given.inputs is not None and len(given.inputs) < FEWEST:
        raise DataError(
            f"`inputs`: {len(given.inputs)} rows are too few to mask, give {FEWEST} or more, the "
            "last of which is the padding"
        )
    if given.inputs is not None and given.inputs.shape[1] < NARROWEST:
        raise DataError(
            f"`inputs`: {given.inputs.shape[1]} columns are too few for a transformer's layers, "
            f"which bring the numbers of a row to one scale; give {NARROWEST} or more"
        )
    own = Workbench(
        name="masks",
        caption=say(
            "Choose a mask (“both” hides padding and what comes later), then edit the last input."
        ),
        matrices={"inputs": X, "w_query": W_QUERY, "w_key": W_KEY, "w_value": W_VALUE},
        rows=TOKENS,
        columns=TOKENS,
        masks=MASKS,
        padded=1,
    )
    return with_own(own, given)


# --- before the mask ---


def tokens(bench: Workbench) -> Step:
    arrays = {name: bench.matrices[name] for name in PROJECTED}
    letters = dict(zip(PROJECTED, ("X", "W_Q", "W_K", "W_V"), strict=True))
    found = under(bench, "none")
    return step(
        "Tokens, the last of them padding",
        tell(
            "The tokens here are called {tokens}. Think of “{words}”: sentences are computed "
            "together, so shorter ones are filled up. A filler is *padding*, written {pad}. It "
            "means nothing and should change nothing. Here it is always the last, {last}.",
            tokens=say(", ").join(bench.rows),
            last=bench.rows[-1],
            words=" ".join(WORDS),
            pad=WORDS[-1],
        ),
        tell(
            "Three questions to keep in mind. Why must the mask be applied in every layer? Why "
            "is padding hidden as a key, and not as a query too? Do the weight matrices mix up "
            "the order of the tokens?"
        ),
        *(Matrix.of(found[name], letters[name]) for name in arrays),
        found=arrays,
        code=given_values(**named(bench)),
    )


def projections(bench: Workbench) -> Step:
    found = under(bench, "none")
    names = ("queries", "keys", "values")
    cell, (keys, queries, values) = ran(projected, **named(bench))
    return step(
        "Queries, keys and values",
        tell(
            "In symbols, a1 is the first number of a, and q11, q21 stand in the first column "
            "of W_Q. Every row holds the letter of one token only: a query is made of its own "
            "token and of no other. Put the numbers in, and the symbols give the numbers."
        ),
        Matrix.of(found["queries"], say("queries Q"), symbols=True),
        Matrix.of(found["keys"], say("keys K"), symbols=True),
        Matrix.of(found["values"], say("values V"), symbols=True),
        points=(47,),
        found={
            **dict(zip(names, (queries, keys, values), strict=True)),
            "symbols": {name: found[name].symbols for name in names},
            "evaluated": {name: found[name].evaluated() for name in names},
        },
        code=cell,
    )


def scores(bench: Workbench) -> Step:
    found = under(bench, "none")["scores"]
    queries, keys = ([f"{t}_{letter}" for t in bench.rows] for letter in "QK")
    q, k, _ = one_layer.attended(bench).values()
    cell, value = ran(scored, Q=q, K=k)
    return step(
        "Every query against every key",
        tell(
            "Row {row} holds the scores of {first}'s query, column {column} those of {last}'s "
            "key. So a *row* is a token that asks, a *column* a token that is asked. A mask "
            "decides who may ask whom.",
            row=queries[0],
            first=bench.rows[0],
            column=keys[-1],
            last=bench.rows[-1],
        ),
        Formula("Q·Kᵀ"),
        replace(Matrix.of(found, say("scores"), symbols=True), rows=queries, columns=keys),
        points=(49,),
        found={"scores": value, "rows": queries, "columns": keys, "symbols": found.symbols},
        code=cell,
    )


# --- after it ---


def under_each(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, padding: Array, look_ahead: Array
) -> Array:
    return np.stack([outputs(X, W_Q, W_K, W_V, mask) for mask in (None, padding, look_ahead)])


def side_by_side(bench: Workbench) -> Step:
    found = {name: under(bench, name)["outputs"] for name in ("none", "padding", "look-ahead")}
    titles = (say("outputs, no mask"), say("outputs, padding"), say("outputs, look-ahead"))
    arrays = {name: output.array for name, output in found.items()}
    hidden = {"padding": visible(bench, "padding"), "look_ahead": visible(bench, "look-ahead")}
    cell, value = ran(under_each, **named(bench), **hidden)
    # The reader's choice, where it is not among the three.
    both = under(bench, "both")["outputs"]
    own = [Matrix.of(both, say("outputs, both"))] if bench.mask == "both" else []
    last = np.abs(arrays["none"] - arrays["look-ahead"])[-1].max()
    last_word = np.abs(arrays["padding"] - arrays["look-ahead"])[-2].max()
    return step(
        "The three side by side",
        tell(
            "The same scores, three masks, three results. Some rows agree all the same: {last} "
            "sees everything with no mask and under look-ahead (difference {with_none}), and "
            "{word} sees the tokens up to itself under padding and under look-ahead "
            "(difference {with_padding}).",
            last=bench.rows[-1],
            with_none=last,
            word=bench.rows[-2],
            with_padding=last_word,
        ),
        *(Matrix.of(output, title) for output, title in zip(found.values(), titles, strict=True)),
        *own,
        Flow(
            "masks",
            say("Choose a mask, and see what still flows"),
            bench,
            asks=say("token that asks"),
            asked=say("token that is asked"),
        ),
        bench,
        points=(59,),
        found={**arrays, "all": value, "differences": (last, last_word)},
        code=cell,
    )


def answers(earlier: Sequence[Step]) -> Step:
    """The opening questions again, each with the step and the number that answer it."""
    found = {
        point: next(step for step in earlier if point in step.points) for point in (60, 56, 48)
    }
    places = {point: earlier.index(step) + 1 for point, step in found.items()}
    moved = found[60].found["moved"]
    return step(
        "The three questions, answered",
        tell(
            "Why in every layer? (step {step}) With the mask in the first layer only, the "
            "second lets the padding back in: the other tokens moved by up to {first}. With "
            "the mask in both, by {both}.",
            step=places[60],
            first=moved["first"].max(),
            both=moved["both"].max(),
        ),
        tell(
            "Why not hide padding as a query too? (step {step}) Its row would have nothing "
            "to attend to, {row}, and what comes out depends on the program. Its output is "
            "thrown away anyway.",
            step=places[56],
            row=found[56].found["masked"],
        ),
        tell(
            "Do the weight matrices mix up the order? (step {step}) No: they work on each row by "
            "itself. Tokens in another order give the same outputs in that order (difference "
            "{difference}).",
            step=places[48],
            difference=found[48].found["difference"],
        ),
        points=(62,),
        found={"steps": places},
    )
