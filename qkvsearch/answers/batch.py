"""Recommendations for all users: block by block, resumable, in memory that stays small."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from qkvsearch.answers.arguments import TASTES, check, check_model
from qkvsearch.answers.export import Export, Table
from qkvsearch.answers.recommend import Recommender, in_order, log_popularity
from qkvsearch.collaborative.history import NO_TIMES, History
from qkvsearch.errors import QkvError
from qkvsearch.progress import Progress
from qkvsearch.retrieval.topk import Score, search_blocks
from qkvsearch.threads import one_blas_thread
from qkvsearch.workspace.records import TIMES


@dataclass(frozen=True)
class BatchRecommendations:
    """What to recommend to all users. mask: bool (n_items,), True = may be recommended.

    `seen` items may be recommended again; `recent`, `damping` and `model` are those of `recommend`.
    """

    recommender: Recommender
    k: int
    mask: np.ndarray
    seen: bool = False
    recent: int | None = None
    damping: float = 0.0
    model: str = TASTES

    def __post_init__(self) -> None:
        check(k=self.k, damping=self.damping)
        check_model(self.model, self.recent)
        if self.recent is not None and TIMES not in self.recommender.models.snapshot:
            raise QkvError(NO_TIMES)
        _ = self._items  # raises where there is no such model

    def write(self, path: Path, form: str | None, state: str, progress: Progress | None) -> int:
        """Every user's k best in one file. Returns how many users were done already, by an earlier
        run that was interrupted.

        state: which build and records these answers are of; parts of another state are not used.
        """
        users = self.recommender.histories
        blocks = users.blocks(self.k)
        options = [self.model, self.k, self.seen, self.recent, self.damping]
        allowed = hashlib.sha256(np.packbits(self.mask).tobytes()).hexdigest()
        tables = self.recommender.tables
        integer = {"user": users.ids.integer, "id": tables.ids("items").integer}
        export = Export(
            path, form, integer, f"{state} {options} {blocks[:1]} {blocks[-1:]} {allowed}"
        )
        done = 0
        for number, (start, stop) in enumerate(blocks):
            if export.has(number):
                done += stop - start
            else:
                export.add(number, self._table(*self.best(start, stop)))
            if progress is not None:
                progress("recommending", stop, len(users))
        export.finish(len(blocks))
        return done

    def best(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of the users in these rows their k best: users, ranks, items and scores, each (n,).

        Users who like nothing have none, as in `recommend`.
        """
        histories = [self.recommender.histories.at(row, self.recent) for row in range(start, stop)]
        embeddings = self._embeddings(histories)
        queries = embeddings
        if self.damping:
            queries = np.column_stack([embeddings, -self.damping * self._spreads(embeddings)])
        scorer = _scorer(queries.astype(np.float32), self._keys, None if self.seen else histories)
        items, scores = search_blocks(scorer, len(queries), len(self._keys), self.k, self._allowed)
        known = np.isfinite(scores) & embeddings.any(axis=1, keepdims=True)
        rows, ranks = np.nonzero(known)
        return start + rows, ranks + 1, items[known], scores[known]

    def _embeddings(self, histories: list[History]) -> np.ndarray:
        """(n, d); zeros for who likes nothing, or nothing that the model knows."""
        if self.model == TASTES:
            return self.recommender.embeddings(histories)
        model = self.recommender.next_item
        with one_blas_thread():
            return np.asarray(model.fold_in_many([in_order(history) for history in histories]))

    @cached_property
    def _items(self) -> np.ndarray:
        """The item embeddings, (n_items, d). Raises `WorkspaceError` where there are none."""
        recommender = self.recommender
        if self.model == TASTES:
            return recommender.factors.item_embeddings
        return np.asarray(recommender.next_item.items.weight)

    @cached_property
    def _allowed(self) -> np.ndarray:
        """What comes next is never a cold item."""
        if self.model == TASTES:
            return self.mask
        return np.asarray(self.mask & self.recommender.next_item.known)

    @cached_property
    def _keys(self) -> np.ndarray:
        """Item embeddings, float32. With damping there is one more component: how popular an item
        is, times what the user pays for that.
        """
        keys = self._items
        if self.damping:
            popularity = log_popularity(self.recommender.models.item_counts)
            keys = np.column_stack([keys, popularity])
        return np.asarray(keys, dtype=np.float32)

    def _spreads(self, embeddings: np.ndarray) -> np.ndarray:
        """The standard deviation of each user's scores over all items, (n,), without the scores."""
        mean, squares = self._moments
        with one_blas_thread():
            found = ((embeddings @ squares) * embeddings).sum(axis=1)
            return np.asarray(np.sqrt(np.maximum(found - (embeddings @ mean) ** 2, 0)))

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the item embeddings: their mean (d,), and that of their products y yᵀ, (d, d)."""
        wide = np.asarray(self._items, dtype=np.float64)
        with one_blas_thread():
            return wide.mean(axis=0), wide.T @ wide / len(wide)

    def _table(
        self, users: np.ndarray, ranks: np.ndarray, items: np.ndarray, scores: np.ndarray
    ) -> Table:
        found, places = np.unique(items, return_inverse=True)
        ids, titles = self.recommender.tables.names(found)
        return {
            "user": [self.recommender.histories.ids[row] for row in users.tolist()],
            "rank": ranks.tolist(),
            "id": [ids[place] for place in places.tolist()],
            "title": [titles[place] for place in places.tolist()],
            "score": scores.tolist(),
        }


def _scorer(
    queries: np.ndarray, keys: np.ndarray, hidden: list[History] | None
) -> Callable[[slice], Callable[[], Score]]:
    """For `search_blocks`: key · query, and −∞ for the items of each user's history."""

    def scorer(chosen: slice) -> Callable[[], Score]:
        turned = queries[chosen].T
        some = [] if hidden is None else [history.positions for history in hidden[chosen]]
        items = np.concatenate([np.zeros(0, np.int64), *some])
        users = np.repeat(np.arange(len(some)), [len(positions) for positions in some])
        order = np.argsort(items, kind="stable")
        items, users = items[order], users[order]

        def score(places: slice | np.ndarray) -> np.ndarray:
            block = keys[places] @ turned
            rows = np.arange(places.start, places.stop) if isinstance(places, slice) else places
            near = slice(*np.searchsorted(items, [rows[0], rows[-1] + 1]))
            at = np.searchsorted(rows, items[near])
            there = rows[at] == items[near]
            block[at[there], users[near][there]] = -np.inf
            return block

        return lambda: score

    return scorer
