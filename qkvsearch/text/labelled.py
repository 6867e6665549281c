"""Sums of labelled vectors, by which every dense score can be explained; vectors at length 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property

# Below this, a length or a difference of numbers of about 1 is rounding error.
NEGLIGIBLE = 1e-5
# The largest number of int8 that has a negative of the same size.
LEVELS = 127


def unit_rows(vectors: np.ndarray, negligible: float = 0.0) -> np.ndarray:
    """Vectors (..., d) at length 1, of their dtype; zeros where a length is at most `negligible`.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > negligible, lengths, np.inf))


def quantize_int8(vectors: np.ndarray) -> np.ndarray:
    """int8 (n, d): each row over its largest absolute number, times 127. Its length is lost.

    >>> quantize_int8(np.array([[2.0, -1.0], [0.0, 0.0]]))
    array([[127, -64],
           [  0,   0]], dtype=int8)
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    return np.rint(vectors / np.where(largest > 0, largest, 1) * LEVELS).astype(np.int8)


@dataclass(frozen=True)
class LabelledVectors:
    """Vectors (n, d) that add up to an embedding, each with a label: a word, an item of a history.

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
        """Equal labels merged, in the order of first occurrence: all that each word adds.

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
        """The sum of several embeddings, scaled to length 1, with all their labels.

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
