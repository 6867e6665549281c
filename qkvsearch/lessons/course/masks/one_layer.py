"""Lesson 8, one layer: no mask, padding, and looking ahead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qkvsearch.attention.functional import attention
from qkvsearch.attention.masks import add
from qkvsearch.attention.trace import Trace
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Formula, Matrix, Step, Table, tell
from qkvsearch.lessons.workbench import MaskName, Workbench, mask_of

WORDS = ("I", "like", "coffee", "<PAD>")


def under(bench: Workbench, mask: MaskName) -> Trace:
    return bench.trace(bench.matrices, mask=mask)


def visible(bench: Workbench, mask: MaskName) -> np.ndarray:
    """bool (n, n), True = may attend, for no mask, too."""
    n = len(bench.rows)
    found = mask_of(mask, n, n, bench.padded)
    return np.ones((n, n), dtype=bool) if found is None else found


def influence(bench: Workbench, mask: MaskName) -> np.ndarray:
    """How far each output moves when 1 is added to the first number of an input.

    -> (n, n): output of row i, input of column j; the largest change among the output's numbers.
    """
    before = bench.steps(mask=mask)["outputs"]
    x = bench.matrices["inputs"]
    columns = []
    for j in range(len(x)):
        moved = bench.steps({"inputs": raised(x, j)}, mask=mask)["outputs"]
        columns.append(np.abs(moved - before).max(axis=1))
    return np.stack(columns, axis=1)


def influences(bench: Workbench, found: np.ndarray) -> Matrix:
    name = say("how far an output (row) moves with an input (column)")
    return Matrix(name, found, bench.rows, bench.rows, "output")


def raised(x: np.ndarray, token: int) -> np.ndarray:
    """1 added to the first number of one token: x (n, d_in) -> (n, d_in)."""
    moved = x.astype(float)
    moved[token, 0] += 1
    return moved


# In a notebook, `influence` once and then by name.
INFLUENCE = """def outputs(x, mask=None):
    return attention(x @ W_Q, x @ W_K, x @ W_V, mask=mask)

def influence(mask=None):
    columns = []
    for j in range(len(X)):
        raised = X.copy()
        raised[j, 0] += 1
        columns.append(np.abs(outputs(raised, mask) - outputs(X, mask)).max(axis=1))
    return np.stack(columns, axis=1)
"""


def no_mask(bench: Workbench) -> Step:
    found, moved = under(bench, "none"), influence(bench, "none")
    return Step(
        say("No mask"),
        [
            tell(
                "Scores over √d, then softmax: every weight is above 0, so every token influences "
                "every token, and the padding counts like a word. To see it, 1 is added to the "
                "first number of one input at a time, and each output moves:"
            ),
            Matrix.of(found["weights"], say("weights")),
            influences(bench, moved),
            Matrix.of(found["outputs"], say("outputs")),
        ],
        points=(52,),
        found={
            "weights": found["weights"].array,
            "outputs": found["outputs"].array,
            "influence": moved,
        },
        code=f"{INFLUENCE}\ninfluence()",
        result="influence",
    )


# --- padding ---


def added(bench: Workbench) -> Step:
    """The mask as a matrix of 0 and −∞: the sum is what `attention` makes of a mask."""
    scaled = under(bench, "padding")["scaled"]
    seen = visible(bench, "padding")
    mask = np.where(seen, 0.0, -np.inf)
    masked = add(np.asarray(scaled.array), mask)
    tokens = bench.rows
    return Step(
        say("A mask is a matrix that is added"),
        [
            tell(
                "Hide a key by adding −∞ (minus infinity) to its score. Whatever the score was, "
                "−∞ + x = −∞, and exp(−∞) is exactly 0: so is the weight. Adding 0 changes "
                "nothing. The mask M, 0 or −∞ in each cell, is added before softmax:"
            ),
            Formula("softmax(Q·Kᵀ/√d + M)·V"),
            Matrix(say("scores over √d"), scaled.array, tokens, tokens, "score"),
            Matrix(say("mask M for padding"), mask, tokens, tokens, "score", visible=seen),
            Matrix(say("masked scores"), masked, tokens, tokens, "score", visible=seen),
        ],
        points=(53,),
        found={"scaled": scaled.array, "mask": mask, "masked": masked},
        code="from qkvsearch.attention import look_ahead_mask, padding_mask\n"
        "keep = padding_mask([len(X) - 1], size=len(X))\n"
        "M = np.where(keep, 0, -np.inf)\nmasked = scores / np.sqrt(K.shape[1]) + M\nmasked",
        result="masked",
    )


def padding(bench: Workbench) -> Step:
    found, moved = under(bench, "padding"), influence(bench, "padding")
    weights, seen = found["weights"].array, visible(bench, "padding")
    words = WORDS if tuple(bench.rows) == tuple("abcD") else bench.rows
    return Step(
        say("Padding"),
        [
            tell(
                "Column {last} is −∞ for everybody who asks, so its weights are exactly 0. The "
                "others share what it had: the rows still sum to {sums}. That holds for the "
                "padding's own row, too: it asks like any other.",
                last=bench.rows[-1],
                sums=weights.sum(axis=1),
            ),
            replace(
                Matrix.of(found["masked"], say("masked scores"), visible=seen),
                rows=words,
                columns=words,
            ),
            Matrix.of(found["weights"], say("weights"), visible=seen),
            tell(
                "Again 1 is added to one input at a time; look at column {last}:",
                last=bench.rows[-1],
            ),
            influences(bench, moved),
            tell(
                "Change the padding, and the words move by {words}. Only its own output moves.",
                words=moved[:-1, -1],
            ),
        ],
        points=(54,),
        found={
            "masked": found["masked"].array,
            "weights": weights,
            "outputs": found["outputs"].array,
            "influence": moved,
            "words": words,
        },
        code="influence(keep)",
        result="influence",
    )


def paddings_own_row(bench: Workbench) -> Step:
    """Row D holds no V_D: it moves with its query alone."""
    found = under(bench, "padding")
    q, k, v = (found[name].array for name in ("queries", "keys", "values"))
    seen, last = visible(bench, "padding"), len(q) - 1
    outputs = attention(q, k, v, mask=seen)
    changed = {
        "query": (raised(q, last), k, v),
        "key": (q, raised(k, last), v),
        "value": (q, k, raised(v, last)),
    }
    moved = {
        name: np.abs(attention(*given, mask=seen) - outputs).max(axis=1)
        for name, given in changed.items()
    }
    titles = {
        "query": say("query of {token}", token=bench.rows[-1]),
        "key": say("key of {token}", token=bench.rows[-1]),
        "value": say("value of {token}", token=bench.rows[-1]),
    }
    return Step(
        say("The padding's own row"),
        [
            tell(
                "Some texts say that under the padding mask, the padding's row is about the "
                "padding. Look at it in symbols, where {weight} is the weight that {last} "
                "gives to {first}: there is no term with {last}'s own value. The row is a mix of "
                "the words, and all that speaks for {last} in it is its query.",
                weight=f"S_{bench.rows[-1]}{bench.rows[0]}",
                first=bench.rows[0],
                last=bench.rows[-1],
            ),
            Matrix.of(found["outputs"], say("outputs"), symbols=True),
            Table(
                say("1 is added to the first number of one of these: how far outputs move"),
                ["", *bench.rows],
                [[titles[name], *map(float, far)] for name, far in moved.items()],
            ),
            tell("Nobody reads this row: a program drops the padding's output at the end."),
        ],
        points=(54,),
        found={"symbols": found["outputs"].symbols, "outputs": outputs, "moved": moved},
        code="attention(Q, K, V, mask=keep)",
        result="outputs",
    )


# --- looking ahead ---


def look_ahead(bench: Workbench) -> Step:
    found, moved = under(bench, "look-ahead"), influence(bench, "look-ahead")
    triangle = visible(bench, "look-ahead")
    return Step(
        say("Look-ahead"),
        [
            tell(
                "A model that writes may not see what comes later. So each token sees itself and "
                "those before it. The hidden cells form a triangle. {first} sees only itself and "
                "has weight {one}; {second} shares its weight between two; {last} sees all.",
                first=bench.rows[0],
                one=found["weights"].array[0, 0],
                second=bench.rows[1],
                last=bench.rows[-1],
            ),
            Matrix.of(found["masked"], say("masked scores"), visible=triangle),
            Matrix.of(found["weights"], say("weights"), visible=triangle),
            Matrix.of(found["outputs"], say("outputs"), symbols=True),
            tell("A later token cannot influence an earlier one: above the diagonal all is 0."),
            influences(bench, moved),
        ],
        points=(57,),
        found={
            "masked": found["masked"].array,
            "weights": found["weights"].array,
            "outputs": found["outputs"].array,
            "symbols": found["outputs"].symbols,
            "influence": moved,
        },
        code="past = look_ahead_mask(len(X))\ninfluence(past)",
        result="influence",
    )
