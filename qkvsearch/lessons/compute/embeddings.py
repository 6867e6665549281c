"""Lesson on embeddings: arithmetic with words."""

import numpy as np

from qkvsearch.attention import cosine_score


def arithmetic(
    vectors: np.ndarray, a: int, b: int, c: int
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return a − b + c, its cosine with each word, and the other words from the nearest on.

    vectors (n_words, d); a, b, c are rows of it.
    """
    target = vectors[a] - vectors[b] + vectors[c]
    cosines = cosine_score(target[None], vectors)[0]
    order = [int(i) for i in np.argsort(-cosines, kind="stable") if i not in (a, b, c)]
    return target, cosines, order
