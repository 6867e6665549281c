"""A vector as a sum of labelled vectors: the form that makes every dense score explainable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


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
