"""How alike items are by who met them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_matrix

PAIRS_AT_ONCE = 1 << 20
BYTES_AT_ONCE = 1 << 26
WORD = 64


class AudienceSimilarity:
    """|A ∩ B| / √(|A|·|B|), the cosine of two items' audiences A and B: who met them; 0 where
    nobody met one of them. Worked out beforehand for the pairs within `rankings`, lists of rows.

    met: (n_users, n_items), any entry counts as a meeting.

    >>> met = csr_matrix([[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 0]])
    >>> AudienceSimilarity(met, [[0, 1, 2]])([0, 0, 1], [1, 2, 2]).round(3).tolist()
    [0.707, 0.0, 0.5]
    """

    def __init__(self, met: csr_matrix, rankings: Sequence[Sequence[int]]) -> None:
        self.n_items = met.shape[1]
        self.codes = np.zeros(0, dtype=np.int64)
        longest = max(map(len, rankings), default=0)
        step = max(1, PAIRS_AT_ONCE // max(1, longest**2))
        for start in range(0, len(rankings), step):
            within = self._codes_within(rankings[start : start + step], longest)
            self.codes = np.union1d(self.codes, within)
        left, right = np.divmod(self.codes, self.n_items)
        sizes = np.bincount(met.indices, minlength=self.n_items)
        roots = np.sqrt(sizes[left] * sizes[right])
        self.cosines = shared_users(met, left, right) / np.where(roots > 0, roots, 1)

    def __call__(self, left: Sequence[int], right: Sequence[int]) -> np.ndarray:
        """Of pairs that one of the rankings holds, both sides (m,) as rows of items."""
        cosines: np.ndarray = self.cosines[np.searchsorted(self.codes, self._codes(left, right))]
        return cosines

    def _codes(
        self, left: np.ndarray | Sequence[int], right: np.ndarray | Sequence[int]
    ) -> np.ndarray:
        """One number a pair, the same for both orders."""
        a, b = np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)
        return np.minimum(a, b) * self.n_items + np.maximum(a, b)

    def _codes_within(self, rankings: Sequence[Sequence[int]], longest: int) -> np.ndarray:
        table = np.full((len(rankings), longest), -1, dtype=np.int64)
        for row, ranked in zip(table, rankings, strict=True):
            row[: len(ranked)] = ranked
        first, second = np.triu_indices(longest, 1)
        is_pair = table[:, second] >= 0
        return self._codes(table[:, first], table[:, second])[is_pair]


def shared_users(met: csr_matrix, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """How many users met both items of each pair (m,): ones in the "and" of two rows of bits."""
    counts = np.zeros(len(left), dtype=np.int64)
    if not len(left):
        return counts
    items, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    left, right = places[: len(left)], places[len(left) :]
    for bits in _bits(met, items):
        step = max(1, BYTES_AT_ONCE // (8 * bits.shape[1]))
        for start in range(0, len(left), step):
            span = slice(start, start + step)
            both = bits[left[span]] & bits[right[span]]
            counts[span] += np.bitwise_count(both).sum(axis=1, dtype=np.int64)
    return counts


def _bits(met: csr_matrix, items: np.ndarray) -> Iterator[np.ndarray]:
    """A bit a user for each of `items`, in words (len(items), n_words), some users at a time."""
    step = max(1, BYTES_AT_ONCE // (WORD * len(items))) * WORD
    for start in range(0, met.shape[0], step):
        flags = met[start : start + step][:, items].toarray().astype(bool)
        padded = np.pad(flags, ((0, -len(flags) % WORD), (0, 0)))
        yield np.ascontiguousarray(np.packbits(padded, axis=0).T).view(np.uint64)
