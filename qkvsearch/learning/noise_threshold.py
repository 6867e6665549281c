"""The noise threshold: how near to some item a query comes that means nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qkvsearch.retrieval.elsewhere import Rows

N_STRINGS, QUANTILE = 100, 0.95
# Items whose scores are held at a time: 26 MB for 100 strings.
BLOCK = 1 << 16
# A product may differ in its last bits with what else is multiplied beside it.
SAME = 1e-5


def random_strings(n: int = N_STRINGS, seed: int = 0) -> list[str]:
    """Strings of two words, each of 4 to 8 random letters; fewer are the first of more.

    >>> random_strings(2) == random_strings(5)[:2]
    True
    """
    from string import ascii_lowercase

    rng = np.random.default_rng(seed)
    letters = np.array(list(ascii_lowercase))
    return [
        " ".join("".join(rng.choice(letters, rng.integers(4, 9))) for _ in range(2))
        for _ in range(n)
    ]


def nearest_cosines(fingerprint: np.ndarray, keys: Rows) -> np.ndarray:
    """How near each of the random strings comes to some item: float64 (100,), at least 0.

    fingerprint: float32 (100, d), what the encoder makes of `random_strings`, by which it is known
    again. keys: float32 (n_items, d). Rows have length 1 or 0.
    """
    nearest = np.zeros(len(fingerprint))
    for start in range(0, len(keys), BLOCK):
        scores = fingerprint @ keys[start : start + BLOCK].T
        nearest = np.maximum(nearest, scores.max(axis=1))
    return nearest


def without(
    nearest: np.ndarray, fingerprint: np.ndarray, gone: np.ndarray, kept: Callable[[], np.ndarray]
) -> np.ndarray:
    """`nearest_cosines` of the items that stay. gone: keys of those that leave; kept() are those of
    the others, and read only where one that leaves was the nearest of some string.
    """
    lost = nearest_cosines(fingerprint, gone) > nearest - SAME
    lost &= nearest > 0
    if not lost.any():
        return nearest
    found = nearest.copy()
    found[lost] = nearest_cosines(fingerprint[lost], kept())
    return found


def noise_threshold(nearest: np.ndarray) -> float:
    """The cosine with its nearest item that 95 of 100 strings of random letters stay below: what
    the best hit of a query of unknown words must exceed.

    nearest: as `nearest_cosines` gives them. An encoder of subwords has a vector for every string,
    so that a search by it always finds something.

    >>> noise_threshold(nearest_cosines(np.eye(2), np.array([[0.6, 0.8], [0.0, 0.0]])))
    0.79
    """
    return float(np.quantile(nearest, QUANTILE))
