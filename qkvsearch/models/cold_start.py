"""Embeddings of cold items, which have no interactions, from their text vectors."""

import numpy as np

from qkvsearch._utils.threads import one_blas_thread

# The penalties that are compared, in units of the mean eigenvalue of XᵀX.
PENALTIES = np.logspace(-4, 4, 17)
# With fewer items, the leave-one-out error depends on chance.
MIN_ITEMS = 50
# The maximal error relative to that of all-zero embeddings; unrelated texts exceed it.
MAX_RELATIVE_ERROR = 0.99
# The maximal number of items that are left out, one at a time, to compare penalties.
MAX_LEFT_OUT = 5000
# The number of items whose text vectors are in double precision at a time.
BLOCK_SIZE = 4096


def fit_text_map(keys: np.ndarray, embeddings: np.ndarray) -> np.ndarray | None:
    """Fit the matrix (t, d), float32, that maps an item's text vector to its embedding.

    The method is ridge regression on the items with interactions. Return None if there are too few
    of them, or if their texts predict nothing.

    keys (n, t): text vectors. embeddings (n, d): zeros for cold items. The penalty λ minimizes the
    leave-one-out error, in closed form: the residual of an item left out of the fit is
    residual / (1 − hᵢ), hᵢ = xᵢᵀ(XᵀX + λI)⁻¹xᵢ (Allen 1974, "The relationship between variable
    selection and data augmentation and a method for prediction"). This error must be clearly below
    that of all-zero embeddings. All items with interactions have the same weight: a new item gets
    the mean embedding of items with similar text, unpopular ones included, and does not outrank
    known items by being new. There is no intercept, so an item without text stays at zero.

    >>> words = np.repeat(np.eye(2), 30, axis=0)
    >>> embeddings = words @ [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> (words[:1] @ fit_text_map(words, embeddings)).round(2).tolist()
    [[1.0, 0.0, 0.0]]
    """
    rows = np.any(keys, axis=1) & np.any(embeddings, axis=1)
    if np.count_nonzero(rows) < MIN_ITEMS:
        return None
    # One BLAS thread, so that the bits do not depend on the number of threads.
    with one_blas_thread():
        gram, products = _sums_of_products(keys, embeddings, rows)
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, 0)
        products = vectors.T @ products
        left_out = np.flatnonzero(rows)
        left_out = left_out[:: len(left_out) // MAX_LEFT_OUT + 1]
        rotated = (keys[left_out] @ vectors.astype(np.float32)).astype(np.float64)
        squares, targets = rotated**2, embeddings[left_out].astype(np.float64)

        def error(penalty: float) -> float:
            leverage = squares @ (1 / (values + penalty))
            residual = targets - rotated @ (products / (values + penalty)[:, None])
            return float(((residual / np.maximum(1 - leverage, 1e-9)[:, None]) ** 2).sum())

        penalties = PENALTIES * values.mean()
        errors = [error(penalty) for penalty in penalties]
        if min(errors) > MAX_RELATIVE_ERROR * (targets**2).sum():
            return None
        best = penalties[int(np.argmin(errors))]
        mapped: np.ndarray = vectors @ (products / (values + best)[:, None])
    return mapped.astype(np.float32)


def _sums_of_products(
    keys: np.ndarray, embeddings: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return XᵀX and XᵀY of these rows (bool, n), float64, without copying all of them."""
    gram = np.zeros((keys.shape[1], keys.shape[1]))
    products = np.zeros((keys.shape[1], embeddings.shape[1]))
    for start in range(0, len(keys), BLOCK_SIZE):
        block = slice(start, start + BLOCK_SIZE)
        inputs = keys[block][rows[block]].astype(np.float64)
        gram += inputs.T @ inputs
        products += inputs.T @ embeddings[block][rows[block]].astype(np.float64)
    return gram, products


def place_cold_items(
    embeddings: np.ndarray, keys: np.ndarray, text_map: np.ndarray, cold: np.ndarray
) -> np.ndarray:
    """Return the embeddings (n, d), those of `cold` items (bool, n) computed from their text.

    Their length is at most the mean length of the others, since an extreme text does not mean that
    an item is liked better.
    """
    if not cold.any():
        return embeddings
    filled = np.array(embeddings)
    lengths = np.linalg.norm(filled, axis=1)
    max_length = lengths[lengths > 0].mean() if lengths.any() else 0.0
    placed = np.asarray(keys[cold]) @ text_map
    placed *= np.minimum(1, max_length / np.maximum(np.linalg.norm(placed, axis=1), 1e-12))[:, None]
    filled[cold] = placed
    return filled
