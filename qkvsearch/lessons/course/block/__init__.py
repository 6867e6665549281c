"""Lesson 11: the whole block of a transformer, part by part, put together, and taken apart."""

from dataclasses import replace

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention
from qkvsearch.attention.layers import sinusoidal_positions
from qkvsearch.attention.symbols import numbered
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.block import parts, together
from qkvsearch.lessons.course.block.questions import quizzes
from qkvsearch.lessons.drawings import Flow
from qkvsearch.lessons.messages import mark, say
from qkvsearch.lessons.parts import Formula, Given, Matrix, Step, Table, step, tell
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench

TITLE = mark("The whole block of a transformer")
GOAL = mark("Say what stands around attention in a transformer, and what each part is for.")
MINUTES = 16

X = np.array([[1, 0, 2, 1], [0, 2, 1, 0], [1, 1, 0, 2], [2, 0, 1, 1]], dtype=float)
TOKENS = "abcd"
SWAPPED = [2, 1, 0, 3]
# Positions whose dot products are shown.
PLACES, WIDE = 6, 16


def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    found = [
        outside(),
        positions(),
        parts.residual(),
        parts.norm(),
        parts.feed_forward(),
        together.block(),
        together.taken_away(),
    ]
    return found, quizzes(*(one.found for one in found[1:]))


def outside() -> Step:
    names = [
        (say("positions"), say("say where a token stands"), say("each token by itself, once")),
        (say("attention, in heads"), say("takes from other tokens"), say("all tokens together")),
        (say("residual"), say("keeps what was there"), say("each token by itself")),
        (say("norm"), say("brings the numbers to one scale"), say("each token by itself")),
        (say("feed forward"), say("works on what was found"), say("each token by itself")),
    ]
    return step(
        "What stands around attention",
        tell(
            "A transformer is a *block*, again and again: the outputs of one are the inputs of the "
            "next, six times in a small model, a hundred times in a large one. Attention is one "
            "part of a block. Here are the others; each gets a step of its own."
        ),
        Formula(say("y = norm(x + attention(x))    z = norm(y + feed forward(y))")),
        Table(
            say("The parts, and what they are for"),
            [say("part"), say("what it does"), say("on what it works")],
            names,
        ),
        tell(
            "As many rows go in as come out, and they are as wide: so blocks can be stacked. (This "
            "is the block of “Attention Is All You Need”, Vaswani et al., 2017. Many "
            "newer models norm *before* each part in place of after it.)"
        ),
    )


# --- positions ---


def in_order(X: Array, P: Array, order: list[int]) -> tuple[Array, Array]:
    found = []
    for positions in (np.zeros_like(P), P):
        here, there = X + positions, X[order] + positions
        before, after = attention(here, here, here), attention(there, there, there)
        found.append(np.abs(after - before[order]).max(axis=1))
    without, with_positions = found
    return without, with_positions


def positions(x: Array = X, order: tuple[int, ...] = tuple(SWAPPED)) -> Step:
    """Added to the tokens, positions make attention notice that two of them changed places."""
    placed = sinusoidal_positions(len(x), x.shape[1], dtype=np.float64)
    cell, (without, noticed) = ran(in_order, X=x, P=placed, order=list(order))
    identity = np.eye(x.shape[1])
    bench = Workbench(
        name="placed",
        caption=say("These inputs have their positions. Give two tokens equal rows, and look."),
        matrices={
            "inputs": x + placed,
            "w_query": identity,
            "w_key": identity,
            "w_value": identity,
        },
        rows=TOKENS,
        columns=TOKENS,
    )
    many = sinusoidal_positions(PLACES, WIDE, dtype=np.float64)
    products = (many @ many.T).round(12)
    return step(
        "Positions",
        tell(
            "Attention by itself does not know in what order tokens stand (lesson 9). So a vector "
            "that says the place is *added* to each token, once, before the first block. These are "
            "sines and cosines, quick in the first columns and slower in the next:"
        ),
        Matrix(say("positions P"), placed, TOKENS, numbered(x.shape[1]), "input"),
        tell(
            "Why these? The dot product of two positions depends only on how far apart they are, "
            "not on where they are: along each diagonal of this matrix all numbers are equal, so "
            "“two places on” looks the same at the beginning of a text and at its end. Other "
            "models learn their positions, or turn queries and keys by them."
        ),
        Matrix(
            say("dot products of {n} positions, {d} numbers wide", n=PLACES, d=WIDE),
            products,
            numbered(PLACES),
            numbered(PLACES),
            "score",
        ),
        tell(
            "Let {first} and {second} change places. Without positions, the outputs come in the "
            "new order and are the same: they differ by {without}. With positions they differ: a "
            "token at another place is another input.",
            first=TOKENS[0],
            second=TOKENS[2],
            without=without.max().round(12),
        ),
        Table(
            say("how far each output is from what it was, two tokens having changed places"),
            ["", *(TOKENS[i] for i in order)],
            [
                [say("without positions"), *map(float, without.round(12))],
                [say("with positions"), *map(float, noticed)],
            ],
        ),
        Flow(
            "placed",
            say("Attention between tokens that know where they stand"),
            replace(bench, caption=""),
            asks=say("token that asks"),
            asked=say("token that is asked"),
        ),
        bench,
        points=(70,),
        found={"P": placed, "without": without, "noticed": noticed, "products": products},
        code=cell,
    )
