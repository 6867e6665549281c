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
# The names of that part: of its head, and of its piece of the query.
ALL_HEADS, OTHERS = "all", "others"


class ScoreComponent(NamedTuple):
    """One addend of a score: what a piece of the query and a piece of the key contribute. item: the
    id of the one that the piece is of, where the query is made of several items.
    """

    head: str
    query: Any
    key: Any
    value: float
    item: Any = None

    def to_dict(self) -> dict[str, Any]:
        """By name; the item where there is one."""
        found = self._asdict()
        if self.item is None:
            del found["item"]
        return found


class Source(NamedTuple):
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
    >>> parts.total, parts.sums.tolist(), [part.value for part in parts]
    (1.5, [2.0, -0.5], [2.0, -0.5])
    """

    sources: Sequence[Source]
    keys: Sequence[Any]
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, parts: Iterable[ScoreComponent]) -> Components:
        """Make one of a few parts."""
        parts = list(parts)
        sources = [Source(part.head, part.query, part.item) for part in parts]
        values = np.array([part.value for part in parts], dtype=np.float64)
        places = np.arange(len(parts))
        return cls(sources, [part.key for part in parts], places, places, values)

    @classmethod
    def pairs(
        cls, sources: Sequence[Source], keys: Sequence[Any], values: np.ndarray
    ) -> Components:
        """Make one of what each source adds with each key, (n_sources, n_keys)."""
        if not values.size:
            return cls.of([])
        rows, columns = np.indices(values.shape).reshape(2, -1)
        return cls(sources, keys, rows, columns, values.ravel().astype(np.float64))

    @classmethod
    def joined(cls, several: Sequence[Components]) -> Components:
        """Make one of the parts of several sums."""
        if len(several) == 1:
            return several[0]
        sources: list[Source] = []
        keys: list[Any] = []
        rows, columns = [], []
        for parts in several:
            rows.append(parts.rows + len(sources))
            columns.append(parts.columns + len(keys))
            sources += parts.sources
            keys += parts.keys
        values = [parts.values for parts in several]
        return cls(sources, keys, *map(np.concatenate, (rows, columns, values)))

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[ScoreComponent]:
        return iter(self._at(range(len(self))))

    @property
    def total(self) -> float:
        """What all parts add up to."""
        return float(self.values.sum())

    @cached_property
    def sums(self) -> np.ndarray:
        """What each source adds, float64 (n_sources,)."""
        return np.bincount(self.rows, self.values, len(self.sources))

    @cached_property
    def first_keys(self) -> list[Any]:
        """The first key that each source goes with."""
        columns = np.zeros(len(self.sources), dtype=np.int64)
        columns[self.rows[::-1]] = self.columns[::-1]
        return [self.keys[column] for column in columns.tolist()]

    def scaled(self, factor: float) -> Components:
        """Each part times a factor."""
        return replace(self, values=self.values * factor)

    def renamed(self, rename: Callable[[Source], Source]) -> Components:
        """The same with other sources."""
        return replace(self, sources=[rename(source) for source in self.sources])

    def only(self, which: np.ndarray) -> Components:
        """The parts of some sources, bool (n_sources,)."""
        kept = which[self.rows]
        rows, columns, values = self.rows[kept], self.columns[kept], self.values[kept]
        return replace(self, rows=rows, columns=columns, values=values)

    def table(self, rows: Sequence[int]) -> tuple[list[Any], np.ndarray]:
        """Return the keys that some sources go with, and what each of these adds with each key,
        float64 (n_rows, n_keys).
        """
        number_of = np.full(len(self.sources), -1)
        number_of[rows] = np.arange(len(rows))
        numbers = number_of[self.rows]
        kept = numbers >= 0
        columns = self.columns[kept]
        is_used = np.bincount(columns, minlength=len(self.keys)) > 0
        places = (np.cumsum(is_used) - 1)[columns]
        shape = len(rows), int(is_used.sum())
        cells = numbers[kept] * shape[1] + places
        keys = [self.keys[column] for column in np.flatnonzero(is_used).tolist()]
        sums = np.bincount(cells, self.values[kept], shape[0] * shape[1])
        return keys, sums.reshape(shape)

    def ordered(self) -> list[ScoreComponent]:
        """Return all parts, the largest first."""
        return self._at(np.argsort(-np.abs(self.values), kind="stable").tolist())

    def listed(self, n: int = MAX_LISTED) -> list[ScoreComponent]:
        """Return the `n` largest parts, and the others, if they are several, as a last one.

        >>> parts = Components.of(ScoreComponent("h", i, None, float(i)) for i in range(5))
        >>> parts.listed(2)[-1]
        ScoreComponent(head='all', query='others', key='3 parts', value=3.0, item=None)
        """
        found, n_others, value = self.largest(n)
        others = ScoreComponent(ALL_HEADS, OTHERS, f"{n_others:,} parts", value)
        return [*found, others] if n_others else found

    def largest(self, n: int) -> tuple[list[ScoreComponent], int, float]:
        """Return the `n` largest parts, how many others there are, and what these add. A single
        other part is no other: then all are returned.
        """
        if len(self) <= n + 1:
            return self.ordered(), 0, 0.0
        sizes = np.abs(self.values)
        candidates = np.flatnonzero(sizes >= np.partition(sizes, -n)[-n])
        largest = candidates[np.argsort(-sizes[candidates], kind="stable")][:n]
        others = float(np.delete(self.values, largest).sum())
        return self._at(largest.tolist()), len(self) - n, others

    def _at(self, places: Iterable[int]) -> list[ScoreComponent]:
        found = []
        for place in places:
            head, query, item = self.sources[self.rows[place]]
            key = self.keys[self.columns[place]]
            found.append(ScoreComponent(head, query, key, float(self.values[place]), item))
        return found


# An item's row number -> the parts of its score.
PartsOf = Callable[[int], Components]
