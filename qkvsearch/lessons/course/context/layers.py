"""Lesson 9, beside other layers: windows, fully connected layers, several layers, other scores."""

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import AdditiveScore, attention, dot_score
from qkvsearch.attention.gradients import attention_vjp
from qkvsearch.attention.layers import Encoder, Linear, MultiHeadAttention
from qkvsearch.attention.symbols import numbered
from qkvsearch.attention.trace import Trace
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.compute.self_attention import W_KEY, W_QUERY, W_VALUE, X
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Formula, Matrix, Step, Table, step, tell
from qkvsearch.lessons.workbench import Workbench

D = 4
WINDOWS = (1, 3, 5, 7)
TOKENS = "abcd"
# Four tokens of random vectors, and what is added to the third to see who notices.
A = np.random.default_rng(1).normal(size=(4, D)).round(1)
CHANGE = np.array([[0.0], [0.0], [1.0], [0.0]])
ADDITIVE = AdditiveScore(w_query=np.eye(2), w_key=np.eye(2), w=np.array([1.0, -2.0]))
QUERIES = np.array([[1, 0], [0, 2]], dtype=float)
KEYS = np.array([[1, 1], [3, -1], [0, 4]], dtype=float)


def steps() -> list[Step]:
    return [windows(), turns(), influence(), layers(), relu(), additive()]


def counted(d: int, widths: tuple[int, ...]) -> Array:
    attend = MultiHeadAttention.create(d, 1, rng=0, bias=False)
    heads = sum(part.weight.size for part in (attend.query, attend.key, attend.value))
    rows = []
    for n in widths:
        window = Linear.create(n * d, d, rng=0, bias=False)
        everything = Linear.create(n * d, n * d, rng=0, bias=False)
        rows.append([n, window.weight.size, everything.weight.size, heads])
    return np.array(rows)


def windows(widths: tuple[int, ...] = WINDOWS) -> Step:
    """Weights are counted in layers that are made for it, biases left out."""
    cell, value = ran(counted, d=D, widths=widths)
    return step(
        "Context by a wider layer costs weights",
        tell(
            "A fully connected layer could see context, too: give it a *window*, a word and "
            "its neighbours, as one long vector. But each word of the window needs *weights* "
            "of its own, here the numbers of the matrix that are learned. A layer from all "
            "words to all words needs the most as soon as there are several words."
        ),
        tell(
            "Self-attention has three matrices of {d} × {d} for sentences of any length. It finds "
            "by queries and keys which words matter, where a window has to know it beforehand.",
            d=D,
        ),
        Table(
            say("How many weights, for vectors of length {d}", d=D),
            [say("how many words"), say("window"), say("all to all"), say("attention")],
            value.tolist(),
        ),
        points=(25,),
        found={"weights": value},
        code=cell,
    )


def moved_in_turns(X: Array, change: Array) -> Array:
    first, last = np.eye(X.shape[1]) + 1, np.eye(X.shape[1]) - 1
    moved = []
    by_first = [Linear(first)(x) for x in (X, X + change)]
    by_attention = [attention(x, x, x) for x in by_first]
    by_last = [Linear(last)(x) for x in by_attention]
    for before, after in (by_first, by_attention, by_last):
        moved.append(np.abs(after - before).max(axis=1))
    return np.array(moved)


def turns(x: Array = A, change: Array = CHANGE) -> Step:
    """A layer, attention, a layer: how far each moves every token when `change` is added to x."""
    cell, value = ran(moved_in_turns, X=x, change=change)
    names = [say("layer"), say("attention"), say("layer again")]
    return step(
        "Attention and layers take turns",
        tell(
            "A transformer alternates: attention carries something from word to word, and a "
            "fully connected layer works on each word's vector by itself. The inputs of "
            "attention may be the outputs of such a layer."
        ),
        tell(
            "Here c is changed, and what counts is how far each token's vector moves. The "
            "layer moves c alone; attention passes the change on to all."
        ),
        Matrix(say("how far each token moves"), value, names, list(TOKENS), "output"),
        points=(26,),
        found={"moved": value},
        code=cell,
    )


def jacobian(x: Array, is_causal: bool = False) -> Array:
    """∂b/∂a (n, d, n, d) of b = attention(a, a, a), by the engine's gradients."""
    _, pull = attention_vjp(x, x, x, is_causal=is_causal)
    found = np.zeros((*x.shape, *x.shape))
    for place in np.ndindex(*x.shape):
        one = np.zeros_like(x)
        one[place] = 1
        back = pull(one)
        found[place] = back.query + back.key + back.value
    return found


def influences(X: Array) -> tuple[Array, Array]:
    whole = np.abs(jacobian(X)).max(axis=(1, 3))
    ahead = np.abs(jacobian(X, is_causal=True)).max(axis=(1, 3))
    return whole, ahead


def influence(x: Array = A) -> Step:
    cell, (whole, ahead) = ran(influences, X=x)
    rows, columns = numbered(len(x), "b"), numbered(len(x), "a")
    return step(
        "Every output uses every input",
        tell(
            "Call the inputs a1, a2, … and the outputs b1, b2, … How strongly does an output "
            "hang on an input? A *derivative* tells: how much b moves when a moves a little. "
            "Each cell is the largest derivative of a number of one output by a number of one "
            "input, found by the gradients that a network learns with."
        ),
        Matrix(say("influence, no mask"), whole, rows, columns, "output"),
        tell(
            "No cell is 0, as the smallest is {least}. A look-ahead mask makes those 0 where "
            "the input comes after the output:",
            least=whole.min(),
        ),
        Matrix(
            say("influence, look-ahead mask"),
            ahead,
            rows,
            columns,
            "output",
            visible=np.tri(len(x), dtype=bool),
        ),
        points=(27,),
        found={"influence": whole, "ahead": ahead},
        code=cell,
    )


def carried(X: Array, change: Array, n_layers: int, side: int) -> Array:
    moved = []
    for n in range(1, n_layers + 1):
        encoder = Encoder.create(n, X.shape[1], 1, 2 * X.shape[1], rng=0, dtype=np.float64)
        before, after = (encoder(x, window=(side, side)) for x in (X, X + change))
        moved.append(np.abs(after - before).max(axis=1))
    return np.array(moved)


def layers(n_layers: int = 3, side: int = 1) -> Step:
    """How far each of six tokens moves, when the first is changed, after 1, 2, … layers."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, D)).round(1)
    change = np.outer(np.eye(6)[0], rng.normal(size=D)).round(1)
    cell, value = ran(carried, X=x, change=change, n_layers=n_layers, side=side)
    return step(
        "Layers give the context of the context",
        tell(
            "Let a mask show each token only {side} neighbour on each side, and change the "
            "first token. After one layer its neighbour has moved. After two layers so has "
            "the neighbour's neighbour: it saw a token that had seen the first.",
            side=side,
        ),
        Matrix(
            say("how far each token moves"),
            value,
            [say("layers: {n}", n=n + 1) for n in range(n_layers)],
            list("abcdef"),
            "output",
        ),
        points=(18,),
        found={"moved": value},
        code=cell,
    )


# --- other weights, another score ---


def by_relu(X: Array, W_Q: Array, W_K: Array, W_V: Array) -> tuple[Array, Array]:
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    raw = attention(Q, K, V, scale=1, normalize="none")
    normalized = attention(Q, K, V, scale=1, normalize="relu")
    return raw, normalized


def relu() -> Step:
    bench = Workbench(
        name="relu",
        caption=say("Make a score negative: its weight becomes 0."),
        matrices={"inputs": X, "w_query": W_QUERY, "w_key": W_KEY, "w_value": W_VALUE},
        rows="abc",
        columns="abc",
        scale=1.0,
        normalize="relu",
    )
    raw: Trace = bench.trace(bench.matrices, normalize="none")
    shares = bench.trace(bench.matrices)
    cell, value = ran(by_relu, X=X, W_Q=W_QUERY, W_K=W_KEY, W_V=W_VALUE)
    outputs = dict(zip(("raw", "normalized"), value, strict=True))
    return step(
        "Other ways from scores to weights",
        tell(
            "Softmax is a habit, not a must. *ReLU* keeps what is above 0 and makes the rest "
            "0. With the eight steps' numbers the first row of scores is {scores}. Mixed by "
            "the scores as they are, the first output is {raw}.",
            scores=raw["weights"].array[0],
            raw=outputs["raw"][0],
        ),
        Formula("max(0, s)ᵢ / Σⱼ max(0, s)ⱼ"),
        tell(
            "Divided by their sum the weights are {weights}, and the first output is {normalized}.",
            weights=shares["weights"].array[0],
            normalized=outputs["normalized"][0],
        ),
        Matrix.of(shares["weights"], say("weights by ReLU")),
        Matrix.of(shares["outputs"], say("outputs")),
        bench,
        points=(29,),
        found={**outputs, "weights": shares["weights"].array},
        code=cell,
    )


def by_addition(queries: Array, keys: Array, w_query: Array, w_key: Array, w: Array) -> Array:
    score = AdditiveScore(w_query, w_key, w)
    return score(queries, keys)


def additive(queries: Array = QUERIES, keys: Array = KEYS, score: AdditiveScore = ADDITIVE) -> Step:
    weights = {name: np.asarray(getattr(score, name)) for name in ("w_query", "w_key", "w")}
    cell, scores = ran(by_addition, queries=queries, keys=keys, **weights)
    loop = [[score(q[None], k[None])[0, 0] for k in keys] for q in queries]
    bound = float(np.abs(np.asarray(score.w)).sum())
    rows = numbered(len(queries), "q")
    columns = numbered(len(keys), "k")
    return step(
        "Another score",
        tell(
            "The dot product is not the only score. The *additive* score adds query and key, "
            "squeezes each number between −1 and 1 by tanh, and weighs them by a learned W, "
            "here {w}. Either way it is one number for a query and a key.",
            w=np.asarray(score.w),
        ),
        Formula("W·tanh(q + k)"),
        Matrix(say("queries Q"), queries, rows, numbered(queries.shape[1]), "query"),
        Matrix(say("keys K"), keys, columns, numbered(keys.shape[1]), "key"),
        Matrix(say("dot products"), dot_score(queries, keys, scale=1), rows, columns, "score"),
        Matrix(say("additive scores"), scores, rows, columns, "score"),
        tell(
            "It cannot grow beyond {bound}, the sum of W's numbers without their signs; the "
            "largest here is {largest}. One by one or all at once, the scores are the same.",
            bound=bound,
            largest=float(np.abs(scores).max()),
        ),
        points=(34,),
        found={"scores": scores, "loop": np.array(loop), "bound": bound},
        code=cell,
    )
