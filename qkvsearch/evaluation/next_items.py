"""The model of what comes next, judged as any other system: by histories in their order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch.data.ids import Ids
from qkvsearch.data.interactions import Interactions
from qkvsearch.errors import QkvError
from qkvsearch.sequences.next_item import NextItem

NEXT_ITEM = "next-item"
# Under the others what is held out comes before what is known.
PROTOCOLS = ("leave-last-out", "time")


class NextItems:
    """`NextItem` with any settings, asked as `recommend(model="next-item")` asks it: by all of a
    history, oldest first. Matrices hold each item's place in time, from 1 on.
    """

    def __init__(self, **settings: Any) -> None:
        self.model = NextItem(**settings)

    @staticmethod
    def check(log: Interactions, protocol: str) -> None:
        """Raise `QkvError` where nothing can be learned or judged, before any work."""
        if protocol not in PROTOCOLS:
            raise QkvError(
                f"`next_item` foresees what comes last, and `protocol` {protocol} holds out what "
                f"came at any time: use {' or '.join(PROTOCOLS)}"
            )
        NextItem().check(log)

    def fit(self, X: csr_matrix) -> Self:
        users = np.repeat(np.arange(X.shape[0], dtype=np.int32), np.diff(X.indptr))
        user_ids, item_ids = (Ids(map(str, range(n))) for n in X.shape)
        times = X.data.astype(np.int64)
        self.model.fit(Interactions(users, X.indices, user_ids, item_ids, times=times))
        return self

    def scores(self, histories: csr_matrix) -> np.ndarray:
        fitted = self.model.model_
        rows = pairwise(histories.indptr)
        embeddings = fitted.fold_in_many([_in_order(histories, *row) for row in rows])
        scores: np.ndarray = embeddings @ fitted.items.weight.T
        scores[:, ~fitted.known] = -np.inf
        scores[~embeddings.any(axis=1)] = -np.inf
        return scores


def _in_order(histories: csr_matrix, start: int, end: int) -> np.ndarray:
    """The items of one row, oldest first."""
    return np.asarray(histories.indices[start:end][np.argsort(histories.data[start:end])])
