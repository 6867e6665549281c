"""Dense keys, one vector for each item: a score is query · key, explained by labelled vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np

from qkvsearch.scores.components import Components, PartsOf, Source
from qkvsearch.scores.fusion import Scores
from qkvsearch.text.labelled import LabelledVectors

# A score by more pairs of words than this is explained by whole texts.
MAX_PAIRS = 100_000
# The label of a whole text, which contains no word.
WHOLE_TEXT = "…"


S = TypeVar("S")


class ItemKeys(ABC, Generic[S]):
    """The keys of all items in a dense head. vectors: an array or the like, (n_items, d)."""

    vectors: Any

    def head(
        self,
        name: str,
        query: LabelledVectors,
        pieces_of: Callable[[int], LabelledVectors] | None = None,
    ) -> S | None:
        """Return what `scored` returns, which can explain each score; None for an empty query.

        pieces_of(position): an item's key as a sum of labelled vectors; by default the key is one
        piece without a label. The parts of a score are the products of the labelled vectors.
        """
        if not len(query):
            return None
        pieces = pieces_of or (lambda row: LabelledVectors([None], self.vectors[[row]]))
        vector = query.total.astype(self.vectors.dtype)
        return self.scored(name, vector, product_parts(name, query, pieces))

    @abstractmethod
    def scored(self, name: str, vector: np.ndarray, parts: PartsOf) -> S:
        """Return the scores of all items, or the query (d,) to be scored with other heads."""

    @abstractmethod
    def above(self, query: LabelledVectors, threshold: float) -> np.ndarray:
        """Return the items whose exact score is above a threshold, bool (n_items,)."""


@dataclass(frozen=True)
class DenseKeys(ItemKeys[Scores]):
    """One vector for each item, float32 (n_items, d). A score is query · key."""

    vectors: np.ndarray

    def scored(self, name: str, vector: np.ndarray, parts: PartsOf) -> Scores:
        return Scores(name, self.vectors @ vector, parts)

    def above(self, query: LabelledVectors, threshold: float) -> np.ndarray:
        return self.vectors @ query.total.astype(self.vectors.dtype) > threshold


def product_parts(
    name: str, query: LabelledVectors, pieces_of: Callable[[int], LabelledVectors]
) -> PartsOf:
    """Return the function that computes the parts of query · key: a product for each pair of their
    labels, with equal labels added up. For more than `MAX_PAIRS` pairs the key is one piece.

    pieces_of(position): a key as a sum of labelled vectors.
    """

    @cache  # computed for the first hit that is explained
    def merged_query() -> LabelledVectors:
        return query.merged()

    def parts(position: int) -> Components:
        words, key = merged_query(), pieces_of(position).merged()
        if len(words) * len(key) > MAX_PAIRS:
            key = LabelledVectors([WHOLE_TEXT], key.total[None])
        sources = [Source(name, label) for label in words.labels]
        return Components.pairs(sources, key.labels, words.vectors @ key.vectors.T)

    return parts
