"""A head: one query's scores against every key, and the parts each score is the sum of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Part(NamedTuple):
    """One addend of a score: what a piece of the query and a piece of the key contribute."""

    head: str
    query: Any
    key: Any
    value: float


@dataclass(frozen=True)
class Head:
    """Scores of all items for one query, before the mask and the softmax.

    scores: float32 (n_items,). answers: bool (n_items,), the items that this head has anything to
    say about, or None for all. `parts(position)` add up to `scores[position]`. A fused head keeps
    the heads that it is the sum of as `addends`. `notes`: what whoever asked should know.
    """

    name: str
    scores: np.ndarray
    parts: Callable[[int], Sequence[Part]]
    answers: np.ndarray | None = None
    addends: Sequence[Head] = ()
    notes: Sequence[str] = ()

    def by_name(self, position: int) -> dict[str, float]:
        """What each fused head adds to one score."""
        return {head.name: float(head.scores[position]) for head in self.addends or [self]}
