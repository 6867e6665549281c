"""Lesson 8, beyond one layer and one sentence: batches, passes of a decoder, layers, the order."""

from collections.abc import Callable

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention, padding_mask
from qkvsearch.attention.layers import Decoder, Encoder, FeedForward, LayerNorm, Linear
from qkvsearch.attention.symbols import numbered
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.masks.one_layer import (
    attended,
    influence,
    named,
    outputs,
    raised,
    visible,
)
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Matrix, Step, Table, Text, step, tell
from qkvsearch.lessons.workbench import Workbench

QUESTION, ANSWER, START = ("How", "are", "you"), ("cómo", "estás", "<end>"), "<start>"
WIDTH, MOST = 4, 10


def in_one_block(Q: Array, K: Array, V: Array, lengths: list[int]) -> tuple[Array, Array, Array]:
    n = len(Q) - 1
    places = np.where(padding_mask(lengths), np.arange(n), n)
    batch = Q[places], K[places], V[places]
    padded = attention(*batch, mask=padding_mask(lengths)[:, None])
    return places, padded, attention(*batch)


def batches(bench: Workbench) -> Step:
    """Sentences of unequal length, padded with the last token, beside each of them alone."""
    q, k, v = attended(bench).values()
    lengths = [len(q) - 1, 1, 2]
    cell, (places, padded, unmasked) = ran(in_one_block, Q=q, K=k, V=v, lengths=lengths)
    rows: list[list[str | float]] = []
    differences = []
    for i, length in enumerate(lengths):
        alone = attention(q[:length], k[:length], v[:length])
        off = [float(np.abs(a[i, :length] - alone).max()) for a in (padded, unmasked)]
        differences.append(off)
        words = [bench.rows[place] for place in places[i]]
        rows.append([" ".join(words), float(length), *off])
    return step(
        "Why pad at all",
        tell(
            "Computers are quick at one large product and slow at many small ones. So {n} "
            "sentences of {lengths} tokens become one block, a *batch*, filled up with {pad}. "
            "Does a sentence get the same outputs as it would alone?",
            n=len(lengths),
            lengths=lengths,
            pad=bench.rows[-1],
        ),
        Table(
            say("A batch: the largest difference to the sentence alone"),
            [say("sentence"), say("tokens"), say("with the mask"), say("without it")],
            rows,
        ),
        tell(
            "With the mask, the padding is as good as absent: but for rounding, a sentence "
            "comes out as it does alone. Without it, every sentence that was filled up comes "
            "out differently."
        ),
        points=(55,),
        found={
            "places": places,
            "padded": padded,
            "unmasked": unmasked,
            "differences": np.array(differences),
        },
        code=cell,
    )


# --- a decoder ---


def written(
    decoder: Decoder, source: Array, vectors: Array, last: Linear
) -> tuple[list[str], Array]:
    """The words that the decoder writes, and the row (words, d) that each was chosen by.

    vectors (3, d): of <start> and of the words that may be written, without <end>.
    """
    given, rows = vectors[:1], []
    words: list[str] = []
    while words[-1:] != [ANSWER[-1]] and len(words) < MOST:
        rows.append(decoder(given, source)[-1])
        words.append(ANSWER[int(last(rows[-1]).argmax())])
        given = np.concatenate([given, vectors[1 + ANSWER.index(words[-1]) :][:1]])
    return words, np.array(rows)


def row_by_row(source: Array, vectors: Array) -> tuple[list[str], Array, Array]:
    decoder = Decoder.create(2, vectors.shape[1], 2, 8, rng=0, dtype=np.float64)
    whole = decoder(vectors, source)
    last = Linear(np.linalg.pinv(whole).T)  # fitted to this one sentence: a row a word
    words, rows = written(decoder, source, vectors, last)
    return words, rows, whole


def passes() -> Step:
    """Writing a sentence takes a pass a word, learning it one: the mask makes the rows equal."""
    rng = np.random.default_rng(0)
    source, vectors = rng.normal(size=(len(QUESTION), WIDTH)), rng.normal(size=(3, WIDTH))
    cell, (words, one_by_one, whole) = ran(row_by_row, source=source, vectors=vectors)
    decoder = Decoder.create(2, WIDTH, 2, 2 * WIDTH, rng=0, dtype=np.float64)
    seen = decoder(vectors, source, is_causal=False)
    tokens, columns = (START, *ANSWER[:-1]), numbered(WIDTH)
    return step(
        "One pass instead of many",
        tell(
            "“{question}” → {answer}. To *write* it, a decoder runs once a word, each time on all "
            "that is written: {n} passes. {start} stands for nothing written yet, {end} for the "
            "end. Its weights are random here; a last layer was fitted to choose these words.",
            question=" ".join(QUESTION),
            answer=say(", ").join(words),
            n=len(words),
            start=START,
            end=ANSWER[-1],
        ),
        Matrix(say("last row of each pass"), one_by_one, tokens, columns, "output"),
        Matrix(say("one pass with the look-ahead mask"), whole, tokens, columns, "output"),
        tell(
            "To *learn* it, the whole answer is known. One pass over it gives all the rows at "
            "once (largest difference {same}), because under the mask a row sees just what was "
            "written before. Without the mask it would see the answer (difference {seen}).",
            same=np.abs(one_by_one - whole).max(),
            seen=np.abs(seen - whole).max(),
        ),
        points=(58,),
        found={
            "words": words,
            "passes": len(one_by_one),
            "rows": one_by_one,
            "whole": whole,
            "without": seen,
        },
        code=cell,
    )


# --- layers ---


def encoder(width: int) -> Encoder:
    """Two layers with random weights, the same every time."""
    return Encoder.create(2, width, 1, 2 * width, rng=0, dtype=np.float64)


def through(tokens: Array, seen: Array, masked: int) -> Array:
    """The outputs of both layers, where the first `masked` of them have the mask `seen`."""
    for i, layer in enumerate(encoder(tokens.shape[1]).layers):
        tokens = layer(tokens, mask=seen if i < masked else None)
    return tokens


def moved_by_padding(X: Array, keep: Array, masked: int) -> Array:
    before, after = (through(x, keep, masked) for x in (X, raised(X, len(X) - 1)))
    return np.abs(after - before).max(axis=1)[:-1]


def leaked(bench: Workbench) -> dict[str, float]:
    """How far a token moves with the one that comes after it, where the look-ahead mask is in both
    layers and where it is in the first only.
    """
    x, seen = bench.matrices["inputs"], visible(bench, "look-ahead")
    later = len(x) - 2
    found = {}
    for name, masked in (("both", 2), ("first", 1)):
        before, after = (through(rows, seen, masked) for rows in (x, raised(x, later)))
        found[name] = float(np.abs(after - before)[later - 1].max())
    return found


def cut(X: Array, keep: Array, by_query: bool, by_residual: bool) -> Array:
    """How far the words move with the padding, hidden in the first layer only, where what carries
    it through that layer is cut: its query, the residual, or both.
    """
    first, second = encoder(X.shape[1]).layers
    if by_query:
        first.attention.query.weight[:] = 0
    after = []
    for x in (X, raised(X, len(X) - 1)):
        own = np.zeros_like(x, dtype=float) if by_residual else x
        mixed = first.attention_norm(own + first.attention(x, mask=keep))
        after.append(second(first.feed_forward_norm(mixed + first.feed_forward(mixed))))
    return np.abs(after[1] - after[0]).max(axis=1)[:-1]


def look_ahead_too(bench: Workbench, leak: dict[str, float]) -> Text:
    return tell(
        "The look-ahead mask must be in every layer as well. In the first layer {early} does not "
        "see {later}. But row {later} then holds what {later} is, and without the mask in the "
        "second layer {early} reads it there. Add 1 to the first number of {later}: with the mask "
        "in both layers {early} moves by {both}, with the mask in the first only by {first}.",
        early=bench.rows[-3],
        later=bench.rows[-2],
        **leak,
    )


def every_layer(bench: Workbench) -> Step:
    """How far the words move with the padding, as it is hidden in two layers, in one, in none; and
    what carries it through the first."""
    x = bench.matrices["inputs"]
    seen = visible(bench, "padding")
    cell, value = ran(moved_by_padding, X=x, keep=seen, masked=1)
    moved = {
        "both": moved_by_padding(x, seen, 2),
        "first": value,
        "none": moved_by_padding(x, seen, 0),
    }
    titles = {
        "both": say("in both layers"),
        "first": say("in the first only"),
        "none": say("in none"),
    }
    ways = {"query": (True, False), "residual": (False, True), "both": (True, True)}
    carried = {name: cut(x, seen, *way) for name, way in ways.items()}
    leak = leaked(bench)
    cuts = {
        "query": say("its query"),
        "residual": say("its residual"),
        "both": say("both"),
    }
    return step(
        "In every layer",
        tell(
            "Two layers of a transformer's encoder, the second on the outputs of the first, "
            "with random weights. 1 is added to the first number of {last}, the padding. How "
            "far do the words move?",
            last=bench.rows[-1],
        ),
        Table(
            say("where padding is hidden, and how far the outputs move"),
            [say("padding hidden"), *bench.rows[:-1]],
            [[titles[name], *map(float, far)] for name, far in moved.items()],
        ),
        tell(
            "After the first layer, row {last} is still the padding's. Unless the second layer "
            "hides it again, the words read it there. On average they move by {first} with one "
            "mask, by {none} with none, by {both} with both.",
            last=bench.rows[-1],
            first=moved["first"].mean(),
            none=moved["none"].mean(),
            both=moved["both"].mean(),
        ),
        tell(
            "What carries {last} through the first layer, where no token attends to it? Two "
            "things: its own query, and the *residual*, by which a layer adds to each output "
            "the token's own input (lesson 11). Cut one of them and the words still move; cut "
            "both, and nothing of {last} is left. (What counts is whether a number is 0: each cut "
            "makes another layer, in which everything moves by another amount.)",
            last=bench.rows[-1],
        ),
        Table(
            say("hidden in the first only: how far the outputs move"),
            [say("cut in the first layer"), *bench.rows[:-1]],
            [[cuts[name], *map(float, far)] for name, far in carried.items()],
        ),
        look_ahead_too(bench, leak),
        points=(60,),
        found={"moved": moved, "first": moved["first"], "carried": carried, "leaked": leak},
        code=cell,
    )


def moved_by_the_last(X: Array, W_Q: Array, W_K: Array, W_V: Array, mask: Array) -> Array:
    return influence(X, W_Q, W_K, W_V, mask)[:, -1]


def order_stays(bench: Workbench) -> Step:
    """Every layer gives row i for row i: what was last stays last."""
    x = bench.matrices["inputs"].astype(float)
    n, d = x.shape
    hidden = visible(bench, "padding")
    cell, value = ran(moved_by_the_last, **named(bench), mask=hidden)
    layers: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        say("encoder"): lambda x: np.asarray(encoder(d)(x, mask=hidden)),
        say("linear layer"): Linear.create(d, d, rng=0, dtype=np.float64),
        say("norm layer"): LayerNorm.create(d, dtype=np.float64),
        say("feed forward"): FeedForward.create(d, 2 * d, rng=0, dtype=np.float64),
    }
    others = {
        name: np.abs(layer(raised(x, n - 1)) - layer(x)).max(axis=1)
        for name, layer in layers.items()
    }
    rows = {say("self-attention"): value, **others}
    return step(
        "The order stays",
        tell(
            "How does the second layer know which row to hide? Layers never move a row: row "
            "number {n} of the outputs belongs to token number {n}, however often. Now only "
            "{last} is changed, and the padding is hidden:",
            n=n,
            last=bench.rows[-1],
        ),
        Table(
            say("how far each row of the outputs moves"),
            [say("layer"), *bench.rows],
            [[name, *map(float, far)] for name, far in rows.items()],
        ),
        tell(
            "Only its own row moves, the last one. A *linear layer* multiplies by a matrix, a "
            "*norm layer* brings the numbers of a row to one scale, *feed forward* is two "
            "linear layers; all of them take a row at a time. So one mask serves every layer."
        ),
        points=(61,),
        found={"moved": np.array(list(rows.values())), "attention": value},
        code=cell,
    )


def in_another_order(X: Array, W_Q: Array, W_K: Array, W_V: Array, order: list[int]) -> Array:
    return outputs(X[order], W_Q, W_K, W_V)


def no_mixing(bench: Workbench) -> Step:
    """The weights meet one row at a time; attention in another order gives another order."""
    x = bench.matrices["inputs"]
    names = ("queries", "keys", "values")
    before, after = bench.steps(mask="none"), bench.steps({"inputs": raised(x, 1)}, mask="none")
    moved = {name: np.abs(after[name] - before[name]).max(axis=1) for name in names}
    titles = (say("queries Q"), say("keys K"), say("values V"))
    order = [*range(1, len(x)), 0]
    cell, turned = ran(in_another_order, **named(bench), order=order)
    difference = float(np.abs(turned - before["outputs"][order]).max())
    return step(
        "The weight matrices never mix tokens",
        tell(
            "Each row is multiplied by the weight matrices on its own. Add 1 to the first "
            "number of {second}, and of Q, K and V only its rows move:",
            second=bench.rows[1],
        ),
        Table(
            say("how far each row moves"),
            ["", *bench.rows],
            [[t, *map(float, moved[name])] for t, name in zip(titles, names, strict=True)],
        ),
        tell(
            "Tokens meet in two places only: in the scores, and where the attention weights mix "
            "the values. With no mask, even there the order does not matter: put the tokens in the "
            "order {order}, and the same outputs come in that order (difference {difference}).",
            order=say(", ").join(bench.rows[place] for place in order),
            difference=difference,
        ),
        Matrix(
            say("outputs in the new order"),
            turned,
            [bench.rows[place] for place in order],
            numbered(turned.shape[1]),
            "output",
        ),
        points=(48,),
        found={"moved": moved, "difference": difference, "turned": turned, "order": order},
        code=cell,
    )
