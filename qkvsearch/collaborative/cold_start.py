"""Items that nobody met: a place among the others by what their text says."""

from __future__ import annotations

import numpy as np

# Penalties compared, in units of the mean eigenvalue of XᵀX.
PENALTIES = np.logspace(-4, 4, 17)
# From fewer the error of one left out is chance.
LEAST_ITEMS = 50
# Texts that have nothing to do with tastes come so close to the error of placing all at zero.
WORTH_IT = 0.99
# Left out in turn to compare them are so many items.
MOST_LEFT_OUT = 5000


def fit_text_map(keys: np.ndarray, embeddings: np.ndarray) -> np.ndarray | None:
    """The matrix (t, d), float32, that turns an item's text vector into an embedding: ridge
    regression on the items that someone met. None where it tells nothing of them, or they are few.

    keys (n, t): text vectors. embeddings (n, d), zeros where nobody met the item. The penalty λ is
    the one with the least leave-one-out error, in closed form: an item's residual without itself
    in the fit is residual / (1 − hᵢ), hᵢ = xᵢᵀ(XᵀX + λI)⁻¹xᵢ (Allen 1974, "The relationship between
    variable selection and data augmentation and a method for prediction"), and it must be clearly
    less than that of placing all at zero. All items that someone met count alike, however few met
    them: a new item is then placed where the mean item with such a text is, little-known ones
    included, and does not outrank known ones by being new. Without an intercept, so that an item
    without text stays at zero.

    >>> words = np.repeat(np.eye(2), 30, axis=0)
    >>> tastes = words @ [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> (words[:1] @ fit_text_map(words, tastes)).round(2).tolist()
    [[1.0, 0.0, 0.0]]
    """
    rows = np.any(keys, axis=1) & np.any(embeddings, axis=1)
    inputs = np.asarray(keys[rows], dtype=np.float64)
    targets = np.asarray(embeddings[rows], dtype=np.float64)
    if len(inputs) < LEAST_ITEMS:
        return None
    values, vectors = np.linalg.eigh(inputs.T @ inputs)
    turned = inputs @ vectors
    values, products = np.maximum(values, 0), turned.T @ targets

    some = slice(None, None, len(turned) // MOST_LEFT_OUT + 1)

    def error(penalty: float) -> float:
        leverage = (turned[some] ** 2 / (values + penalty)).sum(axis=1, keepdims=True)
        residual = targets[some] - turned[some] @ (products / (values + penalty)[:, None])
        return float(((residual / np.maximum(1 - leverage, 1e-9)) ** 2).sum())

    penalties = PENALTIES * values.mean()
    errors = [error(penalty) for penalty in penalties]
    if min(errors) > WORTH_IT * (targets[some] ** 2).sum():
        return None
    best = penalties[int(np.argmin(errors))]
    mapped: np.ndarray = vectors @ (products / (values + best)[:, None])
    return mapped.astype(np.float32)


def placed(
    embeddings: np.ndarray, keys: np.ndarray, text_map: np.ndarray, cold: np.ndarray
) -> np.ndarray:
    """The embeddings (n, d) with those of the `cold` items (bool, n) from their text vectors, none
    longer than the mean of the others: an unusually pure text is no sign of being better liked.
    """
    if not cold.any():
        return embeddings
    filled = np.array(embeddings)
    lengths = np.linalg.norm(filled, axis=1)
    longest = lengths[lengths > 0].mean() if lengths.any() else 0.0
    found = np.asarray(keys[cold]) @ text_map
    found *= np.minimum(1, longest / np.maximum(np.linalg.norm(found, axis=1), 1e-12))[:, None]
    filled[cold] = found
    return filled
