"""Recommendations for all users: block by block, resumable, in memory that stays small."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qkvsearch.answers.control import log_popularity
from qkvsearch.answers.export import Export, Table
from qkvsearch.answers.recommend import check_damping, check_recent
from qkvsearch.answers.users import Everyone
from qkvsearch.embeddings.history import History
from qkvsearch.errors import QkvError
from qkvsearch.progress import Progress
from qkvsearch.retrieval.topk import Score, search_blocks


@dataclass(frozen=True)
class Batch:
    """What to recommend to everyone. mask: bool (n_items,), True = may be recommended.

    `seen` items may be recommended again; `recent` and `damping` are those of `recommend`.
    """

    everyone: Everyone
    k: int
    mask: np.ndarray
    seen: bool = False
    recent: int | None = None
    damping: float = 0.0

    def __post_init__(self) -> None:
        check_damping(self.damping)
        check_recent(self.recent)
        if self.k < 0:
            raise QkvError(f"k is how many for each user, 0 or more, not {self.k}")

    def write(self, path: Path, form: str | None, state: str, progress: Progress | None) -> int:
        """Every user's k best in one file. Returns how many users were done already, by an earlier
        run that was interrupted.

        state: which build and records these answers are of; parts of another state are discarded.
        """
        options = [self.k, self.seen, self.recent, self.damping, self.everyone.blocks()[-1:]]
        allowed = hashlib.sha256(np.packbits(self.mask).tobytes()).hexdigest()
        tables = self.everyone.people.tables
        integer = {"user": self.everyone.ids.integer, "id": tables.ids("items").integer}
        export = Export(path, form, integer, f"{state} {options} {allowed}")
        done = 0
        for number, (start, stop) in enumerate(self.everyone.blocks()):
            if export.has(number):
                done += stop - start
            else:
                export.add(number, self._table(*self.best(start, stop)))
            if progress is not None:
                progress("recommending", stop, len(self.everyone))
        export.finish(len(self.everyone.blocks()))
        return done

    def best(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of the users in these rows their k best: users, ranks, items and scores, each (n,).

        Users who like nothing have none, as in `recommend`.
        """
        people = self.everyone.people
        histories, embeddings = self.everyone.block(start, stop, self.recent)
        queries, keys = embeddings, people.factors.item_embeddings
        if self.damping:  # one more component: what the user pays, times how popular an item is
            fee = self.damping * _spreads(embeddings, keys)
            queries = np.column_stack([embeddings, -fee])
            keys = np.column_stack([keys, log_popularity(people.models.item_counts)])
        keys = np.asarray(keys, dtype=np.float32)
        scorer = _scorer(queries.astype(np.float32), keys, None if self.seen else histories)
        items, scores = search_blocks(scorer, len(queries), len(keys), self.k, self.mask)
        known = np.isfinite(scores) & embeddings.any(axis=1, keepdims=True)
        rows, ranks = np.nonzero(known)
        return start + rows, ranks + 1, items[known], scores[known]

    def _table(
        self, users: np.ndarray, ranks: np.ndarray, items: np.ndarray, scores: np.ndarray
    ) -> Table:
        found, places = np.unique(items, return_inverse=True)
        ids, titles = self.everyone.people.tables.names(found)
        return {
            "user": [self.everyone.ids[row] for row in users.tolist()],
            "rank": ranks.tolist(),
            "id": [ids[place] for place in places.tolist()],
            "title": [titles[place] for place in places.tolist()],
            "score": scores.tolist(),
        }


def _spreads(embeddings: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The standard deviation of each user's scores over all items, (n,), without the scores."""
    wide = np.asarray(keys, dtype=np.float64)
    squares = np.einsum(
        "nd,de,ne->n", embeddings, wide.T @ wide / len(wide), embeddings, optimize=True
    )
    return np.sqrt(np.maximum(squares - (embeddings @ wide.mean(axis=0)) ** 2, 0))


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
