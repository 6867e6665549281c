"""The parts of a score: what each piece of the query adds with each piece of the item.

A long query and a long item have hundreds of thousands of parts, so they stay arrays, and only the
largest ones become objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property

# The parts of a score that are listed one by one. All others are one more part.
MAX_LISTED = 20
# Numbers that differ by a smaller share differ by rounding alone.
ROUNDING = 1e-5
# The names of that part: of its head, and of its piece of the query.
ALL_HEADS, OTHERS = "all", "others"


class ScoreComponent(NamedTuple):
    """One part of a score: what a piece of the query and a piece of the key add to it."""

    # The name of the head that it is of.
    head: str
    # The label of the query's piece, such as a word; None where it is of no piece.
    query: Any
    # The label of the key's piece.
    key: Any
    # What they add to the score.
    value: float
    # The id of the item that the query's piece is of, where the query is made of several items.
    item: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, without `item` where there is none."""
        fields = self._asdict()
        if self.item is None:
            del fields["item"]
        return fields


class PartSource(NamedTuple):
    """The query's side of a part: the head, the piece of the query, and the item it belongs to."""

    head: str
    query: Any
    item: Any = None


@dataclass(frozen=True, eq=False)
class Components:
    """All parts of one score. Part i is what `sources[rows[i]]` and `keys[columns[i]]` add.

    rows, columns: int (n,). values: float64 (n,).

    >>> mean = ScoreComponent("lexical", None, None, -0.5)
    >>> parts = Components.of([ScoreComponent("lexical", "sea", "sea", 2.0), mean])
    >>> parts.sums.tolist(), [part.value for part in parts]
    ([2.0, -0.5], [2.0, -0.5])
    """

    sources: Sequence[PartSource]
    keys: Sequence[Any]
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, parts: Iterable[ScoreComponent]) -> Components:
        """Build from a few parts."""
        parts = list(parts)
        sources = [PartSource(part.head, part.query, part.item) for part in parts]
        values = np.array([part.value for part in parts], dtype=np.float64)
        indices = np.arange(len(parts))
        return cls(sources, [part.key for part in parts], indices, indices, values)

    @classmethod
    def pairs(
        cls, sources: Sequence[PartSource], keys: Sequence[Any], values: np.ndarray
    ) -> Components:
        """Build from a table: what each source adds with each key, (n_sources, n_keys)."""
        if not values.size:
            return cls.of([])
        rows, columns = np.indices(values.shape).reshape(2, -1)
        return cls(sources, keys, rows, columns, values.ravel().astype(np.float64))

    @classmethod
    def joined(cls, several: Sequence[Components]) -> Components:
        """Build from the parts of several sums."""
        if len(several) == 1:
            return several[0]
        sources: list[PartSource] = []
        keys: list[Any] = []
        rows: list[np.ndarray] = []
        columns: list[np.ndarray] = []
        for parts in several:
            rows.append(parts.rows + len(sources))
            columns.append(parts.columns + len(keys))
            sources += parts.sources
            keys += parts.keys
        values = np.concatenate([parts.values for parts in several])
        return cls(sources, keys, np.concatenate(rows), np.concatenate(columns), values)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[ScoreComponent]:
        return iter(self._at(range(len(self))))

    @cached_property
    def sums(self) -> np.ndarray:
        """What each source adds, float64 (n_sources,)."""
        return np.bincount(self.rows, self.values, len(self.sources))

    @cached_property
    def first_keys(self) -> list[Any]:
        """The first key that each source goes with."""
        columns = np.zeros(len(self.sources), dtype=np.int64)
        # Backwards, so that the first part of each source is written last.
        columns[self.rows[::-1]] = self.columns[::-1]
        return [self.keys[column] for column in columns.tolist()]

    def scaled(self, factor: float) -> Components:
        """Return each part times a factor."""
        return replace(self, values=self.values * factor)

    def with_constant(self, head: str, value: float) -> Components:
        """Return the parts and a constant of a head, which has neither query nor key. It is added
        to the one that the head has already; both are left out if they cancel each other out.

        >>> parts = Components.of([ScoreComponent("h", "sea", "sea", 2.0)]).with_constant("h", 3.0)
        >>> [part.value for part in parts.with_constant("h", -1.0)]
        [2.0, 2.0]
        >>> [part.value for part in parts.with_constant("h", -3.0)]
        [2.0]
        """
        is_constant = np.array(
            [
                source == (head, None, None) and key is None
                for source, key in zip(self.sources, self.first_keys, strict=True)
            ],
            dtype=bool,
        )
        own = float(self.sums[is_constant].sum())
        parts = self.only(~is_constant) if is_constant.any() else self
        if own and abs(own + value) <= ROUNDING * abs(own):
            return parts
        constant = ScoreComponent(head, None, None, own + value)
        return Components.joined([parts, Components.of([constant])])

    def renamed(self, rename: Callable[[PartSource], PartSource]) -> Components:
        """Return the same parts with other sources."""
        return replace(self, sources=[rename(source) for source in self.sources])

    def only(self, which: np.ndarray) -> Components:
        """Return the parts of some sources. which: bool (n_sources,)."""
        kept = which[self.rows]
        rows, columns, values = self.rows[kept], self.columns[kept], self.values[kept]
        return replace(self, rows=rows, columns=columns, values=values)

    def table(self, rows: Sequence[int]) -> tuple[list[Any], np.ndarray]:
        """Return the keys that some sources go with, and a table of what these add with each key.

        rows: the numbers of the sources. The table is float64 (n_rows, n_keys).
        """
        row_of = np.full(len(self.sources), -1)
        row_of[rows] = np.arange(len(rows))
        table_rows = row_of[self.rows]
        kept = table_rows >= 0
        columns = self.columns[kept]
        is_used = np.bincount(columns, minlength=len(self.keys)) > 0
        keys = [self.keys[column] for column in np.flatnonzero(is_used).tolist()]
        table_columns = (np.cumsum(is_used) - 1)[columns]
        cells = table_rows[kept] * len(keys) + table_columns
        sums = np.bincount(cells, self.values[kept], len(rows) * len(keys))
        return keys, sums.reshape(len(rows), len(keys))

    def by_query(self) -> Components:
        """Return one part for each piece of the query, the sum over heads and keys.

        Parts without a piece of the query stay as they are, with their first keys.
        """
        first: dict[Any, int] = {}
        sources: list[PartSource] = []
        rows = np.empty(len(self.sources), dtype=np.int64)
        for number, source in enumerate(self.sources):
            # A source without a piece of the query is a piece of its own.
            has_piece = source.query is not None
            piece = (source.query, source.item) if has_piece else (None, number)
            if piece not in first:
                first[piece] = len(sources)
                sources.append(source)
            rows[number] = first[piece]
        sums = np.bincount(rows, self.sums, len(sources))
        keys: list[Any] = [None] * len(sources)
        for number, key in enumerate(self.first_keys):
            if self.sources[number].query is None:
                keys[rows[number]] = key
        places = np.arange(len(sources))
        return Components(sources, keys, places, places, sums)

    def ordered(self) -> list[ScoreComponent]:
        """Return all parts, the largest first."""
        return self._at(np.argsort(-np.abs(self.values), kind="stable").tolist())

    def listed(self, n: int = MAX_LISTED) -> list[ScoreComponent]:
        """Return the `n` largest parts, and the others, if they are several, as a last one.

        >>> parts = Components.of(ScoreComponent("h", i, None, float(i)) for i in range(5))
        >>> parts.listed(2)[-1]
        ScoreComponent(head='all', query='others', key='3 parts', value=3.0, item=None)
        """
        largest, n_others, value = self.largest(n)
        if not n_others:
            return largest
        return [*largest, ScoreComponent(ALL_HEADS, OTHERS, f"{n_others:,} parts", value)]

    def largest(self, n: int) -> tuple[list[ScoreComponent], int, float]:
        """Return the `n` largest parts, how many others there are, and what the others add.

        A single other part would take as much room as the line for it. Then all are returned.
        """
        if len(self) <= n + 1:
            return self.ordered(), 0, 0.0
        sizes = np.abs(self.values)
        candidates = np.flatnonzero(sizes >= np.partition(sizes, -n)[-n])
        largest = candidates[np.argsort(-sizes[candidates], kind="stable")][:n]
        others = float(np.delete(self.values, largest).sum())
        return self._at(largest.tolist()), len(self) - n, others

    def _at(self, indices: Iterable[int]) -> list[ScoreComponent]:
        parts = []
        for index in indices:
            head, query, item = self.sources[self.rows[index]]
            key = self.keys[self.columns[index]]
            parts.append(ScoreComponent(head, query, key, float(self.values[index]), item))
        return parts


# An item's row number -> the parts of its score.
PartsOf = Callable[[int], Components]
