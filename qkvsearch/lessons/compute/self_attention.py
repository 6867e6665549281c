"""Lesson on self-attention in eight steps: the text's numbers, and what they are compared with."""

import numpy as np

from qkvsearch.attention import attention

X = np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]], dtype=float)
W_KEY = np.array([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]], dtype=float)
W_QUERY = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]], dtype=float)
W_VALUE = np.array([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]], dtype=float)


def wider(weight: np.ndarray, n: int = 2) -> np.ndarray:
    """Return the matrix with n more columns, which repeat its own.

    >>> wider(np.array([[1.0, 2.0, 3.0]]))
    array([[1., 2., 3., 1., 2.]])
    """
    return np.tile(weight, 1 + n)[:, : weight.shape[1] + n]


def rounded(weights: np.ndarray) -> np.ndarray:
    """Return a row rounded as the text does: tenths for the largest weights, 0 for the others.

    >>> rounded(np.array([0.06, 0.47, 0.47]))
    array([0. , 0.5, 0.5])
    """
    is_largest = weights >= weights.max() - 1e-9
    return np.where(is_largest, np.round(1 / is_largest.sum(), 1), 0.0)


def row_with_equal_scores(scores: np.ndarray, weights: np.ndarray) -> int:
    """Return the first row in which scores are equal and weights defined; -1 for none."""
    pairs = enumerate(zip(scores, weights, strict=True))
    return next(
        (i for i, (s, w) in pairs if len(np.unique(s)) < len(s) and np.isfinite(w).all()), -1
    )


def attended_singly(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, masked: np.ndarray, scale: float
) -> np.ndarray:
    """Return the outputs (n, d_v), computed a query at a time; −∞ in `masked` hides a key."""
    rows = zip(Q, masked > -np.inf, strict=True)
    return np.array([attention(q[None], K, V, mask=row[None], scale=scale)[0] for q, row in rows])
