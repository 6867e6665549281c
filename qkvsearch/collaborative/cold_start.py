"""Cold items, those without interactions: an embedding from their text."""

from __future__ import annotations

import numpy as np

from qkvsearch._utils.threads import one_blas_thread

# Penalties compared, in units of the mean eigenvalue of XᵀX.
PENALTIES = np.logspace(-4, 4, 17)
# With fewer, the leave-one-out error depends on chance.
LEAST_ITEMS = 50
# Texts that say nothing about preferences come this close to the error of all-zero embeddings.
WORTH_IT = 0.99
# To compare penalties, at most this many items are left out, one at a time.
MOST_LEFT_OUT = 5000
# Items whose text vectors are held in double precision at a time.
BLOCK = 4096


def fit_text_map(keys: np.ndarray, embeddings: np.ndarray) -> np.ndarray | None:
    """The matrix (t, d), float32, that maps an item's text vector to its embedding.

    Ridge regression on the items with interactions. None where these are few, or where their texts
    predict nothing.

    keys (n, t): text vectors. embeddings (n, d), zeros for cold items. The penalty λ is the one
    with the least leave-one-out error, in closed form: the residual of an item that is left out of
    the fit is residual / (1 − hᵢ), hᵢ = xᵢᵀ(XᵀX + λI)⁻¹xᵢ (Allen 1974, "The relationship between
    variable selection and data augmentation and a method for prediction"). That error must be
    clearly less than the error of all-zero embeddings. All items with interactions have the same
    weight, however few interactions they have: a new item then gets the mean embedding of items
    with such a text, little-known ones included, and does not outrank known ones for being new.
    There is no intercept, so an item without text stays at zero.

    >>> words = np.repeat(np.eye(2), 30, axis=0)
    >>> embeddings = words @ [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> (words[:1] @ fit_text_map(words, embeddings)).round(2).tolist()
    [[1.0, 0.0, 0.0]]
    """
    rows = np.any(keys, axis=1) & np.any(embeddings, axis=1)
    if np.count_nonzero(rows) < LEAST_ITEMS:
        return None
    # One BLAS thread: the bits must not depend on how many there are.
    with one_blas_thread():
        gram, products = _sums_of_products(keys, embeddings, rows)
        values, vectors = np.linalg.eigh(gram)
        values, products = np.maximum(values, 0), vectors.T @ products
        left_out = np.flatnonzero(rows)
        left_out = left_out[:: len(left_out) // MOST_LEFT_OUT + 1]
        rotated = (keys[left_out] @ vectors.astype(np.float32)).astype(np.float64)
        squares, targets = rotated**2, embeddings[left_out].astype(np.float64)

        def error(penalty: float) -> float:
            leverage = squares @ (1 / (values + penalty))
            residual = targets - rotated @ (products / (values + penalty)[:, None])
            return float(((residual / np.maximum(1 - leverage, 1e-9)[:, None]) ** 2).sum())

        penalties = PENALTIES * values.mean()
        errors = [error(penalty) for penalty in penalties]
        if min(errors) > WORTH_IT * (targets**2).sum():
            return None
        best = penalties[int(np.argmin(errors))]
        mapped: np.ndarray = vectors @ (products / (values + best)[:, None])
    return mapped.astype(np.float32)


def _sums_of_products(
    keys: np.ndarray, embeddings: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """XᵀX and XᵀY of these rows (bool, n), float64, without a copy of all of them."""
    gram = np.zeros((keys.shape[1], keys.shape[1]))
    products = np.zeros((keys.shape[1], embeddings.shape[1]))
    for start in range(0, len(keys), BLOCK):
        some = slice(start, start + BLOCK)
        inputs = keys[some][rows[some]].astype(np.float64)
        gram += inputs.T @ inputs
        products += inputs.T @ embeddings[some][rows[some]].astype(np.float64)
    return gram, products


def place_cold_items(
    embeddings: np.ndarray, keys: np.ndarray, text_map: np.ndarray, cold: np.ndarray
) -> np.ndarray:
    """The embeddings (n, d), those of the `cold` items (bool, n) computed from their text vectors.

    None becomes longer than the mean of the others, since an extreme text is no sign that an item
    is liked better.
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
