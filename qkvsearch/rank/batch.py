"""Recommendations for all users, block by block, as a table in memory or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.files import replacing
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.errors import Count, QkvError, quantity
from qkvsearch.models.recommend_heads import COLLABORATIVE
from qkvsearch.models.user_history import NO_TIMES, History
from qkvsearch.rank.damping import log_popularity
from qkvsearch.rank.questions import PREFERENCES
from qkvsearch.rank.ranking import own_key
from qkvsearch.rank.recommender import Recommender, in_order
from qkvsearch.scores.topk import Score, search_blocks
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.ids import Ids, id_text
from qkvsearch.tables.writers import CsvLines, require_pyarrow, said_of_guarded, to_jsonl

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

# Columns by name, all of one length.
ColumnsByName = Mapping[str, Sequence[Any]]

FORMATS = ("parquet", "csv", "jsonl")
MIXED_USERS = "The user column is text, because some recorded ids are not whole numbers."
# The columns with their types in SQL; those of the ids follow the ids.
TYPES = {"user": "TEXT", "rank": "INTEGER", "id": "TEXT", "title": "TEXT", "score": "REAL"}
WEAK = (
    "Weak: the recommendations of {n} of {users} rest on too little; for one of them, `user` says "
    "on how little."
)
WITHOUT = "No recommendations for {n} of {users}; for one of them, `user` says why."
# Scores of users × items at a time: 32 MB.
MAX_SCORES = 1 << 22


class Best(NamedTuple):
    """The n recommendations of a block of users, one after another. The arrays are (n,)."""

    # The row of the user.
    users: np.ndarray
    # From 1 for each user.
    ranks: np.ndarray
    # The row of the item.
    items: np.ndarray
    scores: np.ndarray
    # How many users have weak recommendations.
    n_weak: int

    @property
    def n_users(self) -> int:
        """How many users have recommendations."""
        return int(np.count_nonzero(self.ranks == 1))


@dataclass
class UserCounts:
    """How many users there are so far, and of how many there is something to say."""

    n_users: int = 0
    # Those without recommendations.
    n_without: int = 0
    # Those with weak ones.
    n_weak: int = 0

    def notes(self) -> list[str]:
        """Return a note on those without recommendations, and one on those with weak ones."""
        users = quantity(self.n_users, "user")
        notes = []
        if self.n_without:
            notes.append(WITHOUT.format(n=Count(self.n_without), users=users))
        if self.n_weak:
            notes.append(WEAK.format(n=Count(self.n_weak), users=users))
        return notes


@dataclass(frozen=True)
class AllRecommendations:
    """Recommendations for all users, in memory or in a file."""

    # How many users there are, and how many of them have no recommendations.
    users: int
    n_without: int = 0
    notes: Sequence[str] = ()
    # Where the recommendations are, if not in `tables`.
    file: Path | None = None
    # One table for each block of users.
    tables: Sequence[ColumnsByName] = ()
    # The SQL type of each column.
    types: Mapping[str, str] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with a row for each user and rank: user, rank, id, title, score,
        and the columns asked for. Raises `QkvError` where the recommendations are in a file.
        """
        if self.file is not None:
            raise QkvError(
                f"{self.file}: the recommendations are in this file, and no longer in memory; "
                "leave out `path` to get them as a frame"
            )
        import pandas as pd

        columns: dict[str, list[Any]] = {name: [] for name in self.types}
        for table in self.tables:
            for name, cells in columns.items():
                cells.extend(table[name])
        return pd.DataFrame(columns)


@dataclass(frozen=True)
class BlockScores:
    """What the scores of a block of users are made of: user embeddings times item embeddings, plus
    the scores by heads that are no such product.
    """

    # float64 (n, d); zeros for users who like no item of the model.
    embeddings: np.ndarray
    # Sparse (n, n_items); None where there are no other heads.
    others: csr_matrix | None = None

    def knows(self) -> np.ndarray:
        """Return whether anything is known of each user, bool (n,)."""
        knows = np.asarray(self.embeddings.any(axis=1))
        if self.others is not None:
            knows |= np.diff(self.others.indptr) > 0
        return knows

    def of(self, users: np.ndarray) -> BlockScores:
        """Return those of some users of the block."""
        others = None if self.others is None else self.others[users]
        return BlockScores(self.embeddings[users], others)

    def spreads(self, item_embeddings: np.ndarray) -> np.ndarray:
        """Return the standard deviation of each user's scores over all items, (n,)."""
        items = item_embeddings.astype(np.float64)
        step = max(1, MAX_SCORES // len(items))
        spreads = []
        for start in range(0, len(self.embeddings), step):
            block = slice(start, start + step)
            with one_blas_thread():
                scores = self.embeddings[block] @ items.T
            if self.others is not None:
                scores = scores + self.others[block]
            spreads.append(np.asarray(scores.std(axis=1)).ravel())
        return np.concatenate(spreads)


@dataclass(frozen=True)
class BatchRecommendations:
    """Recommendations for all users. The options are those of `Engine.recommend_all`."""

    recommender: Recommender
    k: int
    # bool (n_items,), True = may be recommended.
    mask: np.ndarray
    seen: bool = False
    recent: float | None = None
    damping: float = 0.0
    model: str = PREFERENCES
    # Columns of the catalog that are written too.
    columns: Sequence[StoredColumn] = ()
    # CSV cells as they are, formulas and all.
    raw: bool = False
    heads: Sequence[str] | None = None
    # What the owner's rules add, in standard deviations of a user's scores, float32 (n_items,).
    boosts: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.recent is not None and "interactions.times" not in self.recommender.models.snapshot:
            raise QkvError(NO_TIMES)
        _ = self._items  # raises where there is no such model
        if self.heads is not None:
            self.recommender.multipliers(self.heads, self.model)  # raises for unknown heads

    # --- the table, in memory or in a file ---

    def collect(self, progress: Progress | None) -> AllRecommendations:
        """Return every user's k best items."""
        counts = UserCounts()
        tables = list(self._tables(counts, progress))
        notes = counts.notes()
        return AllRecommendations(
            self._n_users, counts.n_without, notes, tables=tables, types=self.types
        )

    def write(self, path: Path, form: str | None, progress: Progress | None) -> AllRecommendations:
        """Write every user's k best items to one file."""
        counts = UserCounts()
        notes = write_tables(path, form, self.types, self._tables(counts, progress), self.raw)
        if self.recommender.histories.mixed and check_format(path, form) == "parquet":
            notes.append(MIXED_USERS)
        notes += counts.notes()
        return AllRecommendations(self._n_users, counts.n_without, notes, file=path)

    def _tables(self, counts: UserCounts, progress: Progress | None) -> Iterator[ColumnsByName]:
        """Yield a table for each block of users, who are counted."""
        for start, stop in self.blocks:
            best = self.best(start, stop)
            counts.n_users += stop - start
            counts.n_without += stop - start - best.n_users
            counts.n_weak += best.n_weak
            yield self._table(best)
            if progress is not None:
                progress("recommending", stop, self._n_users)

    @property
    def _n_users(self) -> int:
        return len(self.recommender.histories)

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """First row and last + 1 of the users that are solved together."""
        return self.recommender.histories.blocks(self.k)

    @cached_property
    def types(self) -> dict[str, str]:
        """The SQL type of each column."""
        types = {**TYPES, **{own_key(column.name): column.sql_type for column in self.columns}}
        types["user"] = _id_type(self.recommender.histories.ids)
        types["id"] = _id_type(self.recommender.catalog.ids("items"))
        return types

    def _table(self, best: Best) -> ColumnsByName:
        """Return the columns of the file for a block of users."""
        items, row_of = np.unique(best.items, return_inverse=True)
        stored = ["id", "title", *(column.stored for column in self.columns)]
        cells_of_items = self.recommender.catalog.cells(items, stored)
        rows = [cells_of_items[row] for row in row_of.tolist()]
        ids, titles, *others = zip(*rows, strict=True) if rows else [()] * len(stored)
        table: dict[str, Sequence[Any]] = {
            "user": [self.recommender.histories.ids[row] for row in best.users.tolist()],
            "rank": best.ranks.tolist(),
            "id": ids,
            "title": [str(title) for title in titles],
            "score": best.scores.tolist(),
        }
        for column, cells in zip(self.columns, others, strict=True):
            table[own_key(column.name)] = cells
        return table

    # --- the recommendations ---

    def best(self, start: int, stop: int) -> Best:
        """Return the k best items of the users in these rows.

        Users who like nothing have none, as in `recommend`.
        """
        histories = [self.recommender.histories.at(row, self.recent) for row in range(start, stop)]
        block = self._block(histories)
        queries = block.embeddings
        if self._is_adjusted:
            # More components, to go with those that `_keys` have.
            item_embeddings, _ = self._items
            spreads = block.spreads(item_embeddings)
            if self.damping:
                queries = np.column_stack([queries, -self.damping * spreads])
            if self.boosts is not None:
                queries = np.column_stack([queries, spreads])
        keys, (_, allowed) = self._keys, self._items
        hidden = None if self.seen else histories
        scorer = _scorer(queries.astype(np.float32), keys, hidden, block.others)
        items, scores = search_blocks(scorer, len(queries), len(keys), self.k, allowed)
        is_hit = np.isfinite(scores) & block.knows()[:, None]
        rows, ranks = np.nonzero(is_hit)
        n_weak = self._n_weak(histories, block, scores)
        return Best(start + rows, ranks + 1, items[is_hit], scores[is_hit], n_weak)

    def _block(self, histories: list[History]) -> BlockScores:
        """Return what the scores of users with these histories are made of."""
        if self.model == PREFERENCES:
            return self._by_preferences(self.recommender.matrix(histories))
        model = self.recommender.next_item
        with one_blas_thread():
            in_orders = [in_order(history) for history in histories]
            return BlockScores(np.asarray(model.fold_in_many(in_orders)))

    def _by_preferences(self, confidences: csr_matrix) -> BlockScores:
        """Return the embeddings of users and the sum of the other heads, each times its factor.
        confidences: (n, n_items).
        """
        from scipy.sparse import csr_matrix

        preferences, others = self.recommender.preferences, None
        for name, factor in self._multipliers.items():
            if name == COLLABORATIVE or not factor:
                continue
            scores = csr_matrix(preferences.heads[name].score_many(confidences)) * factor
            others = scores if others is None else others + scores
        embeddings = preferences.factors.fold_in_many(confidences)
        return BlockScores(embeddings * self._multipliers.get(COLLABORATIVE, 0.0), others)

    def _n_weak(self, histories: list[History], block: BlockScores, scores: np.ndarray) -> int:
        """Count the users whose recommendations rest on too little. scores: those of each user's
        recommendations, the best first.
        """
        strength = self.recommender.models.strength
        if self.model != PREFERENCES or strength is None:
            return 0
        # The score to judge by is the highest of all items outside the history. The best
        # recommendation is no higher, since a condition only leaves items out: where it is high
        # enough, nothing has to be computed again.
        highest = np.full(len(histories), -np.inf)
        if scores.size > 0 and not self._is_adjusted and not self.seen:
            highest = scores[:, 0].astype(np.float64)
        has_any = block.knows() & np.isfinite(scores).any(axis=1)
        unsure = np.flatnonzero(has_any & (highest < strength.level))
        rest = block.of(unsure)
        keys = np.asarray(self.recommender.factors.item_embeddings, dtype=np.float32)
        hidden = [histories[row] for row in unsure]
        scorer = _scorer(rest.embeddings.astype(np.float32), keys, hidden, rest.others)
        highest[unsure] = search_blocks(scorer, len(unsure), len(keys), 1)[1][:, 0]
        return sum(
            strength.is_weak(histories[row], highest[row]) for row in np.flatnonzero(has_any)
        )

    @cached_property
    def _multipliers(self) -> dict[str, float]:
        """What the scores of each head are multiplied by."""
        if self.heads is not None:
            return self.recommender.multipliers(self.heads, self.model)
        return self.recommender.preferences.multipliers()

    @cached_property
    def _items(self) -> tuple[np.ndarray, np.ndarray]:
        """The item embeddings, (n_items, d), and which items may be recommended, (n_items,): what
        comes next is never a cold one. Raises `WorkspaceError` where there is no such model.
        """
        if self.model == PREFERENCES:
            return self.recommender.factors.item_embeddings, self.mask
        model = self.recommender.next_item
        return np.asarray(model.items.weight), np.asarray(self.mask & model.known)

    @property
    def _is_adjusted(self) -> bool:
        """Whether damping or boosts are added to the scores."""
        return bool(self.damping) or self.boosts is not None

    @cached_property
    def _keys(self) -> np.ndarray:
        """Item embeddings, float32; with damping one more component, how popular an item is, and
        with boosts another, what they add.
        """
        keys, _ = self._items
        if self.damping:
            popularity = log_popularity(self.recommender.models.item_counts)
            keys = np.column_stack([keys, popularity])
        if self.boosts is not None:
            keys = np.column_stack([keys, self.boosts])
        return np.asarray(keys, dtype=np.float32)


def _scorer(
    queries: np.ndarray,
    keys: np.ndarray,
    hidden: list[History] | None,
    others: csr_matrix | None = None,
) -> Callable[[slice], Callable[[], Score]]:
    """Return a scorer for `search_blocks`: key · query, plus `others` (n, n_items) where there are
    any, and −∞ for items of a user's history in `hidden`.
    """

    def scorer(chosen: slice) -> Callable[[], Score]:
        transposed = queries[chosen].T
        lists = [] if hidden is None else [history.positions for history in hidden[chosen]]
        items = np.concatenate([np.zeros(0, np.int64), *lists])
        users = np.repeat(np.arange(len(lists)), [len(positions) for positions in lists])
        order = np.argsort(items, kind="stable")
        items, users = items[order], users[order]  # by item, since blocks are of items
        by_item = None if others is None else others[chosen].T.tocsr()

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
    tables: Iterable[ColumnsByName],
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
                if form == "csv":
                    lines = csv.text(rows)
                else:
                    lines = to_jsonl(dict(zip(types, row, strict=True)) for row in rows)
                file.write(lines.encode())
    guarded = said_of_guarded(csv.guarded)
    return [f"{guarded}; `raw` writes all cells as they are, for programs."] if guarded else []


def arrow_schema(sql_types: Mapping[str, str]) -> Any:
    """Return the Arrow types of columns with these types in SQL."""
    import pyarrow as pa

    kinds = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}
    types = {name: kinds[kind] for name, kind in sql_types.items()}
    return pa.schema(list((types | {"rank": pa.int32(), "score": pa.float32()}).items()))


def arrow_table(table: ColumnsByName, sql_types: Mapping[str, str]) -> Any:
    """Return columns with these types in SQL as an Arrow table."""
    import pyarrow as pa

    columns = dict(table)
    for name, kind in sql_types.items():
        if kind == "TEXT":  # ids of users may be numbers and texts
            columns[name] = [None if cell is None else id_text(cell) for cell in table[name]]
    return pa.table(columns, arrow_schema(sql_types))
