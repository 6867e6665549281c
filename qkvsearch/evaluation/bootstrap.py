"""Confidence intervals of metrics, by the bootstrap over users."""

from __future__ import annotations

import numpy as np

from qkvsearch._utils.threads import one_blas_thread

N_RESAMPLES = 1000
CONFIDENCE = 0.95
# Draws in memory at a time: 4 million, 32 MB.
MAX_DRAWS = 1 << 22


def resampled_means(
    sums: np.ndarray,
    counts: np.ndarray | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    random_state: int = 0,
) -> np.ndarray:
    """Compute the means of m metrics over resampled users, (n_resamples, m).

    sums: (n_users, m), each user's contribution to each metric. counts: (n_users,), how many values
    it adds up, 1 by default. One resample draws n_users users with replacement, and its means are
    Σ sums / Σ counts over them. All metrics use the same draws, so that differences between columns
    are paired. The result depends on `random_state` alone, not on the number of threads.

    Efron 1979, "Bootstrap methods: another look at the jackknife".

    >>> resampled_means(np.array([[0.0], [1.0]]), n_resamples=4, random_state=1).ravel().tolist()
    [0.5, 1.0, 0.0, 1.0]
    """
    n = len(sums)
    table = np.column_stack([sums, np.ones(n) if counts is None else counts]).astype(np.float64)
    rng = np.random.default_rng(random_state)
    batch_size = max(1, MAX_DRAWS // n)
    totals = np.empty((n_resamples, table.shape[1]))
    # One BLAS thread, so that the order of a sum does not depend on the number of threads.
    with one_blas_thread():
        for start in range(0, n_resamples, batch_size):
            size = min(batch_size, n_resamples - start)
            drawn = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
            times = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
            totals[start : start + size] = times.astype(np.float64) @ table
    means: np.ndarray = totals[:, :-1] / totals[:, -1:]
    return means


def interval(samples: np.ndarray) -> tuple[float, float]:
    """Return the percentile interval: the 2.5th and the 97.5th percentile of `samples`.

    Efron and Tibshirani 1993, "An introduction to the bootstrap", section 13.3.

    >>> low, high = interval(np.arange(1001))
    >>> round(low), round(high)
    (25, 975)
    """
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(samples, [tail, 1 - tail])
    return float(low), float(high)
