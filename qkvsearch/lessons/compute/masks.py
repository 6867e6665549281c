"""Lesson on masks: its numbers, how far outputs move with an input, and layers under a mask."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention, look_ahead_mask
from qkvsearch.attention.layers import Decoder, Encoder, FeedForward, LayerNorm, Linear
from qkvsearch.errors import Count, DataError

X = np.array([[1, 0, 2], [0, 1, 1], [1, 1, 0], [2, 0, 1]], dtype=float)
W_QUERY = np.array([[1, 0], [0, 1], [1, 1]], dtype=float)
W_KEY = np.array([[0, 1], [1, 0], [1, 0]], dtype=float)
W_VALUE = np.array([[1, 1], [2, 0], [0, 1]], dtype=float)
# The least rows and columns of the reader's own inputs.
MIN_TOKENS = 3
MIN_WIDTH = 3
# Words that the decoder writes at most.
MAX_PASSES = 10


def check_inputs(inputs: Array | None) -> None:
    """Refuse inputs that are too small to mask, or too narrow for a norm layer (`DataError`)."""
    if inputs is not None and len(inputs) < MIN_TOKENS:
        n = Count(len(inputs))
        raise DataError(
            f"`inputs`: {n} {n:row is|rows are} too few to mask, give {MIN_TOKENS} or more, the "
            "last of which is the padding"
        )
    if inputs is not None and inputs.shape[1] < MIN_WIDTH:
        n = Count(inputs.shape[1])
        raise DataError(
            f"`inputs`: {n} {n:column is|columns are} too few for a transformer's layers, "
            f"which bring the numbers of a row to one scale; give {MIN_WIDTH} or more"
        )


def chosen(tokens: Sequence[str], numbers: Iterable[float]) -> frozenset[str]:
    """Return the tokens whose number is not 0.

    >>> sorted(chosen("abcD", [0, 0.5, 0, 1]))
    ['D', 'b']
    """
    return frozenset(token for token, number in zip(tokens, numbers, strict=False) if number)


def raised(x: Array, token: int) -> Array:
    """Return x (n, d) with 1 added to the first number of one token.

    >>> raised(np.eye(2), 1)
    array([[1., 0.],
           [1., 1.]])
    """
    changed = x.astype(float)
    changed[token, 0] += 1
    return changed


def influence(X: Array, W_Q: Array, W_K: Array, W_V: Array, mask: Array | None = None) -> Array:
    """Return how far each output moves when 1 is added to the first number of an input.

    -> (n, n): output of row i, input of column j; the largest change among the output's numbers.
    """

    def outputs(x: Array) -> Array:
        return attention(x @ W_Q, x @ W_K, x @ W_V, mask=mask)

    return np.stack([moved(outputs, X, token) for token in range(len(X))], axis=1)


def moved(layer: Callable[[Array], Array], x: Array, token: int) -> Array:
    """Return how far each row of a layer's outputs moves with one token."""
    return np.abs(layer(raised(x, token)) - layer(x)).max(axis=1)


# --- two layers ---


def encoder(width: int) -> Encoder:
    """Create two layers with random weights, the same every time."""
    return Encoder.create(2, width, 1, 2 * width, rng=0, dtype=np.float64)


def through(x: Array, mask: Array, n_masked: int) -> Array:
    """Return the outputs of both layers, of which the first `n_masked` apply the mask."""
    for n, layer in enumerate(encoder(x.shape[1]).layers):
        x = layer(x, mask=mask if n < n_masked else None)
    return x


def without_last(n: int) -> Array:
    """Return the mask that hides the last key: bool (n,)."""
    return np.arange(n) < n - 1


def moved_by_padding(X: Array, n_masked: int) -> Array:
    """Return how far the words move with the padding, hidden in the first `n_masked` layers."""
    n = len(X)
    return moved(lambda x: through(x, without_last(n), n_masked), X, n - 1)[:-1]


def moved_by_next(X: Array, n_masked: int) -> float:
    """Return how far a token moves with the next one, under look-ahead in `n_masked` layers."""
    n = len(X)
    return float(moved(lambda x: through(x, look_ahead_mask(n), n_masked), X, n - 2)[n - 3])


def moved_after_cut(X: Array, cut_query: bool, cut_residual: bool) -> Array:
    """Return how far the words move with the padding, hidden in the first layer only.

    In that layer the padding's query, its residual, or both are cut.
    """
    first, second = encoder(X.shape[1]).layers
    if cut_query:
        first.attention.query.weight[:] = 0

    def layers(x: Array) -> Array:
        residual = np.zeros_like(x, dtype=float) if cut_residual else x
        mixed = first.attention_norm(residual + first.attention(x, mask=without_last(len(x))))
        return np.asarray(second(first.feed_forward_norm(mixed + first.feed_forward(mixed))))

    return moved(layers, X, len(X) - 1)[:-1]


def moved_by_layer(X: Array) -> list[Array]:
    """Return how far each row moves with the last token: encoder, linear, norm, feed forward."""
    n, d = X.shape
    layers: list[Callable[[Array], Array]] = [
        lambda x: np.asarray(encoder(d)(x, mask=without_last(n))),
        Linear.create(d, d, rng=0, dtype=np.float64),
        LayerNorm.create(d, dtype=np.float64),
        FeedForward.create(d, 2 * d, rng=0, dtype=np.float64),
    ]
    return [moved(layer, X.astype(float), n - 1) for layer in layers]


# --- a batch, and a decoder ---


def compared_with_alone(
    Q: Array, K: Array, V: Array, lengths: Sequence[int], *batches: Array
) -> Array:
    """Return the largest differences of the first tokens in each batch to the sentence alone.

    batches: outputs (len(lengths), n, d_v) -> (len(lengths), len(batches)).
    """
    alone = [attention(Q[:n], K[:n], V[:n]) for n in lengths]
    return np.array(
        [
            [np.abs(batch[i, :n] - alone[i]).max() for batch in batches]
            for i, n in enumerate(lengths)
        ]
    )


def written(
    decoder: Decoder, source: Array, vectors: Array, last: Linear, words: Sequence[str]
) -> tuple[list[str], Array]:
    """Return the words that the decoder writes, one a pass, and the row that chose each.

    vectors (len(words), d): of the start and of all words but the last one, which ends the
    sentence.
    """
    sentence: list[str] = []
    rows: list[Array] = []
    inputs = vectors[:1]
    while sentence[-1:] != [words[-1]] and len(rows) < MAX_PASSES:
        rows.append(decoder(inputs, source)[-1])
        sentence.append(words[int(last(rows[-1]).argmax())])
        inputs = np.concatenate([inputs, vectors[1 + words.index(sentence[-1]) :][:1]])
    return sentence, np.array(rows)
