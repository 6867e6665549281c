"""Write recommendations for all users to a file, block by block; an interrupted run resumes."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.files import is_on_disk, replacing
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.collaborative.user_history import NO_TIMES, History
from qkvsearch.data.catalog_columns import StoredColumn
from qkvsearch.data.ids import Ids, id_text
from qkvsearch.data.writers import CsvLines, require_pyarrow, said_of_guarded, to_jsonl
from qkvsearch.errors import QkvError
from qkvsearch.recommend.recommend import Recommender, in_order, log_popularity
from qkvsearch.retrieval.ranking import own_key
from qkvsearch.retrieval.topk import Score, search_blocks
from qkvsearch.search.options import PREFERENCES, check, check_model

# Columns by name, all of one length.
Table = Mapping[str, Sequence[Any]]

# The columns with their types in SQL; those of the ids follow the ids.
TYPES = {"user": "TEXT", "rank": "INTEGER", "id": "TEXT", "title": "TEXT", "score": "REAL"}
FORMATS = ("parquet", "csv", "jsonl")
WEAK = (
    "Weak: the recommendations of {:,} of the {:,} users done now rest on too little; for one of "
    "them, `user` says on how little."
)
MIXED_USERS = "The user column is text, because some recorded ids are not whole numbers."
# The folder of a state is named by the first digits of its SHA-256.
STATE = re.compile("[0-9a-f]{16}")
# Parts of another state that did not grow for so long belong to no running process.
STALE_SECONDS = 24 * 3600


class Best(NamedTuple):
    """Recommendations of a block of users, each array (n,), and how many users have weak ones."""

    users: np.ndarray
    ranks: np.ndarray
    items: np.ndarray
    scores: np.ndarray
    n_weak: int


class Exported(NamedTuple):
    """The number of users, how many of them an interrupted run had finished, which the same call
    resumes, and notes on the file.
    """

    users: int
    before: int
    notes: Sequence[str]


@dataclass(frozen=True)
class BatchRecommendations:
    """Recommendations for all users. mask: bool (n_items,), True = may be recommended.

    `seen` items may be recommended again; `recent`, `damping` and `model` are those of `recommend`.
    columns: of the catalog, to be written as well. raw: CSV cells as they are, formulas and all.
    """

    recommender: Recommender
    k: int
    mask: np.ndarray
    seen: bool = False
    recent: int | None = None
    damping: float = 0.0
    model: str = PREFERENCES
    columns: Sequence[StoredColumn] = ()
    raw: bool = False

    def __post_init__(self) -> None:
        check(k=self.k, damping=self.damping)
        check_model(self.model, self.recent)
        if self.recent is not None and "interactions.times" not in self.recommender.models.snapshot:
            raise QkvError(NO_TIMES)
        _ = self._items  # raises where there is no such model

    def write(
        self, path: Path, form: str | None, state: str, progress: Progress | None
    ) -> Exported:
        """Write every user's k best items to one file.

        state: identifies the build and its records; parts of another state are not reused.
        """
        users, blocks = self.recommender.histories, self.blocks
        columns = [column.stored for column in self.columns]
        options = [self.model, self.k, self.seen, self.recent, self.damping, columns, self.raw]
        allowed = hashlib.sha256(np.packbits(self.mask).tobytes()).hexdigest()
        state = f"{state} {options} {blocks[:1]} {blocks[-1:]} {allowed}"
        export = Export(path, form, self.types, state, self.raw)
        done = n_weak = 0
        for number, (start, stop) in enumerate(blocks):
            if export.has(number):
                done += stop - start
            else:
                best = self.best(start, stop)
                export.add(number, self._table(best))
                n_weak += best.n_weak
            if progress is not None:
                progress("recommending", stop, len(users))
        export.finish(len(blocks))
        notes = export.notes(users.mixed)
        if n_weak:
            notes.append(WEAK.format(n_weak, len(users) - done))
        return Exported(len(users), done, notes)

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """First row and last + 1 of the users that are solved together."""
        return self.recommender.histories.blocks(self.k)

    @cached_property
    def types(self) -> dict[str, str]:
        """Of the columns, in SQL."""
        catalog, users = self.recommender.catalog, self.recommender.histories
        types = {**TYPES, **{own_key(column.name): column.sql_type for column in self.columns}}
        return types | {"user": _id_type(users.ids), "id": _id_type(catalog.ids("items"))}

    def arrow_table(self, start: int, stop: int) -> Any:
        """Return the k best items of the users in these rows as an Arrow table."""
        return _arrow(self._table(self.best(start, stop)), self.types)

    @property
    def arrow_schema(self) -> Any:
        return _schema(self.types)

    def best(self, start: int, stop: int) -> Best:
        """Return the k best items of the users in these rows.

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
        is_hit = np.isfinite(scores) & embeddings.any(axis=1, keepdims=True)
        rows, ranks = np.nonzero(is_hit)
        n_weak = self._n_weak(histories, embeddings, scores)
        return Best(start + rows, ranks + 1, items[is_hit], scores[is_hit], n_weak)

    def _n_weak(self, histories: list[History], embeddings: np.ndarray, scores: np.ndarray) -> int:
        """Count the users whose recommendations rest on too little. scores: those of each user's
        recommendations, the best first.
        """
        strength = self.recommender.models.strength
        if self.model != PREFERENCES or strength is None:
            return 0
        # What a condition leaves is no higher than the highest.
        is_bound = scores.size > 0 and not self.damping and not self.seen
        highest = scores[:, 0] if is_bound else np.full(len(histories), -np.inf)
        highest = highest.astype(np.float64)
        knows = embeddings.any(axis=1) & np.isfinite(scores).any(axis=1)
        unsure = np.flatnonzero(knows & (highest < strength.level))
        keys = np.asarray(self.recommender.factors.item_embeddings, dtype=np.float32)
        hidden = [histories[row] for row in unsure]
        scorer = _scorer(embeddings[unsure].astype(np.float32), keys, hidden)
        highest[unsure] = search_blocks(scorer, len(unsure), len(keys), 1)[1][:, 0]
        return sum(strength.is_weak(histories[row], highest[row]) for row in np.flatnonzero(knows))

    def _embeddings(self, histories: list[History]) -> np.ndarray:
        """Return users' embeddings (n, d), zeros for users who like no item of the model."""
        if self.model == PREFERENCES:
            return self.recommender.embeddings(histories)
        model = self.recommender.next_item
        with one_blas_thread():
            return np.asarray(model.fold_in_many([in_order(history) for history in histories]))

    @cached_property
    def _items(self) -> tuple[np.ndarray, np.ndarray]:
        """The item embeddings, (n_items, d), and which items may be recommended, (n_items,): what
        comes next is never a cold one. Raises `WorkspaceError` where there is no such model.
        """
        if self.model == PREFERENCES:
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
            mean_squares = ((embeddings @ squares) * embeddings).sum(axis=1)
            return np.asarray(np.sqrt(np.maximum(mean_squares - (embeddings @ mean) ** 2, 0)))

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the item embeddings: their mean (d,), and that of their products y yᵀ, (d, d)."""
        wide = np.asarray(self._items[0], dtype=np.float64)
        with one_blas_thread():
            return wide.mean(axis=0), wide.T @ wide / len(wide)

    def _table(self, best: Best) -> Table:
        items, row_of = np.unique(best.items, return_inverse=True)
        columns = [column.stored for column in self.columns]
        cells = self.recommender.catalog.cells(items, ["id", "title", *columns])
        rows = [cells[row] for row in row_of.tolist()]
        ids, titles, *others = zip(*rows, strict=True) if rows else [()] * (2 + len(columns))
        return {
            "user": [self.recommender.histories.ids[row] for row in best.users.tolist()],
            "rank": best.ranks.tolist(),
            "id": ids,
            "title": [str(title) for title in titles],
            "score": best.scores.tolist(),
            **{own_key(c.name): cells for c, cells in zip(self.columns, others, strict=True)},
        }


def _scorer(
    queries: np.ndarray, keys: np.ndarray, hidden: list[History] | None
) -> Callable[[slice], Callable[[], Score]]:
    """Return a scorer for `search_blocks`: key · query, and −∞ for items of a user's history."""

    def scorer(chosen: slice) -> Callable[[], Score]:
        transposed = queries[chosen].T
        lists = [] if hidden is None else [history.positions for history in hidden[chosen]]
        items = np.concatenate([np.zeros(0, np.int64), *lists])
        users = np.repeat(np.arange(len(lists)), [len(positions) for positions in lists])
        order = np.argsort(items, kind="stable")
        items, users = items[order], users[order]

        def score(chunk: slice | np.ndarray) -> np.ndarray:
            block = keys[chunk] @ transposed
            rows = np.arange(chunk.start, chunk.stop) if isinstance(chunk, slice) else chunk
            near = slice(*np.searchsorted(items, [rows[0], rows[-1] + 1]))
            at = np.searchsorted(rows, items[near])
            is_scored = rows[at] == items[near]
            block[at[is_scored], users[near][is_scored]] = -np.inf
            return block

        return lambda: score

    return scorer


def _id_type(ids: Ids) -> str:
    return "INTEGER" if ids.integer else "TEXT"


def check_format(path: Path, form: str | None) -> str:
    """Return "parquet", "csv" or "jsonl", as given or by the file's name. Raises `QkvError`."""
    form = form or path.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise QkvError(f"{path}: all users go to a .parquet, .csv or .jsonl file, not {form!r}")
    if form == "parquet":
        require_pyarrow(path)
    return form


class Export:
    """An export in parts in `<path>.parts/`, which `finish` joins to one file and removes.

    types: of the columns, in SQL. state: what the parts depend on; each has a folder of its own, so
    that two runs with other options do not mix. Each part, and at last the file, gets its name when
    it is whole and on disk.
    """

    def __init__(
        self, path: Path, form: str | None, types: Mapping[str, str], state: str, raw: bool = False
    ) -> None:
        self.path, self.form, self.types = path, check_format(path, form), types
        self._csv = CsvLines(list(types), raw)
        if path.is_dir() or not path.parent.is_dir():
            raise QkvError(f"{path}: is a folder, or its folder does not exist")
        self.all_parts = path.with_name(f"{path.name}.parts")
        if not is_on_disk(path):  # a pipe or a terminal, with no folder beside it
            self.all_parts = Path(tempfile.mkdtemp(prefix="qkvsearch-"))
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
        """Write one more part. Raises `QkvError` where another run with these options finished."""
        self._require_folder()
        with replacing(self._part(number)) as file:
            if self.form == "parquet":
                import pyarrow.parquet as pq

                pq.write_table(_arrow(table, self.types), file)
            else:
                file.write(self._lines(table).encode())

    def finish(self, count: int) -> None:
        """Join the parts 0 to `count` − 1 to one file. Raises `QkvError` as `add` does."""
        self._require_folder()
        parts = [self._part(number) for number in range(count)]
        if self.form == "parquet":
            import pyarrow.parquet as pq

            schema = _schema(self.types)
            with replacing(self.path) as file, pq.ParquetWriter(file, schema) as writer:
                for part in parts:
                    writer.write_table(pq.read_table(part))
        else:
            with replacing(self.path) as file:
                if self.form == "csv":
                    file.write(self._csv.heading().encode())
                for part in parts:
                    with part.open("rb") as source:
                        shutil.copyfileobj(source, file)
        self._tidy()

    def _require_folder(self) -> None:
        if not self.folder.is_dir():
            raise QkvError(f"{self.path}: another run with the same options has written it")

    def _tidy(self) -> None:
        """Remove the parts, and stale parts of other options."""
        for folder in self.all_parts.iterdir():
            with suppress(OSError):
                if folder == self.folder or time.time() - folder.stat().st_mtime > STALE_SECONDS:
                    shutil.rmtree(folder)
        with suppress(OSError):  # another run may be at work
            self.all_parts.rmdir()

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:06d}"

    def notes(self, mixed_users: bool) -> list[str]:
        """Return what a reader of the file should know."""
        notes = []
        if mixed_users and self.form == "parquet":
            notes.append(MIXED_USERS)
        if guarded := said_of_guarded(self._csv.guarded):
            notes.append(f"{guarded}; `raw` writes all cells as they are, for programs.")
        return notes

    def _lines(self, table: Table) -> str:
        """Return the rows without a heading."""
        rows = zip(*(table[name] for name in self.types), strict=True)
        if self.form == "jsonl":
            return to_jsonl(dict(zip(self.types, row, strict=True)) for row in rows)
        return self._csv.text(rows)


def _schema(sql_types: Mapping[str, str]) -> Any:
    import pyarrow as pa

    kinds = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}
    types = {name: kinds[kind] for name, kind in sql_types.items()}
    return pa.schema(list((types | {"rank": pa.int32(), "score": pa.float32()}).items()))


def _arrow(table: Table, sql_types: Mapping[str, str]) -> Any:
    import pyarrow as pa

    columns = dict(table)
    for name, kind in sql_types.items():
        if kind == "TEXT":  # ids of users may be numbers and texts
            columns[name] = [None if cell is None else id_text(cell) for cell in table[name]]
    return pa.table(columns, _schema(sql_types))
