"""A history to a head: what comes next, by the model whose history attends to itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.collaborative.history import History
from qkvsearch.data.ids import Id
from qkvsearch.retrieval import Head, Part

if TYPE_CHECKING:
    from qkvsearch.sequences.model import NextItemModel

HEAD, CONSTANT = "next-item", "constant"


@dataclass(frozen=True, eq=False)
class SequenceScorer:
    """One history, oldest first: row numbers (h,), and the ids of the items."""

    model: NextItemModel
    rows: np.ndarray
    ids: Sequence[Id]

    def head(self) -> Head | None:
        """Scores of all but cold items, None where the history has cold items alone.

        A score is the last state · the item; its parts are what each item of the history adds at
        held attention weights, norms and gates, and a constant.
        """
        if not self.model.known[self.rows].any():
            return None
        scores = self.model.items.weight @ self.model.fold_in(self.rows)
        return Head(HEAD, scores, self._parts, answers=self.model.known)

    def _parts(self, position: int) -> list[Part]:
        *values, constant = self._shares @ self.model.items.weight[position]
        parts = [Part(HEAD, id_, None, float(v)) for id_, v in zip(self.ids, values, strict=True)]
        return [*parts, Part(CONSTANT, None, None, float(constant))]

    @cached_property
    def _shares(self) -> np.ndarray:
        """What each item of the history, and the constant, add to the last state: (h + 1, d)."""
        return self.model.history_vectors(self.rows)


def in_order(history: History) -> np.ndarray:
    """The items of a history, oldest first; of the same time in the catalogue's order."""
    return np.asarray(history.positions[np.argsort(history.times, kind="stable")])
