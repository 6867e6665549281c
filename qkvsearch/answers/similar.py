"""An item to a head: who met it, and what its texts say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from qkvsearch.answers.search import TextSearch
from qkvsearch.embeddings.labelled import LabelledVectors
from qkvsearch.retrieval import Head, fuse_known

# By eye, on neighbours of well-known films: no judged set of neighbours was at hand.
WEIGHTS = {"collaborative": 0.6, "semantic": 0.4}


@dataclass(frozen=True)
class Neighbours:
    """An item's key as a query."""

    texts: TextSearch

    def fused(self, position: int) -> Head | None:
        """Scores of all items for the one in this row, None where nothing is known of it."""
        models = self.texts.models
        words = partial(self.texts.pieces, models.main_head)
        keys = models.dense_keys(models.main_head)
        scored = {"semantic": keys.head("semantic", words(position), words)}
        if models.implicit is not None:
            direction = self.direction(position)
            if direction.vectors.any():  # an item that nobody met has none
                keys = models.item_directions
                scored["collaborative"] = keys.head("collaborative", direction, self.direction)
        return fuse_known(scored, WEIGHTS)

    def direction(self, position: int) -> LabelledVectors:
        """Who met an item, as one vector of length 1 that bears its title."""
        _, titles = self.texts.tables.names([position])
        vectors = self.texts.models.item_directions.vectors[[position]]
        return LabelledVectors(titles, np.asarray(vectors))
