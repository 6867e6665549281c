"""Recommendations for all users, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.files import replacing
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.errors import Count, QkvError, quantity
from qkvsearch.models.preferences import COLLABORATIVE, NEIGHBOURS
from qkvsearch.models.user_history import NO_TIMES, History
from qkvsearch.rank.questions import PREFERENCES
from qkvsearch.rank.ranking import own_key
from qkvsearch.rank.recommend import Recommender, in_order, log_popularity
from qkvsearch.scores.topk import Score, search_blocks
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.ids import Ids, id_text
from qkvsearch.tables.writers import CsvLines, require_pyarrow, said_of_guarded, to_jsonl

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Columns by name, all of one length.
Table = Mapping[str, Sequence[Any]]

FORMATS = ("parquet", "csv", "jsonl")
MIXED_USERS = "The user column is text, because some recorded ids are not whole numbers."
# The columns with their types in SQL; those of the ids follow the ids.
TYPES = {"user": "TEXT", "rank": "INTEGER", "id": "TEXT", "title": "TEXT", "score": "REAL"}
WEAK = (
    "Weak: the recommendations of {n} of {users} rest on too little; for one of them, `user` says "
    "on how little."
)


# Scores of users × items at a time: 32 MB.
MAX_SCORES = 1 << 22


class Best(NamedTuple):
    """Recommendations of a block of users, each array (n,), and how many users have weak ones."""

    users: np.ndarray
    ranks: np.ndarray
    items: np.ndarray
    scores: np.ndarray
    n_weak: int


class Exported(NamedTuple):
    """The number of users, and notes on the file."""

    users: int
    notes: Sequence[str]


@dataclass(frozen=True)
class BatchRecommendations:
    """Recommendations for all users. mask: bool (n_items,), True = may be recommended.

    `seen` items may be recommended again; recent, damping, model, heads: as in `recommend`.
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
    heads: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.recent is not None and "interactions.times" not in self.recommender.models.snapshot:
            raise QkvError(NO_TIMES)
        _ = self._items  # raises where there is no such model
        if self.heads is not None:
            self.recommender.multipliers(self.heads, self.model)  # raises for unknown heads

    def write(self, path: Path, form: str | None, progress: Progress | None) -> Exported:
        """Write every user's k best items to one file."""
        users, n_weak = self.recommender.histories, 0

        def tables() -> Iterator[Table]:
            nonlocal n_weak
            for start, stop in self.blocks:
                best = self.best(start, stop)
                n_weak += best.n_weak
                yield self._table(best)
                if progress is not None:
                    progress("recommending", stop, len(users))

        notes = write_tables(path, form, self.types, tables(), self.raw)
        if users.mixed and check_format(path, form) == "parquet":
            notes.append(MIXED_USERS)
        if n_weak:
            notes.append(WEAK.format(n=Count(n_weak), users=quantity(len(users), "user")))
        return Exported(len(users), notes)

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """First row and last + 1 of the users that are solved together."""
        return self.recommender.histories.blocks(self.k)

    @cached_property
    def types(self) -> dict[str, str]:
        """The SQL type of each column."""
        catalog, users = self.recommender.catalog, self.recommender.histories
        types = {**TYPES, **{own_key(column.name): column.sql_type for column in self.columns}}
        return types | {"user": _id_type(users.ids), "id": _id_type(catalog.ids("items"))}

    def best(self, start: int, stop: int) -> Best:
        """Return the k best items of the users in these rows.

        Users who like nothing have none, as in `recommend`.
        """
        histories = [self.recommender.histories.at(row, self.recent) for row in range(start, stop)]
        embeddings, sums = self._embeddings(histories)
        if self.model == PREFERENCES:
            embeddings = embeddings * self._multipliers.get(COLLABORATIVE, 0.0)
        knows = np.asarray(embeddings.any(axis=1))
        if sums is not None:
            knows |= np.diff(sums.indptr) > 0
        queries = embeddings
        if self.damping:
            spreads = self._spreads(embeddings, sums)
            queries = np.column_stack([embeddings, -self.damping * spreads])
        keys, allowed = self._keys, self._items[1]
        hidden = None if self.seen else histories
        scorer = _scorer(queries.astype(np.float32), keys, hidden, sums)
        items, scores = search_blocks(scorer, len(queries), len(keys), self.k, allowed)
        is_hit = np.isfinite(scores) & knows[:, None]
        rows, ranks = np.nonzero(is_hit)
        n_weak = self._n_weak(histories, knows, embeddings, sums, scores)
        return Best(start + rows, ranks + 1, items[is_hit], scores[is_hit], n_weak)

    def _n_weak(
        self,
        histories: list[History],
        knows: np.ndarray,
        embeddings: np.ndarray,
        sums: csr_matrix | None,
        scores: np.ndarray,
    ) -> int:
        """Count the users whose recommendations rest on too little. knows: bool (n,), who likes
        anything. scores: those of each user's recommendations, the best first.
        """
        strength = self.recommender.models.strength
        if self.model != PREFERENCES or strength is None:
            return 0
        # What a condition leaves is no higher than the highest.
        is_bound = scores.size > 0 and not self.damping and not self.seen
        highest = scores[:, 0] if is_bound else np.full(len(histories), -np.inf)
        highest = highest.astype(np.float64)
        knows = knows & np.isfinite(scores).any(axis=1)
        unsure = np.flatnonzero(knows & (highest < strength.level))
        keys = np.asarray(self.recommender.factors.item_embeddings, dtype=np.float32)
        hidden = [histories[row] for row in unsure]
        rest = None if sums is None else sums[unsure]
        scorer = _scorer(embeddings[unsure].astype(np.float32), keys, hidden, rest)
        highest[unsure] = search_blocks(scorer, len(unsure), len(keys), 1)[1][:, 0]
        return sum(strength.is_weak(histories[row], highest[row]) for row in np.flatnonzero(knows))

    def _embeddings(self, histories: list[History]) -> tuple[np.ndarray, csr_matrix | None]:
        """Return users' embeddings (n, d), zeros for users who like no item of the model, and
        their scores by neighbours (n, n_items), None for none.
        """
        if self.model == PREFERENCES:
            confidences = self.recommender.matrix(histories)
            embeddings = self.recommender.factors.fold_in_many(confidences)
            factor = self._multipliers.get(NEIGHBOURS)
            return embeddings, (confidences @ self._weights) * factor if factor else None
        model = self.recommender.next_item
        with one_blas_thread():
            in_orders = [in_order(history) for history in histories]
            return np.asarray(model.fold_in_many(in_orders)), None

    @cached_property
    def _multipliers(self) -> dict[str, float]:
        """What the scores of each head are multiplied by."""
        if self.heads is not None:
            return self.recommender.multipliers(self.heads, self.model)
        return self.recommender.preferences.multipliers()

    @cached_property
    def _weights(self) -> csr_matrix:
        """The weights of the neighbours, (n_items, n_items)."""
        neighbours = self.recommender.preferences.neighbours
        assert neighbours is not None
        return neighbours.matrix()

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

    def _spreads(self, embeddings: np.ndarray, sums: csr_matrix | None) -> np.ndarray:
        """Return the standard deviation of each user's scores over all items, (n,). sums: those by
        neighbours.
        """
        items, spreads = self._items[0].astype(np.float64), []
        step = max(1, MAX_SCORES // len(items))
        for start in range(0, len(embeddings), step):
            block = slice(start, start + step)
            with one_blas_thread():
                scores = embeddings[block] @ items.T
            spreads.append((scores if sums is None else scores + sums[block]).std(axis=1))
        return np.concatenate([np.asarray(each).ravel() for each in spreads])

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
    queries: np.ndarray,
    keys: np.ndarray,
    hidden: list[History] | None,
    sums: csr_matrix | None = None,
) -> Callable[[slice], Callable[[], Score]]:
    """Return a scorer for `search_blocks`: key · query, plus `sums` (n, n_items) where there are
    any, and −∞ for items of a user's history.
    """

    def scorer(chosen: slice) -> Callable[[], Score]:
        transposed = queries[chosen].T
        lists = [] if hidden is None else [history.positions for history in hidden[chosen]]
        items = np.concatenate([np.zeros(0, np.int64), *lists])
        users = np.repeat(np.arange(len(lists)), [len(positions) for positions in lists])
        order = np.argsort(items, kind="stable")
        items, users = items[order], users[order]
        by_item = None if sums is None else sums[chosen].T.tocsr()

        def score(chunk: slice | np.ndarray) -> np.ndarray:
            block = keys[chunk] @ transposed
            if by_item is not None:
                block += by_item[chunk].toarray()
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


# --- the file, as Parquet, CSV or JSON Lines ---


def check_format(path: Path, form: str | None) -> str:
    """Return "parquet", "csv" or "jsonl", as given or by the file's name. Raises `QkvError`."""
    form = form or path.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise QkvError(f"{path}: all users go to a .parquet, .csv or .jsonl file, not {form!r}")
    if form == "parquet":
        require_pyarrow(path)
    return form


def write_tables(
    path: Path,
    form: str | None,
    types: Mapping[str, str],
    tables: Iterable[Table],
    raw: bool = False,
) -> list[str]:
    """Write tables one below another to a file, which is there when all of it is. types: of the
    columns, in SQL. raw: in CSV, no apostrophe before formulas. Return notes.
    """
    form, csv = check_format(path, form), CsvLines(list(types), raw)
    if path.is_dir() or not path.parent.is_dir():
        raise QkvError(f"{path}: is a folder, or its folder does not exist")
    with replacing(path) as file:
        if form == "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetWriter(file, arrow_schema(types)) as writer:
                for table in tables:
                    writer.write_table(arrow_table(table, types))
        else:
            if form == "csv":
                file.write(csv.heading().encode())
            for table in tables:
                rows = zip(*(table[name] for name in types), strict=True)
                lines = (
                    csv.text(rows)
                    if form == "csv"
                    else to_jsonl(dict(zip(types, row, strict=True)) for row in rows)
                )
                file.write(lines.encode())
    guarded = said_of_guarded(csv.guarded)
    return [f"{guarded}; `raw` writes all cells as they are, for programs."] if guarded else []


def arrow_schema(sql_types: Mapping[str, str]) -> Any:
    """Return the Arrow types of columns with these types in SQL."""
    import pyarrow as pa

    kinds = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}
    types = {name: kinds[kind] for name, kind in sql_types.items()}
    return pa.schema(list((types | {"rank": pa.int32(), "score": pa.float32()}).items()))


def arrow_table(table: Table, sql_types: Mapping[str, str]) -> Any:
    """Return columns with these types in SQL as an Arrow table."""
    import pyarrow as pa

    columns = dict(table)
    for name, kind in sql_types.items():
        if kind == "TEXT":  # ids of users may be numbers and texts
            columns[name] = [None if cell is None else id_text(cell) for cell in table[name]]
    return pa.table(columns, arrow_schema(sql_types))
