"""Labelled vectors that add up to an embedding, which explain dense scores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property

# Padding, as it is shown, and as it is written in a text: by the name of either kind of model.
PADDING = "<PAD>"
WRITTEN_PADDING = re.compile(r"(<pad>|\[pad\])", re.IGNORECASE)
# A length, or a difference of numbers of about 1, below this is rounding error.
NEGLIGIBLE = 1e-5
# The largest number of int8 whose negative is an int8 too.
LEVELS = 127


def unit_rows(vectors: np.ndarray, negligible: float = 0.0) -> np.ndarray:
    """Scale vectors (..., d) to length 1, keeping their dtype; to 0 if at most `negligible` long.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > negligible, lengths, np.inf))


def quantize_int8(vectors: np.ndarray) -> np.ndarray:
    """Quantize rows to int8 (n, d): divided by the largest absolute number, times 127.

    >>> quantize_int8(np.array([[2.0, -1.0], [0.0, 0.0]]))
    array([[127, -64],
           [  0,   0]], dtype=int8)
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    return np.rint(vectors / np.where(largest > 0, largest, 1) * LEVELS).astype(np.int8)


@dataclass(frozen=True)
class LabelledVectors:
    """Vectors (n, d) that add up to an embedding, each with a label: a word, or a liked item.

    >>> text = LabelledVectors(["deep", "sea"], np.array([[1., 0.], [1., 1.]]))
    >>> text.total
    array([2., 1.])
    """

    labels: Sequence[Any]
    vectors: np.ndarray

    @cached_property
    def total(self) -> np.ndarray:
        """The embedding, (d,)."""
        return self.vectors.sum(axis=0)

    def __len__(self) -> int:
        return len(self.labels)

    def merged(self) -> LabelledVectors:
        """Add up the vectors of equal labels, in order of first occurrence.

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

    def adding_up_to(self, total: np.ndarray) -> LabelledVectors:
        """Add the difference to `total` (d,), shared equally among the vectors.

        >>> LabelledVectors(["a", "b"], np.eye(2)).adding_up_to(np.array([1.5, 1.0])).vectors
        array([[1.25, 0.  ],
               [0.25, 1.  ]])
        """
        if not len(self):
            return self
        return LabelledVectors(self.labels, self.vectors + (total - self.total) / len(self))

    @classmethod
    def joined(cls, embeddings: Sequence[LabelledVectors]) -> LabelledVectors:
        """Add up several embeddings, scaled to length 1, with all their labels.

        >>> sea, car = (LabelledVectors([w], np.eye(2)[[i]]) for i, w in enumerate(["sea", "car"]))
        >>> LabelledVectors.joined([sea, car]).total.round(3)
        array([0.707, 0.707])
        """
        vectors = np.concatenate([embedding.vectors for embedding in embeddings])
        length = np.linalg.norm(vectors.sum(axis=0))
        if length <= NEGLIGIBLE:
            return cls([], vectors[:0])
        labels = [label for embedding in embeddings for label in embedding.labels]
        return cls(labels, vectors / length)
