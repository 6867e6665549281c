"""Dense keys of units: items without passages by their own keys, and the passages of others, whose
keys are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.heads.component import Addition, BuildModels, IndexComponent
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.dense_keys import ExactKeys, ItemKeys
from qkvsearch.heads.passage_encoding import encoded_passages
from qkvsearch.heads.passages import Passages, PassagesComponent, Units, in_order
from qkvsearch.scores.components import PartsOf
from qkvsearch.scores.fusion import Scores
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.array_spec import ArraySpec


@dataclass(frozen=True)
class UnitKeys(ExactKeys):
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

    def __len__(self) -> int:
        return len(self.units)

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Return some of the keys, without a copy of all of them, float (n, d)."""
        rows = np.empty((len(positions), self.of_passages.shape[1]), self.dtype)
        is_passage = positions >= self.units.n_short
        rows[is_passage] = self.of_passages[positions[is_passage] - self.units.n_short]
        short = self.units.item_of[positions[~is_passage]]
        rows[~is_passage] = self.of_items.rows(short)
        return rows

    def scored(self, name: str, vector: np.ndarray, parts: PartsOf) -> Scores:
        return Scores(name, self.products(vector), parts)

    def products(self, vector: np.ndarray) -> np.ndarray:
        """Return vector · key of all units, float32 (n_units,). vector: (d,)."""
        units = self.units
        of_passages = self.of_passages @ vector
        if not units.n_short:
            return of_passages
        of_items = np.asarray(self.of_items.vectors @ vector)
        return np.concatenate([of_items[units.short_items], of_passages])


@dataclass(frozen=True)
class PassageKeysComponent(IndexComponent[np.ndarray]):
    """The keys of passages in a dense head. `group` is its name."""

    arrays: ClassVar = {
        "passage_keys": ArraySpec("f", ("passages", "components"), rows="own"),
    }

    def store(self, contents: BuildContents, keys: np.ndarray) -> None:
        """keys: of all passages, float32 (n_passages, d)."""
        self.put(contents, passage_keys=keys)

    def load(self, models: BuildModels) -> np.ndarray:
        """Load the keys of all passages in the order of units, float32 (n_passages, d)."""
        return self._keys(models.snapshot, models.load(PassagesComponent()).stored)

    def joined(self, snapshot: Snapshot) -> dict[str, Any]:
        numbers = PassagesComponent().stored_units(snapshot)
        if len(numbers.item_of) == numbers.n_short:
            return {"passage_keys": None}
        return {"passage_keys": self._keys(snapshot, numbers.stored)}

    def _keys(self, snapshot: Snapshot, stored: Sequence[np.ndarray]) -> np.ndarray:
        pieces = [arrays["passage_keys"] for arrays, _ in self.pieces(snapshot, "passage_keys")]
        return in_order(pieces, stored)

    def new_rows(self, addition: Addition, progress: Progress) -> dict[str, np.ndarray]:
        """Copy the keys of passages that are encoded already, and encode the others."""
        previous, unread = addition.previous, addition.unread
        split = Passages.of(addition.catalog.fields())
        encoder = previous.load(DenseComponent(self.group)).encoder
        keys = np.zeros((len(split), encoder.n_components), np.float32)
        units = previous.load(PassagesComponent())
        before = previous.load(self)
        for item in np.flatnonzero(~unread).tolist():
            own = units.passages_of(int(addition.positions[item])) - units.n_short
            keys[split.starts[item] : split.starts[item + 1]] = before[own]
        new = split.of_items(unread)
        if len(new):
            fields = new.fields(addition.new_fields)
            weights = previous.column_weights(self.group)
            made = encoded_passages(self.group, encoder, fields, progress)
            keys[unread[split.items]] = np.concatenate([items.keys(weights) for items, _ in made])
        return {"passage_keys": keys}
