"""Dense keys of units: items without passages by their own keys, and the passages of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.heads.dense_keys import ItemKeys
from qkvsearch.heads.passages import Units
from qkvsearch.scores.components import PartsOf
from qkvsearch.scores.fusion import Scores
from qkvsearch.text.labelled import LabelledVectors


@dataclass(frozen=True)
class UnitKeys(ItemKeys[Scores]):
    """The keys of all units. Their scores are exact, also where those of items are estimates."""

    of_items: ItemKeys[Any]
    # float32 (n_passages, d).
    of_passages: np.ndarray
    units: Units

    @property
    def dtype(self) -> Any:
        """The dtype of the keys."""
        return self.of_passages.dtype

    @property
    def vectors(self) -> np.ndarray:
        """The keys of all units, a copy, float32 (n_units, d)."""
        return np.concatenate([self.of_items.vectors[self.units.short_items], self.of_passages])

    def mean_key(self) -> np.ndarray:
        return self._mean

    @cached_property
    def _mean(self) -> np.ndarray:
        return np.asarray(self.vectors.mean(axis=0, dtype=np.float64))

    def scored(self, name: str, vector: np.ndarray, parts: PartsOf) -> Scores:
        return Scores(name, self.products(vector), parts)

    def above(self, query: LabelledVectors, threshold: float) -> np.ndarray:
        return self.products(query.total.astype(np.float32)) > threshold

    def products(self, vector: np.ndarray) -> np.ndarray:
        """Return vector · key of all units, float32 (n_units,). vector: (d,)."""
        units = self.units
        of_passages = self.of_passages @ vector
        if not units.n_short:
            return of_passages
        of_items = np.asarray(self.of_items.vectors @ vector)
        return np.concatenate([of_items[units.short_items], of_passages])
