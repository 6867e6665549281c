"""A vector as a sum of labelled vectors: the form that makes every dense score explainable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

# What is left of lengths of about 1, or of how far such numbers differ, is rounding errors below.
NEGLIGIBLE = 1e-5


@dataclass(frozen=True)
class LabelledVectors:
    """`vectors` (n, d) that add up to an embedding, one label each: a word, an item of a history.

    >>> text = LabelledVectors(["deep", "sea"], np.array([[1., 0.], [1., 1.]]))
    >>> text.total
    array([2., 1.])
    """

    labels: Sequence[Any]
    vectors: np.ndarray

    @cached_property
    def total(self) -> np.ndarray:
        """The embedding itself, (d,)."""
        return self.vectors.sum(axis=0)

    def __len__(self) -> int:
        return len(self.labels)

    def merged(self) -> LabelledVectors:
        """Equal labels as one, in the order of their first: what a word adds wherever it stands.

        >>> LabelledVectors(["a", "b", "a"], np.eye(3)).merged().vectors
        array([[1., 0., 1.],
               [0., 1., 0.]])
        """
        rows: dict[Any, int] = {}
        owners = [rows.setdefault(label, len(rows)) for label in self.labels]
        if len(rows) == len(owners):
            return self
        vectors = np.zeros((len(rows), self.vectors.shape[1]), self.vectors.dtype)
        np.add.at(vectors, owners, self.vectors)
        return LabelledVectors(list(rows), vectors)

    @classmethod
    def joined(cls, parts: Sequence[LabelledVectors]) -> LabelledVectors:
        """The sum of several embeddings at length 1, each label with its share of it.

        >>> sea, car = (LabelledVectors([w], np.eye(2)[[i]]) for i, w in enumerate(["sea", "car"]))
        >>> LabelledVectors.joined([sea, car]).total.round(3)
        array([0.707, 0.707])
        """
        vectors = np.concatenate([part.vectors for part in parts])
        length = np.linalg.norm(vectors.sum(axis=0))
        if length <= NEGLIGIBLE:
            return cls([], vectors[:0])
        labels = [label for part in parts for label in part.labels]
        return cls(labels, vectors / length)
