"""Which items are scored where not all are: the candidates, and a sample for all the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qkvsearch.attention.masks import hide
from qkvsearch.attention.weights import softmax


@dataclass(frozen=True)
class Scope:
    """items: int64 (m,), rows of the scored items, ascending. is_drawn: bool (m,), those that are
    here by chance alone, and so stand for the items that are not scored. n_items: of all.

    >>> scope = Scope.of(np.array([7, 2]), drawn=np.array([4, 2]), n_items=8)
    >>> scope.items.tolist(), scope.counts_in().tolist()
    ([2, 4, 7], [1.0, 6.0, 1.0])
    """

    items: np.ndarray
    is_drawn: np.ndarray
    n_items: int

    @classmethod
    def of(cls, candidates: np.ndarray, drawn: np.ndarray, n_items: int) -> Scope:
        """candidates, drawn: rows of items, in whatever order; an item may be in both."""
        items = np.union1d(candidates, drawn).astype(np.int64)
        return cls(items, ~np.isin(items, candidates), n_items)

    def places(self, positions: np.ndarray) -> np.ndarray:
        """Where the items in these rows stand in `items`. Raises `LookupError` for one that is not
        scored.
        """
        found = np.minimum(np.searchsorted(self.items, positions), len(self.items) - 1)
        if (self.items[found] != positions).any():
            raise LookupError("an item that this query has not scored")
        return found

    def counts_in(self, mask: np.ndarray | None = None) -> np.ndarray:
        """For how many of the items that `mask` leaves, bool (n_items,), each stands, float64 (m,):
        a candidate for itself, all that were drawn equally for the rest.
        """
        n_left = self.n_items if mask is None else int(np.count_nonzero(mask))
        left = np.ones(len(self.items), dtype=bool) if mask is None else mask[self.items]
        chance = left & self.is_drawn
        n_chance = int(np.count_nonzero(chance))
        n_candidates = int(np.count_nonzero(left)) - n_chance
        counts = left.astype(np.float64)
        counts[chance] = (n_left - n_candidates) / max(n_chance, 1)
        return counts

    @cached_property
    def _shares(self) -> np.ndarray:
        counts = self.counts_in()
        return np.asarray(counts / counts.sum())

    def moments(self, scores: np.ndarray) -> tuple[float, float]:
        """Mean and deviation of all items, estimated from the scores (m,)."""
        mean = float(self._shares @ scores)
        return mean, float(np.sqrt(self._shares @ np.square(scores - mean)))

    def correlations(self, scores: np.ndarray) -> np.ndarray:
        """Of several scores (h, m), estimated: float64 (h, h)."""
        centred = scores.astype(np.float64)
        centred -= (centred @ self._shares)[:, None]
        products = (centred * self._shares) @ centred.T
        lengths = np.sqrt(np.diag(products))
        lengths[lengths == 0] = 1
        found = np.asarray(products / np.outer(lengths, lengths))
        np.fill_diagonal(found, 1.0)
        return found


def counted_softmax(
    scores: np.ndarray, counts: np.ndarray, allowed: np.ndarray, temperature: float
) -> np.ndarray:
    """softmax of scores (m,) of which each stands for so many equal ones, (m,): what one of them
    gets, 0 where it is not allowed.

    >>> counted_softmax(np.zeros(2), np.array([1.0, 3.0]), np.ones(2, bool), 1.0).tolist()
    [0.25, 0.25]
    """
    allowed = allowed & (counts > 0)
    # A bias of ln c counts a key c times.
    counted = scores + temperature * np.log(np.where(allowed, counts, 1))
    found = softmax(hide(counted, allowed), temperature)
    return np.asarray(found / np.where(allowed, counts, 1))
