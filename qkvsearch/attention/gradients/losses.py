"""Losses to train by: how wrong an output is, one number, and its gradient by the output.

float16 is computed in float32; the gradient has the output's dtype, float64 for whole numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.arrays import answer_dtype, cast, working_dtype
from qkvsearch.attention.layers.initializers import Array
from qkvsearch.attention.weights import softmax


def cross_entropy(
    logits: Array, targets: npt.ArrayLike, *, ignored: int | None = None
) -> tuple[float, Array]:
    """The mean of −log softmax(logits)[target], and its gradient (softmax − one-hot) / n.

    logits (..., C), targets (...), whole numbers -> loss, (..., C). A target equal to `ignored`
    does not count, nor in n; if none counts, the loss is 0. Raises TypeError where targets are
    not whole numbers, ValueError where their shape does not fit or one lies outside 0 … C − 1.
    Goodfellow et al. 2016, section 6.2.2.3.

    >>> loss, gradient = cross_entropy(np.array([[0.0, 0.0], [5.0, 5.0]]), [1, -1], ignored=-1)
    >>> round(loss, 4), gradient
    (0.6931, array([[ 0.5, -0.5],
           [ 0. ,  0. ]]))
    """
    labels = np.asarray(targets)
    counted = np.ones(labels.shape, bool) if ignored is None else labels != ignored
    _check(logits, labels, labels[counted])
    dtype = answer_dtype(np, logits)
    rows, chosen = cast(logits[counted], working_dtype(np, dtype)), labels[counted]
    n, places = max(1, len(rows)), np.arange(len(rows))
    peak = rows.max(axis=-1, keepdims=True)
    log_total = np.log(np.exp(rows - peak).sum(axis=-1)) + peak[..., 0]
    loss = float((log_total - rows[places, chosen]).sum() / n)

    by_rows = softmax(rows)
    by_rows[places, chosen] -= 1
    gradient = np.zeros(logits.shape, dtype)
    gradient[counted] = by_rows / n
    return loss, gradient


def mean_squared_error(output: Array, targets: npt.ArrayLike) -> tuple[float, Array]:
    """The mean of (output − target)² over all numbers, and its gradient 2 (output − target) / n.

    output, targets of one shape -> loss, that shape. Raises ValueError where shapes differ.

    >>> mean_squared_error(np.array([1.0, 2.0]), [1.0, 4.0])
    (2.0, array([ 0., -2.]))
    """
    dtype = answer_dtype(np, output)
    found = cast(output, working_dtype(np, dtype))
    wanted = np.asarray(targets, found.dtype)
    if wanted.shape != output.shape:
        raise ValueError(f"targets must have output's shape {output.shape}, got {wanted.shape}")
    error = found - wanted
    n = max(1, error.size)
    return float(np.square(error).sum() / n), cast(2 * error / n, dtype)


def _check(logits: Array, labels: Array, counted: Array) -> None:
    """Refuse targets that name no class of the logits."""
    if labels.dtype.kind not in "iu":
        raise TypeError(f"targets must be whole numbers, got {labels.dtype}")
    if labels.shape != logits.shape[:-1]:
        raise ValueError(f"logits (..., C) {logits.shape} do not fit targets (...) {labels.shape}")
    n_classes = logits.shape[-1]
    outside = counted[(counted < 0) | (counted >= n_classes)]
    if outside.size:
        raise ValueError(f"targets must lie in 0 … {n_classes - 1}, got {outside[0]}")
