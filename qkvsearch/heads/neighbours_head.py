"""The head "neighbours" of a recommendation, as it is stored and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from qkvsearch.heads.component import BuildModels
from qkvsearch.heads.preference_head import PreferenceHead, Remaining
from qkvsearch.models.item_neighbours import NeighbourWeights
from qkvsearch.models.item_neighbours_head import ITEM_NEIGHBOURS, learn_neighbours
from qkvsearch.store import BuildContents
from qkvsearch.store.array_spec import ArraySpec
from qkvsearch.store.stored_arrays import StoredArrays


class NeighboursHead(PreferenceHead[NeighbourWeights]):
    """For each item, a list of the items that it speaks for."""

    name = ITEM_NEIGHBOURS.name
    titles: ClassVar = {"en": "neighbours of the history’s items", "zh": "历史中各条目的近邻"}
    arrays: ClassVar = {
        "neighbour_starts": ArraySpec("i", ("items",), rows="interactions", lists="neighbours"),
        "neighbour_targets": ArraySpec("i", ("neighbours",), rows="interactions", below="items"),
        "neighbour_values": ArraySpec("f", ("neighbours",), rows="interactions"),
    }

    def store(self, contents: BuildContents, fitted: NeighbourWeights) -> dict[str, np.ndarray]:
        return {
            "neighbour_starts": fitted.starts,
            "neighbour_targets": fitted.targets,
            "neighbour_values": fitted.values,
        }

    def load(
        self, arrays: Mapping[str, np.ndarray], models: BuildModels
    ) -> NeighbourWeights | None:
        if "neighbour_starts" not in arrays:
            return None
        return NeighbourWeights(
            starts=arrays["neighbour_starts"],
            targets=arrays["neighbour_targets"],
            values=arrays["neighbour_values"],
        )

    def forget(
        self, stored: StoredArrays, contents: BuildContents, remaining: Remaining
    ) -> NeighbourWeights | None:
        if not remaining.is_liked.any():
            self.remove(stored, contents)
            return None
        if not stored.is_pending(contents, "neighbour_starts"):
            return None
        # Each weight follows exactly from who has both items, so that with the interactions that
        # are left one could compute who was there: they are learned anew.
        neighbours = learn_neighbours(remaining.confidences, remaining.settings, 0, None)
        stored.put(contents, **self.store(contents, neighbours))
        return neighbours
