"""Lesson 8, padding as key and as query: a row of −∞ only, and what programs make of it."""

from __future__ import annotations

import numpy as np

from qkvsearch.attention.masks import add, padding_mask
from qkvsearch.attention.trace import trace, trace_self_attention
from qkvsearch.attention.weights import softmax
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Matrix, Step, Table, tell
from qkvsearch.lessons.workbench import PROJECTED, Workbench

# In place of −∞, in programs that avoid it.
FINITE = -1e9
SCORES = np.array([1.0, 2.0, 3.0, 4.0])


def both_sides(bench: Workbench) -> Step:
    """T1: a row of −∞ only has no softmax; a program must say what it makes of it."""
    keep = padding_mask([len(bench.rows) - bench.padded], size=len(bench.rows))
    mask = keep & keep.T
    x, *weights = (bench.matrices[name] for name in PROJECTED)
    found = {
        how: trace_self_attention(x, *weights, tokens=bench.rows, mask=mask, empty_rows=how)
        for how in ("nan", "zero", "uniform")
    }
    rows = {how: steps["weights"].array[-1] for how, steps in found.items()}
    values = found["uniform"]["values"].array
    uniform = found["uniform"]["outputs"].array[-1]
    masked = found["nan"]["masked"]
    return Step(
        say("Padding hidden on both sides"),
        [
            tell(
                "Why not hide the padding as a query, too? Then its row is −∞ throughout. Softmax "
                "divides exp(−∞) by their sum: 0/0, which is no number (NaN). A program must pick "
                "something, and here `empty_rows` names it:"
            ),
            Matrix.of(masked, say("masked scores"), visible=mask),
            Table(
                say("weights of row {last}", last=bench.rows[-1]),
                ["empty_rows", *bench.rows],
                [[how, *map(float, row)] for how, row in rows.items()],
            ),
            tell(
                "Uniform weights make the output of row {last} the mean of *all* values, {mean}, "
                "the padding's among them. The rows of the words are as before.",
                last=bench.rows[-1],
                mean=uniform,
            ),
        ],
        points=(56,),
        found={
            "masked": masked.array[-1],
            "rows": rows,
            "uniform": uniform,
            "mean": values.mean(axis=0),
            "outputs": found["uniform"]["outputs"].array,
        },
        code="attention(Q, K, V, mask=keep & keep.T, empty_rows='uniform')",
        result="outputs",
    )


def with_finite_bias(dtype: str) -> np.ndarray:
    """The weights (4,) of scores that the finite number is added to, in this precision."""
    query, keys = np.ones((1, 1), dtype), SCORES[:, None].astype(dtype)
    steps = trace(query, keys, keys, scale=1, bias=np.full(len(SCORES), FINITE, dtype))
    return np.asarray(steps["weights"].array[0])


def a_finite_number() -> Step:
    """T1: the mean is no law; it is what a finite number in place of −∞ does, and not always."""
    rows = {
        "undefined": softmax(add(SCORES, np.full(len(SCORES), -np.inf)), empty_rows="nan"),
        "replaced": softmax(np.full(len(SCORES), FINITE)),
        "float32": with_finite_bias("float32"),
        "float64": with_finite_bias("float64"),
    }
    finite = f"{FINITE:.0e}".replace("-", "−").replace("e+0", "e")
    ways = {
        "undefined": say("add −∞"),
        "replaced": say("replace by {finite}", finite=finite),
        "float32": say("add {finite}, in float32", finite=finite),
        "float64": say("add {finite}, in float64", finite=finite),
    }
    return Step(
        say("A finite number in place of −∞"),
        [
            tell(
                "It is often said that hiding the padding on both sides makes its row uniform. "
                "That is so only where the scores are *replaced* by a finite number such as "
                "{finite} (−1 with nine zeros). Four scores, {scores}, all hidden:",
                finite=finite,
                scores=SCORES,
            ),
            Table(
                say("weights of a row that is all hidden"),
                [say("way"), *(f"{score:.0f}" for score in SCORES)],
                [[ways[name], *map(float, row)] for name, row in rows.items()],
            ),
            tell(
                "*Adding* it depends on the precision. float32 keeps about seven digits, so the "
                "scores drown in the large number and all become equal. float64 keeps about "
                "sixteen: the scores survive, and the weights are as if nothing were hidden."
            ),
        ],
        points=(56,),
        found=rows,
        code=f"four = np.array({SCORES.tolist()})\n"
        f"print(softmax(four.astype('float32') + np.float32({FINITE:g})))\n"
        f"softmax(four + {FINITE:g})",
        result="float64",
    )
