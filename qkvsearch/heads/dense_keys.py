"""Dense keys, one vector for each item: a score is query · key, explained by labelled vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.scores.components import Components, PartsOf, PartSource
from qkvsearch.scores.fusion import Scores
from qkvsearch.text.labelled import LabelledVectors

# A score by more pairs of words than this is explained by whole texts.
MAX_PAIRS = 100_000
# Where pieces of a key cancel each other out so far, none has a share of its own in their sum.
MAX_CANCELLED = 10
# The label of a whole text, which contains no word.
WHOLE_TEXT = "…"


S = TypeVar("S")


class ItemKeys(ABC, Generic[S]):
    """The keys of all items in a dense head. vectors: an array or the like, (n_items, d)."""

    vectors: Any

    @property
    def dtype(self) -> Any:
        """The dtype of the keys."""
        return self.vectors.dtype

    def __len__(self) -> int:
        return len(self.vectors)

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Return some of the keys, float (n, d)."""
        return np.asarray(self.vectors[positions])

    def head(
        self,
        name: str,
        query: LabelledVectors,
        pieces_of: Callable[[int], LabelledVectors] | None = None,
        is_relative: bool = False,
    ) -> S | None:
        """Return what `scored` returns, which can explain each score; None for an empty query.

        pieces_of(position): an item's key as a sum of labelled vectors; by default the key is one
        piece without a label. The parts of a score are the products of the labelled vectors.
        is_relative: whether the parts tell how a key differs from the mean key: see `product_parts`
        """
        if not len(query):
            return None
        pieces = pieces_of or (lambda row: LabelledVectors([None], self.vectors[[row]]))
        vector = query.total.astype(self.dtype)
        mean_key = self.mean_key if is_relative else None
        return self.scored(name, vector, product_parts(name, query, pieces, mean_key))

    def mean_key(self) -> np.ndarray | None:
        """Return the mean of all keys, float (d,); None where that takes too long."""
        return None

    @abstractmethod
    def scored(self, name: str, vector: np.ndarray, parts: PartsOf) -> S:
        """Return the scores of all items, or the query (d,) to be scored with other heads."""


class ExactKeys(ItemKeys[Scores]):
    """Keys that are all at hand, so that scores are exact, and their mean is known."""

    def mean_key(self) -> np.ndarray:
        return self._mean

    @cached_property
    def _mean(self) -> np.ndarray:
        return np.asarray(self.vectors.mean(axis=0, dtype=np.float64))


@dataclass(frozen=True)
class DenseKeys(ExactKeys):
    """One vector for each item, float32 (n_items, d). A score is query · key."""

    vectors: np.ndarray

    def scored(self, name: str, vector: np.ndarray, parts: PartsOf) -> Scores:
        return Scores(name, self.vectors @ vector, parts)


def product_parts(
    name: str,
    query: LabelledVectors,
    pieces_of: Callable[[int], LabelledVectors],
    mean_key: Callable[[], np.ndarray | None] | None = None,
) -> PartsOf:
    """Return the function that computes the parts of query · key: a product for each pair of their
    labels, with equal labels added up. For more than `MAX_PAIRS` pairs the key is one piece.

    pieces_of(position): a key as a sum of labelled vectors. mean_key: where all keys are similar,
    every pair adds much to every score. With the mean key, a pair's product is that of how the key
    differs from the mean, and what the mean key adds is a constant with neither query nor key.
    """

    @cache  # computed for the first hit that is explained
    def merged_query() -> LabelledVectors:
        return query.merged()

    def parts(position: int) -> Components:
        words, key = merged_query(), pieces_of(position).merged()
        if len(words) * len(key) > MAX_PAIRS:
            key = LabelledVectors([WHOLE_TEXT], key.total[None])
        sources = [PartSource(name, label) for label in words.labels]
        values = words.vectors @ key.vectors.T
        mean = mean_key() if mean_key is not None and len(key) else None
        if mean is None:
            return Components.pairs(sources, key.labels, values)
        in_mean = words.vectors @ mean
        values = values - in_mean[:, None] * _shares(key.vectors @ mean)
        return Components.pairs(sources, key.labels, values).with_constant(
            name, float(in_mean.sum())
        )

    return parts


def _shares(along: np.ndarray) -> np.ndarray:
    """Return the share of each piece of a key in what the key has of the mean key, (n,): they add
    up to 1. along: each piece · the mean key.
    """
    total = along.sum()
    if np.abs(along).sum() > MAX_CANCELLED * np.abs(total):
        return np.full(len(along), 1 / len(along))
    return np.asarray(along / total)
