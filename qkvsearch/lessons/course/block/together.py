"""Lesson 11, the parts together: a block by hand and by the layer, and what each part is for."""

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention.layers import EncoderLayer, sinusoidal_positions
from qkvsearch.attention.symbols import numbered
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.block.parts import HEADS, TOKENS, WIDTH, alike, drawn, through
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Formula, Matrix, Step, Table, step, tell

SMALL = 4
BLOCKS = 4
SWAPPED = [2, 1, 0, 3, 4, 5]


def by_parts(x: Array, n_heads: int) -> tuple[Array, Array]:
    block = EncoderLayer.create(x.shape[1], n_heads, 4 * x.shape[1], rng=0, dtype=np.float64)
    y = block.attention_norm(x + block.attention(x))
    z = block.feed_forward_norm(y + block.feed_forward(y))
    return z, block(x)


def block(n: int = 3, d: int = SMALL) -> Step:
    """Positions, attention, residual, norm, feed forward, residual, norm."""
    x = np.random.default_rng(1).normal(size=(n, d)).round(1)
    placed = x + sinusoidal_positions(n, d, dtype=np.float64)
    cell, (by_hand, by_layer) = ran(by_parts, x=placed, n_heads=HEADS)
    apart = float(np.abs(by_hand - by_layer).max().round(12))
    sizes = counted(d)
    tokens = numbered(n)
    return step(
        "All parts at once",
        tell(
            "Now the whole block, with random weights: positions are added, {heads} heads attend, "
            "what they found is added and normed, feed forward works on it, and that is added and "
            "normed, too.",
            heads=HEADS,
        ),
        Matrix(say("inputs with positions"), placed, tokens, numbered(d), "input"),
        Formula(say("y = norm(x + attention(x))    z = norm(y + feed forward(y))")),
        Matrix(say("outputs z"), by_hand, tokens, numbered(d), "output"),
        tell(
            "Part by part and by the layer `EncoderLayer` of this program, the outputs differ by "
            "{apart}. Where do the numbers sit that are learned? For vectors of {d} numbers, with "
            "biases (attention has four matrices of {d} × {d} and four biases of {d}):",
            apart=apart,
            d=d,
        ),
        Table(
            say("Numbers learned in a block"),
            [say("part"), say("numbers")],
            [[name, float(size)] for name, size in sizes.items()],
        ),
        tell(
            "Most of them are in feed forward, as in every transformer of this form: it is four "
            "times as wide in the middle. Attention moves things between tokens, and needs fewer."
        ),
        points=(67, 68, 69, 70),
        found={"by_hand": by_hand, "by_layer": by_layer, "apart": apart, "sizes": sizes},
        code=cell,
    )


def counted(d: int) -> dict[str, int]:
    """How many numbers each part of a block learns, biases included."""
    layer = EncoderLayer.create(d, HEADS, 4 * d, rng=0)
    attend, forward = layer.attention, layer.feed_forward
    linear = {
        say("attention"): (attend.query, attend.key, attend.value, attend.output),
        say("feed forward"): (forward.hidden, forward.output),
    }
    norms = (layer.attention_norm, layer.feed_forward_norm)
    found = {
        name: sum(part.weight.size + (0 if part.bias is None else part.bias.size) for part in of)
        for name, of in linear.items()
    }
    return {**found, say("norms"): sum(one.weight.size + one.bias.size for one in norms)}


def without_each(x: Array, n_blocks: int, order: list[int]) -> Array:
    parts = ("positions", "residual", "norm", "forward")
    found = []
    for left_out in (None, *parts):
        keep = {name: name != left_out for name in parts[1:]}
        P = sinusoidal_positions(len(x), x.shape[1], dtype=np.float64) * (left_out != "positions")
        here, there = (through(z + P, n_blocks, **keep)[-1] for z in (x, x[order]))
        noticed = np.abs(there - here[order]).max() / here.std()
        found.append([alike(here), here.std(), noticed.round(12)])
    return np.array(found)


def taken_away(x: Array | None = None) -> Step:
    """Each part left out, and what becomes of the tokens, of their size, and of the order."""
    x = drawn() if x is None else x
    cell, value = ran(without_each, x=x, n_blocks=BLOCKS, order=SWAPPED)
    names = [
        say("nothing"),
        say("positions"),
        say("the residual"),
        say("the norm"),
        say("feed forward"),
    ]
    return step(
        "Take a part away",
        tell(
            "What is each part for? {n} blocks with random weights read {tokens} tokens of {d} "
            "numbers, each time with one part left out. Three things are measured: how alike the "
            "tokens become, how far the numbers spread, and how far outputs move when two tokens "
            "change places (each output beside its own token's). Positions are added first, which "
            "makes tokens more alike than in step 3.",
            n=BLOCKS,
            tokens=TOKENS,
            d=WIDTH,
        ),
        Table(
            say("{n} blocks, one part left out", n=BLOCKS),
            [say("left out"), say("how alike"), say("spread"), say("order is noticed")],
            [[name, *map(float, row)] for name, row in zip(names, value, strict=True)],
        ),
        tell(
            "Without positions, changing places moves nothing: {order}. Without the residual the "
            "tokens are alike, {alike}. Without the norm the numbers spread to {spread}. Without "
            "feed forward none of the three breaks down: what is missing then is what step 5 "
            "showed, that a token can be worked on and not only mixed.",
            order=value[1, 2],
            alike=value[2, 0],
            spread=value[3, 1],
        ),
        points=(67, 68, 69, 70),
        found={"measures": value},
        code=cell,
    )
