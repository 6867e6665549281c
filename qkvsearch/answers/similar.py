"""An item to a head: neighbours by its users, and by its texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from qkvsearch.answers.search import TextSearch
from qkvsearch.labelled import LabelledVectors
from qkvsearch.retrieval import DenseKeys, Head, Part, fuse_known

# By eye, on neighbours of well-known films: no judged set of neighbours was at hand.
WEIGHTS = {"collaborative": 0.6, "semantic": 0.4}


@dataclass(frozen=True)
class Neighbours:
    """An item's key as a query."""

    texts: TextSearch

    def fused(self, position: int) -> Head | None:
        """Scores of all items for the one in this row, None where nothing is known of it."""
        models = self.texts.models
        scored = {"semantic": self._by_text(position)}
        if models.implicit is not None:
            direction = self.direction(position)
            if direction.vectors.any():  # a cold item has none
                keys = models.item_directions
                scored["collaborative"] = keys.head("collaborative", direction, self.direction)
        return fuse_known(scored, WEIGHTS)

    def _by_text(self, position: int) -> Head | None:
        """By the stored keys alone: the encoder is asked for words only where someone asks why."""
        head = self.texts.models.main_head
        keys = self.texts.models.dense_keys(head)
        key = keys.vectors[[position]]
        if not key.any():
            return None
        pieces = cache(partial(self.texts.pieces, head))

        def parts(other: int) -> Sequence[Part]:
            products = DenseKeys(keys.vectors[[other]])
            found = products.head("semantic", pieces(position), lambda _: pieces(other))
            return found.parts(0) if found else []

        whole = keys.head("semantic", LabelledVectors([None], key))
        return whole and replace(whole, parts=parts)

    def direction(self, position: int) -> LabelledVectors:
        """An item's embedding at length 1, labelled with its title."""
        _, titles = self.texts.tables.names([position])
        vectors = self.texts.models.item_directions.vectors[[position]]
        return LabelledVectors(titles, np.asarray(vectors))
