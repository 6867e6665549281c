"""Lesson 10: many heads, what one head cannot do, what several do, and what they cost."""

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention
from qkvsearch.attention.layers import Linear, MultiHeadAttention
from qkvsearch.attention.symbols import numbered
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.heads import learned
from qkvsearch.lessons.course.heads.questions import quizzes
from qkvsearch.lessons.drawings import AttendedText, Flow, Heads
from qkvsearch.lessons.messages import mark, say
from qkvsearch.lessons.parts import Formula, Given, Matrix, Step, Table, step, tell
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench

TITLE = mark("Many heads, and why")
GOAL = mark("See what one row of weights cannot do, and what several side by side can.")
MINUTES = 16

TOKENS = "abc"
VALUES = np.array([[4, 1], [1, 4], [0, 0]], dtype=float)
KEYS = np.array([[3, 0], [0, 3], [-3, -3]], dtype=float)
WANTED = np.array([4.0, 4.0])

# Two numbers that say what a token is, two that say where it stands.
X = np.array([[2, 0, 1, 0], [0, 2, 0, 1], [1, 1, 1, 0]], dtype=float)
# Each head's columns: the first asks by what a token is, the second by where it stands.
W_QUERY = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2]], dtype=float)
W_KEY = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=float)
W_VALUE = np.array([[3, 0, 0, 1], [0, 3, 1, 0], [1, 0, 3, 0], [0, 1, 0, 3]], dtype=float)
W_OUT = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]], dtype=float)
N_HEADS = 2
COUNTED, WIDTH, LENGTH = (1, 2, 4, 8), 64, 10


def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    one, two = one_row(), side_by_side()
    trained = learned.both()
    steps = [one, two, joined(), cost(), learned.compared(trained), learned.taken_away(trained)]
    return steps, quizzes(one.found, two.found, steps[3].found, steps[5].found)


# --- what one head cannot do ---


def nearest_mean(values: Array, wanted: Array, steps: int) -> tuple[Array, Array]:
    shares = np.arange(steps + 1) / steps
    a, b = (grid.ravel() for grid in np.meshgrid(shares, shares))
    weights = np.stack([a, b, 1 - a - b], axis=1)[a + b <= 1 + 1e-9]
    outputs = weights @ values
    best = np.linalg.norm(outputs - wanted, axis=1).argmin()
    return weights[best], outputs[best]


def one_row(values: Array = VALUES, wanted: Array = WANTED) -> Step:
    """The mean of whole values that is nearest to one that takes a number from each of two."""
    cell, (weights, output) = ran(nearest_mean, values=values, wanted=wanted, steps=100)
    apart = float(np.linalg.norm(output - wanted))
    by_column = np.array([values[0, 0], values[1, 1]])
    return step(
        "One head has one row of weights",
        tell(
            "A query has one row of weights, and each weight multiplies a *whole* value. Suppose "
            "that a token needs the first number of {first} and the second of {second}: {wanted}. "
            "Can weights that add up to 1 make that of these values?",
            first=TOKENS[0],
            second=TOKENS[1],
            wanted=wanted,
        ),
        Matrix(say("values V"), values, TOKENS, numbered(2), "value"),
        tell(
            "All rows of weights were tried, in steps of a hundredth. The nearest that one row "
            "comes is {output}, by the weights {weights}: {apart} away. What is taken of {first} "
            "for its first number is taken of its second number as well.",
            first=TOKENS[0],
            output=output,
            weights=weights,
            apart=apart,
        ),
        Flow(
            "mean",
            say("One row of weights mixes whole values: try a query that gets [4, 4]"),
            Workbench(
                name="mean",
                caption="",
                matrices={"queries": np.ones((1, 2)), "keys": KEYS, "values": values},
                rows=[say("query")],
                columns=TOKENS,
                scale=1.0,
            ),
            asks=say("query"),
            asked=say("token that is asked"),
        ),
        Matrix(
            say("wanted, and the nearest mean"),
            np.stack([wanted, output]),
            [say("wanted"), say("one head")],
            numbered(2),
            "output",
        ),
        tell(
            "(A later matrix may stretch the output: {output} times {factor} is what was wanted. "
            "But it stretches all tokens alike; step 5 lets it try.) With two "
            "rows of weights, one for each column, it is easy: the first gives all to {first}, "
            "the second all to {second}, and the output is {by_column}.",
            output=output,
            factor=wanted[0] / output[0],
            first=TOKENS[0],
            second=TOKENS[1],
            by_column=by_column,
        ),
        points=(63,),
        found={"weights": weights, "output": output, "apart": apart, "by_column": by_column},
        code=cell,
    )


# --- several ---


def in_two_heads(X: Array, W_Q: Array, W_K: Array, W_V: Array) -> tuple[Array, Array, Array]:
    found = []
    for head in (slice(0, 2), slice(2, 4)):
        Q, K, V = X @ W_Q[:, head], X @ W_K[:, head], X @ W_V[:, head]
        found.append(attention(Q, K, V, return_weights=True))
    (first, weights_1), (second, weights_2) = found
    heads = np.concatenate([first, second], axis=1)
    return weights_1, weights_2, heads


def bench_of(name: str, columns: slice, caption: str) -> Workbench:
    """One head alone, to be tried."""
    return Workbench(
        name=name,
        caption=caption,
        matrices={
            "inputs": X,
            "w_query": W_QUERY[:, columns],
            "w_key": W_KEY[:, columns],
            "w_value": W_VALUE[:, columns],
        },
        rows=TOKENS,
        columns=TOKENS,
    )


def side_by_side(x: Array = X) -> Step:
    cell, (first, second, heads) = ran(in_two_heads, X=x, W_Q=W_QUERY, W_K=W_KEY, W_V=W_VALUE)
    most = [TOKENS[row.argmax()] for row in (first[0], second[0])]
    names = [f"1·{n}" for n in (1, 2)] + [f"2·{n}" for n in (1, 2)]
    return step(
        "Two heads side by side",
        tell(
            "A *head* is attention with narrow matrices of its own. Here W_Q, W_K and W_V have "
            "{d} columns: the first {half} belong to head 1, the others to head 2 (2·1 is the "
            "first column of head 2). In these inputs the first two numbers say what a token is, "
            "the last two where it stands. Head 1 asks for what is alike, head 2 for what stands "
            "at the other place.",
            d=W_QUERY.shape[1],
            half=W_QUERY.shape[1] // N_HEADS,
        ),
        Matrix(say("inputs X"), x, TOKENS, numbered(4), "input"),
        *(
            Matrix(name, weight, numbered(4), names, "weight")
            for name, weight in (("W_Q", W_QUERY), ("W_K", W_KEY), ("W_V", W_VALUE))
        ),
        Matrix(say("weights, head 1"), first, TOKENS, TOKENS, "weights"),
        Matrix(say("weights, head 2"), second, TOKENS, TOKENS, "weights"),
        tell(
            "The same token asks twice, and gets two answers: {token} attends most to {first} in "
            "head 1, and to {second} in head 2. The outputs of both heads are put side by side, "
            "not averaged: what each head found can still be told apart.",
            token=TOKENS[0],
            first=most[0],
            second=most[1],
        ),
        Matrix(say("outputs of both heads"), heads, TOKENS, names, "output"),
        Heads(
            "two",
            say("The two heads: choose one and a token"),
            (AttendedText(TOKENS, np.stack([first, second])[None]),),
            names=(say("weights, head 1"), say("weights, head 2")),
        ),
        bench_of("first", slice(0, 2), say("Head 1 alone: let it ask for something else.")),
        points=(63, 64),
        found={"first": first, "second": second, "heads": heads, "most": most},
        code=cell,
    )


def by_the_layer(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, n_heads: int
) -> tuple[Array, Array]:
    query, key, value, out = (Linear(W.T) for W in (W_Q, W_K, W_V, W_O))
    layer = MultiHeadAttention(query, key, value, out, n_heads)
    output, weights = layer(X, return_weights=True)
    return output, weights


def joined(x: Array = X, w_out: Array = W_OUT) -> Step:
    given = {"X": x, "W_Q": W_QUERY, "W_K": W_KEY, "W_V": W_VALUE}
    cell, (output, weights) = ran(by_the_layer, **given, W_O=w_out, n_heads=N_HEADS)
    by_hand = in_two_heads(**given)[-1] @ w_out
    apart = float(np.abs(by_hand - output).max().round(12))
    alone = by_the_layer(**given, W_O=w_out, n_heads=1)[0]
    return step(
        "Split, attend, join",
        tell(
            "A last matrix, W_O, mixes what the heads found: without it, no number of the output "
            "would know more than one head. The layer `MultiHeadAttention` of this program does "
            "all of it: it splits Q, K and V by columns, attends in each head, joins, and "
            "multiplies by W_O. By hand and by the layer, the outputs differ by {apart}.",
            apart=apart,
        ),
        Formula(say("head = softmax(Qₕ·Kₕᵀ/√dₕ)·Vₕ    output = [head 1, head 2]·W_O")),
        Matrix("W_O", w_out, numbered(4), numbered(4), "weight"),
        Matrix(say("outputs"), output, TOKENS, numbered(4), "output"),
        tell(
            "dₕ is how wide a head is, here {d}. The very same matrices read as *one* head of "
            "{all} columns give other outputs, up to {difference} away: the split matters.",
            d=x.shape[1] // N_HEADS,
            all=x.shape[1],
            difference=np.abs(alone - output).max(),
        ),
        Matrix(say("outputs, read as one head"), alone, TOKENS, numbered(4), "output"),
        points=(64,),
        found={"output": output, "weights": weights, "apart": apart, "alone": alone},
        code=cell,
    )


def counts(numbers: tuple[int, ...], d: int, length: int) -> Array:
    rows = []
    for n_heads in numbers:
        layer = MultiHeadAttention.create(d, n_heads, rng=0, bias=False)
        parts = (layer.query, layer.key, layer.value, layer.output)
        learned = sum(part.weight.size for part in parts)
        products = 2 * n_heads * length**2 * (d // n_heads)  # of scores, and of the mixes
        rows.append([n_heads, d // n_heads, learned, products, n_heads * length**2])
    return np.array(rows)


def cost() -> Step:
    cell, value = ran(counts, numbers=COUNTED, d=WIDTH, length=LENGTH)
    return step(
        "As many numbers to learn as one wide head",
        tell(
            "More heads need not cost more: each is narrower. For vectors of {d} numbers and "
            "sentences of {n} tokens, biases left out. W_Q, W_K, W_V and W_O have d × d numbers "
            "each in all heads together, with d = {d}; scores and mixes take n × n × d "
            "multiplications each:",
            d=WIDTH,
            n=LENGTH,
        ),
        Table(
            say("One head or many"),
            [
                say("heads"),
                say("width of each"),
                say("numbers learned"),
                say("multiplications"),
                say("attention weights"),
            ],
            value.tolist(),
        ),
        tell(
            "What is learned stays the same, and so do the multiplications for scores and mixes; "
            "what grows is only how many weights there are, a row of them for each head. The "
            "price is another: a narrow head compares queries and keys by fewer numbers."
        ),
        points=(65,),
        found={"counts": value},
        code=cell,
    )
