"""Draw the part of a large catalog that its own encoders learn from.

What words mean shows in a few million of them. More take longer to count, and hardly change the
vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkvsearch.text.analyzed import AnalyzedTexts

# Encoders learn from all texts that have at most so many words together.
MAX_WORDS = 4_000_000
# Of a larger catalog, a longer text than this is cut.
SHORTEST_CUT = 256
SEED = 0


def texts_to_learn_from(
    columns: Sequence[AnalyzedTexts], max_words: int | None = None
) -> Sequence[AnalyzedTexts]:
    """Return text columns with about `max_words` words together, all of them where there are fewer.

    First, long texts are cut to one length, each to a span drawn at random: to the greatest length
    that leaves few enough words, but not below `SHORTEST_CUT`. Where that does not suffice, items
    are drawn. Equal columns give equal parts.
    """
    limit = MAX_WORDS if max_words is None else max_words
    lengths = np.stack([column.n_tokens for column in columns], axis=1)
    if lengths.sum() <= limit:
        return columns
    rng = np.random.default_rng(SEED)
    longest = max(_longest(lengths.ravel(), limit), SHORTEST_CUT)
    n_words = np.minimum(lengths, longest).sum(axis=1)
    shuffled = rng.permutation(len(n_words))
    n_drawn = int(np.searchsorted(np.cumsum(n_words[shuffled]), limit, side="right"))
    rows = np.sort(shuffled[: max(n_drawn, 1)])
    return [column.take(rows).cut(longest, rng) for column in columns]


def _longest(lengths: np.ndarray, limit: int) -> int:
    """Return the greatest length to which texts can be cut to have at most `limit` words together.

    >>> _longest(np.array([2, 9, 5]), 12)
    5
    """
    ascending = np.sort(lengths)
    # How many words there are if each text is cut to the length of this one.
    n_longer = np.arange(len(ascending), 0, -1)
    shorter = np.cumsum(ascending) - ascending
    n_words = shorter + n_longer * ascending
    first = int(np.searchsorted(n_words, limit, side="right"))
    if first == len(ascending):
        return int(ascending[-1])
    return int((limit - shorter[first]) // n_longer[first])
