"""Recommendations for all users, to a file: block by block, so that an interrupted run goes on."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch.answers.arguments import TASTES, check, check_model
from qkvsearch.answers.recommend import Recommender, in_order, log_popularity
from qkvsearch.collaborative.history import NO_TIMES, History
from qkvsearch.data.writers import require_pyarrow, to_csv, to_jsonl
from qkvsearch.errors import QkvError
from qkvsearch.files import replace_synced
from qkvsearch.progress import Progress
from qkvsearch.retrieval.topk import Score, search_blocks
from qkvsearch.threads import one_blas_thread
from qkvsearch.workspace.records import TIMES

# Columns by name, all of one length.
Table = Mapping[str, Sequence[Any]]

COLUMNS = ("user", "rank", "id", "title", "score")
FORMATS = ("parquet", "csv", "jsonl")
# What a state is called: the first digits of its SHA-256.
STATE = re.compile("[0-9a-f]{16}")
# Parts of another state to which nothing was added for so long are of no run that is at work.
STALE_SECONDS = 24 * 3600


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
        keys, allowed = self._keys, self._items[1]
        scorer = _scorer(queries.astype(np.float32), keys, None if self.seen else histories)
        items, scores = search_blocks(scorer, len(queries), len(keys), self.k, allowed)
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
    def _items(self) -> tuple[np.ndarray, np.ndarray]:
        """The item embeddings, (n_items, d), and which items may be recommended, (n_items,): what
        comes next is never a cold one. Raises `WorkspaceError` where there is no such model.
        """
        if self.model == TASTES:
            return self.recommender.factors.item_embeddings, self.mask
        model = self.recommender.next_item
        return np.asarray(model.items.weight), np.asarray(self.mask & model.known)

    @cached_property
    def _keys(self) -> np.ndarray:
        """Item embeddings, float32; with damping one more component, how popular an item is."""
        keys, _ = self._items
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
        wide = np.asarray(self._items[0], dtype=np.float64)
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


def check_format(path: Path, form: str | None) -> str:
    """ "parquet", "csv" or "jsonl", as given or by the file's name. Raises `QkvError`."""
    found = form or path.suffix.lower().removeprefix(".")
    if found not in FORMATS:
        raise QkvError(f"{path}: all users go to a .parquet, .csv or .jsonl file, not {found!r}")
    if found == "parquet":
        require_pyarrow(path)
    return found


class Export:
    """Parts in `<path>.parts/`, which `finish` makes one file of and removes.

    integer: which of the id columns hold whole numbers. state: what the parts depend on; each has a
    folder of its own, so that two runs with other options do not mix. Each part, and at last the
    file, gets its name when it is whole and on disk.
    """

    def __init__(
        self, path: Path, form: str | None, integer: Mapping[str, bool], state: str
    ) -> None:
        self.path, self.form, self.integer = path, check_format(path, form), integer
        if path.is_dir() or not path.parent.is_dir():
            raise QkvError(f"{path}: is a folder, or is to be in one that is not there")
        self.all_parts = path.with_name(f"{path.name}.parts")
        digest = hashlib.sha256(f"{self.form} {state}".encode()).hexdigest()
        self.folder = self.all_parts / digest[:16]
        if self.all_parts.exists() and not self._is_ours():
            raise QkvError(
                f"{self.all_parts}: in the way, and not ours; move it, or name another file"
            )
        self.folder.mkdir(parents=True, exist_ok=True)

    def _is_ours(self) -> bool:
        return self.all_parts.is_dir() and all(
            STATE.fullmatch(folder.name) for folder in self.all_parts.iterdir()
        )

    def has(self, number: int) -> bool:
        return self._part(number).is_file()

    def add(self, number: int, table: Table) -> None:
        """One more part. Raises `QkvError` where another run with these options has finished."""
        self._require_folder()
        unfinished = self.folder / f"unfinished-{os.getpid()}"
        if self.form == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(self._arrow(table), unfinished)
        else:
            unfinished.write_bytes(_lines(table, self.form).encode())
        replace_synced(unfinished, self._part(number))

    def finish(self, count: int) -> None:
        """The parts 0 to `count` − 1 as one file. Raises `QkvError` as `add` does."""
        self._require_folder()
        whole = self.folder / f"whole-{os.getpid()}"
        parts = [self._part(number) for number in range(count)]
        if self.form == "parquet":
            import pyarrow.parquet as pq

            schema = self._arrow({name: [] for name in COLUMNS}).schema
            with pq.ParquetWriter(whole, schema) as writer:
                for part in parts:
                    writer.write_table(pq.read_table(part))
        else:
            with whole.open("wb") as file:
                if self.form == "csv":
                    file.write(f"{','.join(COLUMNS)}\n".encode())
                for part in parts:
                    with part.open("rb") as source:
                        shutil.copyfileobj(source, file)
        replace_synced(whole, self.path)
        self._tidy()

    def _require_folder(self) -> None:
        if not self.folder.is_dir():
            raise QkvError(f"{self.path}: another run with the same options has written it")

    def _tidy(self) -> None:
        """Remove our parts, and those of other options that nobody goes on with."""
        for folder in self.all_parts.iterdir():
            with suppress(OSError):
                if folder == self.folder or time.time() - folder.stat().st_mtime > STALE_SECONDS:
                    shutil.rmtree(folder)
        with suppress(OSError):  # another run may be at work
            self.all_parts.rmdir()

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:06d}"

    def _arrow(self, table: Table) -> Any:
        import pyarrow as pa

        types = {"rank": pa.int32(), "title": pa.string(), "score": pa.float32()}
        types |= {
            name: pa.int64() if whole else pa.string() for name, whole in self.integer.items()
        }
        schema = pa.schema([(name, types[name]) for name in COLUMNS])
        return pa.table({name: pa.array(table[name], types[name]) for name in COLUMNS}, schema)


def _lines(table: Table, form: str) -> str:
    """The rows without a heading."""
    rows = zip(*(table[name] for name in COLUMNS), strict=True)
    if form == "jsonl":
        return to_jsonl(dict(zip(COLUMNS, row, strict=True)) for row in rows)
    return to_csv(rows)
