"""Lesson 8, one layer: no mask, padding as key and as query, and looking ahead."""

from dataclasses import replace

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention, padding_mask, softmax
from qkvsearch.attention.masks import add
from qkvsearch.attention.trace import Trace, trace_self_attention
from qkvsearch.lessons.cells import called, ran
from qkvsearch.lessons.drawings import Flow
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Formula, Matrix, Step, Table, arrays, step, tell
from qkvsearch.lessons.workbench import PROJECTED, MaskName, Workbench, mask_of

WORDS = ("I", "like", "coffee", "<PAD>")
# In place of −∞, in programs that avoid it.
FINITE = -1e9
SCORES = np.array([1.0, 2.0, 3.0, 4.0])


def under(bench: Workbench, mask: MaskName) -> Trace:
    return bench.trace(bench.matrices, mask=mask)


def visible(bench: Workbench, mask: MaskName) -> Array:
    """bool (n, n), True = may attend, for no mask, too."""
    n = len(bench.rows)
    found = mask_of(mask, n, n, bench.padded)
    return np.ones((n, n), dtype=bool) if found is None else found


def named(bench: Workbench) -> dict[str, Array]:
    """Its inputs and weights by the letters that a cell gives them."""
    letters = ("X", "W_Q", "W_K", "W_V")
    return {a: bench.matrices[b] for a, b in zip(letters, PROJECTED, strict=True)}


def attended(bench: Workbench) -> dict[str, Array]:
    """Queries, keys and values by theirs."""
    found = arrays(under(bench, "none"), "queries", "keys", "values")
    return {name[0].upper(): array for name, array in found.items()}


def raised(x: Array, token: int) -> Array:
    """1 added to the first number of one token: x (n, d_in) -> (n, d_in)."""
    moved = x.astype(float)
    moved[token, 0] += 1
    return moved


def outputs(X: Array, W_Q: Array, W_K: Array, W_V: Array, mask: Array | None = None) -> Array:
    return attention(X @ W_Q, X @ W_K, X @ W_V, mask=mask)


def influence(X: Array, W_Q: Array, W_K: Array, W_V: Array, mask: Array | None = None) -> Array:
    """How far each output moves when 1 is added to the first number of an input.

    -> (n, n): output of row i, input of column j; the largest change among the output's numbers.
    """
    before = outputs(X, W_Q, W_K, W_V, mask)
    after = [outputs(raised(X, token), W_Q, W_K, W_V, mask) for token in range(len(X))]
    return np.stack([np.abs(moved - before).max(axis=1) for moved in after], axis=1)


def influences(bench: Workbench, found: Array) -> Matrix:
    name = say("how far an output (row) moves with an input (column)")
    return Matrix(name, found, bench.rows, bench.rows, "output")


def no_mask(bench: Workbench) -> Step:
    found, (cell, moved) = under(bench, "none"), called(influence, **named(bench))
    return step(
        "No mask",
        tell(
            "Scores over √d, then softmax: every weight is above 0, so every token influences "
            "every token, and the padding counts like a word. To see it, 1 is added to the "
            "first number of one input at a time, and each output moves (shown is the largest "
            "change of one of its numbers):"
        ),
        Matrix.of(found["weights"], say("weights")),
        Flow(
            "none",
            say("Without a mask something flows from every token to every token"),
            replace(bench, mask="none", masks=("none",)),
            asks=say("token that asks"),
            asked=say("token that is asked"),
        ),
        influences(bench, moved),
        Matrix.of(found["outputs"], say("outputs")),
        points=(52,),
        found={**arrays(found, "weights", "outputs"), "influence": moved},
        code=cell,
    )


# --- padding ---


def with_mask_added(scaled: Array, keep: Array) -> tuple[Array, Array]:
    M = np.where(keep, 0.0, -np.inf)
    masked = add(scaled, M)
    return M, masked


def added(bench: Workbench) -> Step:
    """The mask as a matrix of 0 and −∞: the sum is what `attention` makes of a mask."""
    scaled, seen = under(bench, "padding")["scaled"], visible(bench, "padding")
    cell, (mask, masked) = ran(with_mask_added, scaled=np.asarray(scaled.array), keep=seen)
    tokens = bench.rows
    return step(
        "A mask is a matrix that is added",
        tell(
            "Hide a key by adding −∞ (minus infinity) to its score. Whatever the score was, "
            "−∞ + x = −∞, and exp(−∞) is exactly 0: so is the weight. Adding 0 changes "
            "nothing. The mask M, 0 or −∞ in each cell, is added before softmax: if a weight were "
            "made 0 after it, the others would stay as they are, and add up to less than 1."
        ),
        Formula("softmax(Q·Kᵀ/√d + M)·V"),
        Matrix(say("scores over √d"), scaled.array, tokens, tokens, "score"),
        Matrix(say("mask M for padding"), mask, tokens, tokens, "score", visible=seen),
        Matrix(say("masked scores"), masked, tokens, tokens, "score", visible=seen),
        points=(53,),
        found={"scaled": scaled.array, "mask": mask, "masked": masked},
        code=cell,
    )


def padding(bench: Workbench) -> Step:
    found, seen = under(bench, "padding"), visible(bench, "padding")
    cell, moved = called(influence, **named(bench), mask=seen)
    return step(
        "Padding",
        tell(
            "Column {last} is −∞ for every query, so its weights are exactly 0. The others "
            "share what it had: the rows still sum to {sums}. That holds for the padding's "
            "own row, too: it asks like any other.",
            last=bench.rows[-1],
            sums=found["weights"].array.sum(axis=1),
        ),
        Matrix.of(found["masked"], say("masked scores"), visible=seen),
        Matrix.of(found["weights"], say("weights"), visible=seen),
        tell(
            "Again 1 is added to one input at a time; look at column {last}:",
            last=bench.rows[-1],
        ),
        Flow(
            "padding",
            say("Nothing flows out of the padding, not even to its own row"),
            replace(bench, mask="padding", masks=("none", "padding")),
            asks=say("token that asks"),
            asked=say("token that is asked"),
        ),
        influences(bench, moved),
        tell(
            "Change the padding, and the words move by {words}. Only its own output moves.",
            words=moved[:-1, -1],
        ),
        points=(54,),
        found={**arrays(found, "masked", "weights", "outputs"), "influence": moved},
        code=cell,
    )


def without_padding(Q: Array, K: Array, V: Array, mask: Array) -> Array:
    return attention(Q, K, V, mask=mask)


def paddings_own_row(bench: Workbench) -> Step:
    """Row D holds no V_D: it moves with its query alone."""
    found = under(bench, "padding")
    q, k, v = attended(bench).values()
    seen, last = visible(bench, "padding"), len(q) - 1
    cell, value = ran(without_padding, Q=q, K=k, V=v, mask=seen)
    changed = {
        "query": (raised(q, last), k, v),
        "key": (q, raised(k, last), v),
        "value": (q, k, raised(v, last)),
    }
    moved = {
        name: np.abs(attention(*given, mask=seen) - value).max(axis=1)
        for name, given in changed.items()
    }
    titles = {
        "query": say("query of {token}", token=bench.rows[-1]),
        "key": say("key of {token}", token=bench.rows[-1]),
        "value": say("value of {token}", token=bench.rows[-1]),
    }
    return step(
        "The padding's own row",
        tell(
            "Is the padding's row, under the padding mask, about the padding? One may read so. "
            "Look at it in symbols, where {weight} is the weight that {last} "
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
        points=(54,),
        found={"symbols": found["outputs"].symbols, "outputs": value, "moved": moved},
        code=cell,
    )


# --- padding as key and as query ---


def uniform_where_empty(Q: Array, K: Array, V: Array, mask: Array) -> Array:
    return attention(Q, K, V, mask=mask, empty_rows="uniform")


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
    cell, value = ran(uniform_where_empty, **attended(bench), mask=mask)
    uniform = value[-1]
    masked = found["nan"]["masked"]
    return step(
        "Padding hidden on both sides",
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
        points=(56,),
        found={
            "masked": masked.array[-1],
            "rows": rows,
            "uniform": uniform,
            "mean": values.mean(axis=0),
            "outputs": value,
        },
        code=cell,
    )


def by_a_finite_number(scores: Array, number: float) -> tuple[Array, Array, Array]:
    replaced = softmax(np.full(len(scores), number))
    single = softmax(scores.astype("float32") + np.float32(number))
    double = softmax(scores + number)
    return replaced, single, double


def a_finite_number() -> Step:
    """T1: the mean is no law; it is what a finite number in place of −∞ does, and not always."""
    cell, value = ran(by_a_finite_number, scores=SCORES, number=FINITE)
    undefined = softmax(add(SCORES, np.full(len(SCORES), -np.inf)), empty_rows="nan")
    names = ("undefined", "replaced", "float32", "float64")
    rows = dict(zip(names, (undefined, *value), strict=True))
    finite = f"{FINITE:.0e}".replace("-", "−").replace("e+0", "e")
    ways = {
        "undefined": say("add −∞"),
        "replaced": say("replace by {finite}", finite=finite),
        "float32": say("add {finite}, in float32", finite=finite),
        "float64": say("add {finite}, in float64", finite=finite),
    }
    return step(
        "A finite number in place of −∞",
        tell(
            "One may read that hiding the padding on both sides makes its row uniform. "
            "With −∞ that is not so. It is where the scores are *replaced* by a finite number such "
            "as {finite} (−1 with nine zeros), or drown in one. Four scores, {scores}, all hidden:",
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
        points=(56,),
        found=rows,
        code=cell,
    )


# --- looking ahead ---


def look_ahead(bench: Workbench) -> Step:
    found, triangle = under(bench, "look-ahead"), visible(bench, "look-ahead")
    cell, moved = called(influence, **named(bench), mask=triangle)
    return step(
        "Look-ahead",
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
        points=(57,),
        found={
            **arrays(found, "masked", "weights", "outputs"),
            "symbols": found["outputs"].symbols,
            "influence": moved,
        },
        code=cell,
    )
