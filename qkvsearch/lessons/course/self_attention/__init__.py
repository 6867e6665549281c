"""Lesson 7: self-attention in eight steps, from three inputs to three outputs."""

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention, softmax
from qkvsearch.attention.trace import Trace, project
from qkvsearch.lessons.cells import given as named
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.compute.self_attention import W_KEY, W_QUERY, W_VALUE, X
from qkvsearch.lessons.course.self_attention.questions import quizzes
from qkvsearch.lessons.course.self_attention.text import with_the_text
from qkvsearch.lessons.drawings import Flow
from qkvsearch.lessons.messages import mark, say
from qkvsearch.lessons.own_numbers import with_own
from qkvsearch.lessons.parts import Formula, Given, Matrix, Step, Text, arrays, step, tell
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import MASKS, PROJECTED, Workbench

TITLE = mark("Self-attention in eight steps")
GOAL = mark("Compute a self-attention layer by hand, from inputs to outputs.")
MINUTES = 11
TAKES = (*PROJECTED, "mask")

# Columns that a wider W_V has more.
MORE = 2
MATRICES = {"inputs": X, "w_query": W_QUERY, "w_key": W_KEY, "w_value": W_VALUE}


@np.errstate(all="ignore")  # the reader's numbers may be too large for exp
def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    bench = workbench(given)
    steps = bench.trace(bench.matrices)
    before = [inputs(steps), weights(steps), projections(steps), scores(steps)]
    after = [
        by_softmax(bench, steps),
        weighted(steps),
        first_output(steps),
        all_outputs(bench, steps),
    ]
    return [*before, *(with_the_text(after, steps) if is_the_texts(bench) else after)], quizzes(
        steps, is_masked=bench.visible is not None
    )


def workbench(given: Given) -> Workbench:
    """The eight steps' numbers, or the reader's."""
    own = Workbench(
        name="layer",
        caption=say("Change an input or a weight, or hide keys, and follow it to the outputs."),
        matrices=MATRICES,
        rows="abc",
        columns="abc",
        masks=MASKS,
        padded=1,
        scale=1.0,
    )
    return with_own(own, given)


def is_the_texts(bench: Workbench) -> bool:
    """Whether it holds the numbers of the text that the steps come from, and no mask."""
    return bench.visible is None and all(
        np.array_equal(bench.matrices[name], own) for name, own in MATRICES.items()
    )


# --- the eight steps ---


def inputs(steps: Trace) -> Step:
    x = steps["inputs"].array
    return step(
        "Prepare the inputs",
        tell(
            "Self-attention takes a row of numbers for each of {n} inputs and gives as many "
            "outputs, each a mix of all inputs. In a text, an input is the vector of a word. "
            "Throughout the course a matrix is marked by what it is, in words and, where there is "
            "colour, by colour: input, query, key, value, score, weights, weighted value, output.",
            n=len(x),
        ),
        Matrix.of(steps["inputs"], say("inputs X")),
        points=(35, 36, 46),
        found={"inputs": x},
        code=named(X=x),
    )


def weights(steps: Trace) -> Step:
    shape = steps["w_key"].array.shape
    names = {"w_key": "W_K", "w_query": "W_Q", "w_value": "W_V"}
    given = arrays(steps, *names)
    return step(
        "Take three weight matrices",
        tell(
            "One matrix makes keys, one makes queries, one makes values. Each has as many "
            "rows as an input has numbers, {d_in}, and as many columns as its result. They are "
            "given here; the last lesson shows how a network starts them and learns them.",
            d_in=shape[0],
        ),
        tell(
            "Take care: the word *weight* has two meanings. The numbers in such a *weight matrix* "
            "are called weights; they are learned, and stay as they are while the layer is used. "
            "An *attention weight* comes out of softmax, and is computed anew for every input."
        ),
        *(Matrix.of(steps[name], letter) for name, letter in names.items()),
        points=(35, 36, 37),
        found=given,
        code=named(**{names[name]: array for name, array in given.items()}),
    )


def projected(X: Array, W_K: Array, W_Q: Array, W_V: Array) -> tuple[Array, Array, Array]:
    K, Q, V = X @ W_K, X @ W_Q, X @ W_V
    return K, Q, V


def projections(steps: Trace) -> Step:
    """K, Q and V; again input by input; with a bias; and values that are five wide."""
    x, w_value = steps["inputs"].array, steps["w_value"].array
    cell, value = ran(
        projected, X=x, W_K=steps["w_key"].array, W_Q=steps["w_query"].array, W_V=w_value
    )
    found = dict(zip(("keys", "queries", "values"), value, strict=True))
    singly, wide = projected_singly(x, w_value), x @ wider(w_value)
    zeros, ones = (biased(x, w_value, bias) for bias in (0.0, 1.0))
    apart, moved = (float(np.abs(a - found["values"]).max().round(12)) for a in (zeros, ones))
    return step(
        "Derive key, query and value",
        tell(
            "Every input is multiplied by the three matrices: all inputs at once, or one by "
            "one, which gives the same. A layer may add a *bias* to every row, a number for "
            "each column. A bias of zeros changes V by {apart}, a bias of ones adds {moved} to "
            "every number of V.",
            apart=apart,
            moved=moved,
        ),
        tell(
            "Values may be wider or narrower than keys, and outputs are as wide as values. If "
            "W_V had {d_v} columns, so would V.",
            d_v=wide.shape[1],
        ),
        Formula("K = X·W_K    Q = X·W_Q    V = X·W_V"),
        Formula("X·W + b"),
        Matrix.of(steps["keys"], say("keys K"), symbols=True),
        Matrix.of(steps["queries"], say("queries Q"), symbols=True),
        Matrix.of(steps["values"], say("values V"), symbols=True),
        points=(35, 36, 37, 39, 40, 41),
        found={**found, "singly": singly, "no_bias": zeros, "biased": ones, "wide": wide},
        code=cell,
    )


def scored(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    scores = Q @ K.T
    return scores


def scores(steps: Trace) -> Step:
    cell, array = ran(scored, Q=steps["queries"].array, K=steps["keys"].array)
    return step(
        "Score every query against every key",
        tell(
            "A score is the dot product of a query and a key: how well the key answers. The "
            "first query against the keys gives {row}. These eight steps leave scores "
            "unscaled; a transformer divides them by the root of the keys' width.",
            row=array[0],
        ),
        Formula("Q·Kᵀ"),
        Matrix.of(steps["scores"], say("scores"), symbols=True),
        points=(35, 39, 41),
        found={"scores": array},
        code=cell,
    )


def weighed(scores: np.ndarray) -> np.ndarray:
    weights = softmax(scores)
    return weights


def weighed_under(scores: np.ndarray, keep: np.ndarray) -> np.ndarray:
    masked = np.where(keep, scores, -np.inf)
    weights = softmax(masked)
    return weights


def by_softmax(bench: Workbench, steps: Trace) -> Step:
    raw, keep = steps["scores"].array, bench.visible
    run = ran(weighed, scores=raw) if keep is None else ran(weighed_under, scores=raw, keep=keep)
    cell, array = run
    return step(
        "Turn scores into weights by softmax",
        *hiding(bench, steps),
        tell(
            "Softmax makes each row positive and lets it add up to 1: exp of each score, over "
            "the sum of its row. Row by row, the sums are {sums}.",
            sums=array.sum(axis=1),
        ),
        Formula("softmax(s)ᵢ = exp(sᵢ) / Σⱼ exp(sⱼ)"),
        Matrix.of(steps["weights"], say("weights"), visible=bench.visible),
        points=(35, 42),
        found={"weights": array, "masked": steps["masked"].array},
        code=cell,
    )


def weighted_values(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    weighted = weights[0][:, None] * V
    return weighted


def weighted(steps: Trace) -> Step:
    cell, value = ran(weighted_values, weights=steps["weights"].array, V=steps["values"].array)
    labels = steps["values"]
    return step(
        "Multiply each value by its weight",
        tell("For the first output, each value times the first row's weight for it:"),
        Matrix(say("weighted values, exact"), value, labels.rows, labels.columns, "weighted"),
        points=(35, 43),
        found={"weighted": value},
        code=cell,
    )


def added_up(weighted: np.ndarray) -> np.ndarray:
    return weighted.sum(axis=0)


def first_output(steps: Trace) -> Step:
    cell, value = ran(added_up, weighted=steps["weighted"].array[0])
    exact = value[None]
    row, columns = steps["outputs"].rows[:1], steps["outputs"].columns
    return step(
        "Add them up: the first output",
        tell(
            "The first output is the sum of the weighted values. It came from the first "
            "input's query, but holds something of every input that has a weight in its row."
        ),
        Matrix(say("output 1, exact"), exact, row, columns, "output"),
        points=(35, 44),
        found={"output": exact[0]},
        code=cell,
    )


def mixed(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    outputs = weights @ V
    return outputs


def all_outputs(bench: Workbench, steps: Trace) -> Step:
    """The other inputs, all at once and singly; scaled; wider; then the reader's turn."""
    cell, outputs = ran(mixed, weights=steps["weights"].array, V=steps["values"].array)
    d = steps["queries"].array.shape[1]
    scaled = bench.steps(scale=d**-0.5)["outputs"]
    singly = attended_singly(steps, bench.scale)
    wide = bench.steps({"w_value": wider(steps["w_value"].array)})["outputs"]
    return step(
        "Repeat for every input",
        tell(
            "The other queries go the same way, and one product of matrices does all of them "
            "at once. One by one the outputs are the same: they differ by {apart}. With a W_V "
            "of {d_v} columns, each output would have {d_v} numbers.",
            apart=float(np.abs(singly - outputs).max().round(12)),
            d_v=wide.shape[1],
        ),
        Formula("softmax(Q·Kᵀ)·V" if bench.visible is None else "softmax(Q·Kᵀ + M)·V"),
        Matrix.of(steps["outputs"], say("outputs"), symbols=True),
        tell(
            "Divided by √{d}, as in a transformer, the scores are closer together, and the "
            "first output is {scaled}.",
            d=d,
            scaled=scaled[0],
        ),
        Flow(
            "layer",
            say("The eight steps as one drawing: play it, or point at a cell"),
            bench,
            asks=say("query of input"),
            asked=say("key of input"),
        ),
        bench,
        points=(35, 37, 39, 45),
        found={"outputs": outputs, "singly": singly, "wide": wide, "scaled": scaled},
        code=cell,
    )


# --- a mask that the reader chose ---


def hiding(bench: Workbench, steps: Trace) -> list[Text | Formula | Matrix]:
    """What to say and show of the mask before softmax; nothing where there is none."""
    if bench.visible is None:
        return []
    last = bench.rows[-1]
    hidden = {
        "padding": say("The mask that you chose hides input {last}, as padding.", last=last),
        "look-ahead": say("The mask that you chose hides from each query what comes later."),
        "both": say(
            "The mask that you chose hides input {last}, as padding, and from each query what "
            "comes later.",
            last=last,
        ),
    }
    return [
        Text(hidden[bench.mask]),
        tell(
            "It is a matrix M that is added to the scores: 0 where a key is seen, −∞ (minus "
            "infinity) where it is hidden. exp(−∞) is exactly 0, and so is the weight."
        ),
        Formula("Q·Kᵀ + M"),
        Matrix.of(steps["masked"], say("masked scores"), visible=bench.visible),
    ]


# --- what the steps are compared with ---


def projected_singly(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x·W, a row at a time.

    x (n, d_in), weight (d_in, d) -> (n, d).
    """
    return np.array([project(row[None], weight)[0] for row in x])


def biased(x: np.ndarray, weight: np.ndarray, bias: float) -> np.ndarray:
    """x·W + b, where every number of b is `bias`."""
    return project(x, weight, np.full((1, weight.shape[1]), bias))


def wider(w_value: np.ndarray) -> np.ndarray:
    """The matrix with `MORE` columns, which repeat its own.

    >>> wider(np.array([[1.0, 2.0, 3.0]]))
    array([[1., 2., 3., 1., 2.]])
    """
    return np.tile(w_value, 1 + MORE)[:, : w_value.shape[1] + MORE]


def attended_singly(steps: Trace, scale: float | None) -> np.ndarray:
    """The outputs (n, dv), a query at a time, under the mask that the trace had."""
    keys, values = steps["keys"].array, steps["values"].array
    visible = np.asarray(steps["masked"].array) > -np.inf
    return np.array(
        [
            attention(query[None], keys, values, mask=row[None], scale=scale)[0]
            for query, row in zip(steps["queries"].array, visible, strict=True)
        ]
    )
