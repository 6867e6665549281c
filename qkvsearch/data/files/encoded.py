"""Tables too long for a frame of text: each column by its distinct cells, or as numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from qkvsearch.data.files.frames import as_text
from qkvsearch.data.files.scratch import GrowingArray, pieces_of, scratch_array
from qkvsearch.data.ids import are_integers

# What stands for an empty cell among whole numbers, by how many bytes each has.
EMPTY = {4: int(np.iinfo(np.int32).min), 8: int(np.iinfo(np.int64).min)}
# Distinct numbers that lie this close together, as a multiple of their rows, are told by a table.
DENSE = 4


class Coded(NamedTuple):
    """Cells by number: codes int32 (n,), −1 where a cell is empty, and the distinct texts (m,), a
    Series of objects.
    """

    codes: np.ndarray
    texts: pd.Series


class EncodedColumn(ABC):
    """A column of cells of text, kept in fewer bytes than text."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def coded(self) -> Coded:
        """Its cells by number. Distinct texts have distinct numbers."""

    @abstractmethod
    def filled(self, rows: slice) -> np.ndarray:
        """Which cells of a span are not empty, bool."""

    @abstractmethod
    def texts(self, rows: slice | np.ndarray) -> np.ndarray:
        """The texts of some cells, objects, NaN where empty."""

    @cached_property
    def n_filled(self) -> int:
        return sum(int(np.count_nonzero(self.filled(rows))) for rows in pieces_of(len(self)))

    def filled_places(self, step: int) -> np.ndarray:
        """Of the cells that are not empty, where every so manyeth is."""
        found, before = [np.empty(0, np.int64)], 0
        for rows in pieces_of(len(self)):
            places = np.flatnonzero(self.filled(rows)) + rows.start
            found.append(places[-before % step :: step])
            before += len(places)
        return np.concatenate(found)


@dataclass(frozen=True)
class TextColumn(EncodedColumn):
    """distinct: texts (m,), objects, in the order in which they occur first."""

    codes: np.ndarray
    distinct: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)

    def coded(self) -> Coded:
        return Coded(self.codes, pd.Series(self.distinct, dtype=object))

    def filled(self, rows: slice) -> np.ndarray:
        return np.asarray(self.codes[rows] >= 0)

    def texts(self, rows: slice | np.ndarray) -> np.ndarray:
        return np.append(self.distinct, np.nan)[self.codes[rows]]


@dataclass(frozen=True)
class NumberColumn(EncodedColumn):
    """values: whole numbers, int32 or int64, `EMPTY` where a cell is; or float64, with NaN. moment:
    the dtype of moments that are kept as whole numbers, such as "datetime64[us, UTC]".
    """

    values: np.ndarray
    moment: str = ""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_whole(self) -> bool:
        """Whether the cells are whole numbers and nothing else."""
        return self.values.dtype.kind == "i" and not self.moment

    def filled(self, rows: slice) -> np.ndarray:
        values = self.values[rows]
        if values.dtype.kind == "f":
            return np.asarray(~np.isnan(values))
        return np.asarray(values != EMPTY[values.itemsize])

    def texts(self, rows: slice | np.ndarray) -> np.ndarray:
        values = self.values[rows]
        filled = NumberColumn(values).filled(slice(None))
        found = np.full(len(values), np.nan, dtype=object)
        distinct, codes = np.unique(values[filled], return_inverse=True)
        found[filled] = self.spelled(distinct)[codes]
        return found

    def spelled(self, values: np.ndarray) -> np.ndarray:
        """The texts (n,), objects, of values (n,) that are not empty."""
        if self.is_whole:
            return np.array([*map(str, values.tolist()), None], dtype=object)[:-1]
        cells = moments(values, self.moment) if self.moment else pd.Series(values)
        return as_text(cells.to_frame("cells"))["cells"].to_numpy(object)

    def coded(self) -> Coded:
        """Numbered in their order."""
        span = self._span()
        codes = scratch_array(len(self), np.int32)
        if span is not None:
            lowest, there = span
            distinct = np.flatnonzero(there) + lowest
            place = np.cumsum(there, dtype=np.int32) - 1
        else:
            distinct = self._distinct()
        for rows in pieces_of(len(self)):
            values, filled = self.values[rows], self.filled(rows)
            if span is None:
                codes[rows] = np.searchsorted(distinct, values)
            else:
                codes[rows] = place[np.where(filled, values.astype(np.int64) - lowest, 0)]
            codes[rows][~filled] = -1
        return Coded(codes, pd.Series(self.spelled(distinct), dtype=object))

    def _distinct(self) -> np.ndarray:
        """The different values, ascending."""
        found = np.empty(0, self.values.dtype)
        waiting: list[np.ndarray] = []
        for rows in pieces_of(len(self)):
            waiting.append(np.unique(self.values[rows][self.filled(rows)]))
            if sum(map(len, waiting)) > max(len(found), 1 << 22):
                found, waiting = np.unique(np.concatenate([found, *waiting])), []
        return np.unique(np.concatenate([found, *waiting]))

    def _span(self) -> tuple[int, np.ndarray] | None:
        """The lowest of whole numbers that lie close together, and which of those from there on
        occur, bool; None for others.
        """
        if self.values.dtype.kind != "i" or not self.n_filled:
            return None
        ends = []
        for rows in pieces_of(len(self)):
            values = self.values[rows][self.filled(rows)]
            ends += [int(values.min()), int(values.max())] if len(values) else []
        lowest, width = min(ends), max(ends) - min(ends) + 1
        if width > DENSE * len(self):
            return None
        there = np.zeros(width, dtype=bool)
        for rows in pieces_of(len(self)):
            values = self.values[rows][self.filled(rows)]
            there[values.astype(np.int64) - lowest] = True
        return lowest, there


def unit_of(dtype: str) -> str:
    """Of a dtype of moments.

    >>> unit_of("datetime64[us, UTC]")
    'us'
    """
    return dtype.removeprefix("datetime64[").removesuffix("]").partition(",")[0]


def moments(values: np.ndarray, dtype: str) -> pd.Series:
    """Moments (n,) that are kept as whole numbers.

    >>> moments(np.array([90]), "datetime64[s, Europe/Berlin]").astype(str).tolist()
    ['1970-01-01 01:01:30+01:00']
    """
    zone = dtype.removesuffix("]").partition(", ")[2]
    found = pd.Series(values.astype(np.int64).view(f"M8[{unit_of(dtype)}]"))
    return found.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else found


@dataclass(frozen=True)
class RowNumbers:
    """Which row of its file each row of a table is: numbers count on from `firsts`, int64 (runs,),
    at the places `starts`, int64 (runs,).
    """

    starts: np.ndarray
    firsts: np.ndarray

    def __getitem__(self, place: int) -> int:
        run = int(np.searchsorted(self.starts, place, side="right")) - 1
        return int(self.firsts[run]) + place - int(self.starts[run])


@dataclass(frozen=True)
class EncodedTable:
    """columns: by their names, in their order. rows: their numbers in the file."""

    columns: dict[str, EncodedColumn]
    rows: RowNumbers
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def frame(self, names: Sequence[str] | None = None, rows: slice | None = None) -> pd.DataFrame:
        """Some of it, all by default, as cells of text."""
        span = rows or slice(0, self.n_rows)
        start, stop, _ = span.indices(self.n_rows)
        numbers = np.arange(start, max(start, stop))
        if len(numbers):
            run = np.searchsorted(self.rows.starts, numbers, side="right") - 1
            numbers = self.rows.firsts[run] + numbers - self.rows.starts[run]
        wanted = list(self.columns) if names is None else names
        cells = {name: self.columns[name].texts(span) for name in wanted}
        return pd.DataFrame(cells, index=numbers, columns=wanted, dtype=object)

    def filled(self, name: str) -> tuple[int, int, str]:
        """How many cells of a column are not empty, of how many, and the first that is not."""
        column = self.columns[name]
        first = column.filled_places(max(column.n_filled, 1))
        return column.n_filled, len(column), str(column.texts(first)[0]) if len(first) else ""

    def some_cells(self, name: str, about: int) -> pd.Series:
        """Every so manyeth of a column's cells that are not empty: `about` so many, or twice."""
        column = self.columns[name]
        places = column.filled_places(max(1, column.n_filled // about))
        index = [self.rows[place] for place in places.tolist()]
        return pd.Series(column.texts(places), index=index, name=name, dtype=object)

    def is_unique(self, name: str) -> bool:
        """Whether no two cells of a column are alike, empty ones included."""
        codes, texts = self.columns[name].coded()
        n_empty = len(codes) - self.columns[name].n_filled
        return len(texts) + n_empty == len(codes) and n_empty < 2


def different_rows(table: EncodedTable, names: Sequence[str]) -> pd.DataFrame:
    """Some columns as a frame of text, of rows that are alike in them the last one."""
    coded = {name: table.columns[name].coded() for name in names}
    kept = pd.DataFrame({name: np.empty(0, np.int32) for name in names})
    for rows in pieces_of(len(table)):
        piece = {name: column.codes[rows] for name, column in coded.items()}
        some = pd.DataFrame(piece, index=np.arange(rows.start, rows.stop))
        kept = pd.concat([kept, some.drop_duplicates(keep="last")]).drop_duplicates(keep="last")
    cells = {
        name: np.append(column.texts.to_numpy(object), np.nan)[kept[name].to_numpy()]
        for name, column in coded.items()
    }
    numbers = [table.rows[place] for place in kept.index.tolist()]
    return pd.DataFrame(cells, index=numbers, columns=list(names), dtype=object)


class ColumnEncoder:
    """A column piece after piece: as numbers as long as all its cells are, else by its texts."""

    def __init__(self, n_empty: int) -> None:
        self._numbers: GrowingArray | None = None
        self._moment = ""
        self._codes: GrowingArray | None = None
        self._known: dict[str, int] = {}
        self._n_empty = n_empty  # before the first cell that is not empty

    def add_texts(self, codes: np.ndarray, texts: list[str]) -> None:
        """codes (n,), −1 where a cell is empty; texts: the distinct ones, perhaps repeated."""
        if not texts:
            self.add_empty(len(codes))
        elif self._codes is None and are_integers(texts):
            numbers = np.array([*map(int, texts), EMPTY[8]], dtype=np.int64)
            self.add_numbers(numbers[codes], codes >= 0)
        else:
            self._to_texts()
            self._add_texts(codes, texts)

    def add_numbers(self, values: np.ndarray, filled: np.ndarray, moment: str = "") -> None:
        """values (n,), int64 or float64, of which those that are `filled` (bool) count. moment: as
        in `NumberColumn`.
        """
        there = values[filled]
        if not len(there):
            return self.add_empty(len(values))
        is_float = values.dtype.kind == "f"
        if self._codes is not None or (not is_float and there.min() == EMPTY[8]):
            self._to_texts()
            distinct, codes = np.unique(there, return_inverse=True)
            places = np.full(len(values), -1)
            places[filled] = codes
            return self._add_texts(places, NumberColumn(distinct, moment).spelled(distinct))
        if self._numbers is None:
            self._moment = moment
            self._numbers = GrowingArray(values.dtype if is_float else f"i{_width(there)}")
            self._numbers.fill(_empty(self._numbers.dtype), self._n_empty)
        elif not is_float and _width(there) > self._numbers.dtype.itemsize:
            self._widen()
        self._numbers.append(np.where(filled, values, _empty(self._numbers.dtype)))

    def add_empty(self, count: int) -> None:
        if self._codes is not None:
            self._codes.fill(-1, count)
        elif self._numbers is not None:
            self._numbers.fill(_empty(self._numbers.dtype), count)
        else:
            self._n_empty += count

    def column(self) -> EncodedColumn:
        if self._numbers is not None:
            return NumberColumn(self._numbers.whole(), self._moment)
        self._to_texts()
        assert self._codes is not None
        texts = np.array([*self._known, None], dtype=object)[:-1]
        return TextColumn(self._codes.whole(), texts)

    def _add_texts(self, codes: np.ndarray, texts: Iterable[str]) -> None:
        assert self._codes is not None
        known = self._known
        places = np.array([*(known.setdefault(t, len(known)) for t in texts), -1], np.int32)
        self._codes.append(places[codes])

    def _to_texts(self) -> None:
        """From here on by texts; so is what there is already."""
        if self._codes is not None:
            return
        self._codes = GrowingArray(np.int32)
        if self._numbers is None:
            return self._codes.fill(-1, self._n_empty)
        former, self._numbers = NumberColumn(self._numbers.whole(), self._moment), None
        for rows in pieces_of(len(former)):
            codes, cells = pd.factorize(former.texts(rows))
            self._add_texts(codes, cells)

    def _widen(self) -> None:
        assert self._numbers is not None
        narrow, self._numbers = self._numbers.whole(), GrowingArray(np.int64)
        for rows in pieces_of(len(narrow)):
            values = narrow[rows].astype(np.int64)
            self._numbers.append(np.where(values == EMPTY[4], EMPTY[8], values))


class TableEncoder:
    """A table piece after piece. A column that a piece lacks is empty there."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._columns: dict[Any, ColumnEncoder] = {}
        self._starts, self._firsts = GrowingArray(np.int64), GrowingArray(np.int64)
        self._next: int | None = None

    def add(self, frame: pd.DataFrame) -> None:
        """A piece of text, as `read_table` gives it, with the numbers of its rows as index."""
        for name in frame:
            codes, texts = pd.factorize(frame[name])
            self.encoder(name).add_texts(codes, [str(text) for text in texts])
        for name in self._columns.keys() - set(frame):
            self._columns[name].add_empty(len(frame))
        self.add_rows(frame.index.to_numpy(np.int64))

    def encoder(self, name: Any) -> ColumnEncoder:
        """Of a column, which is a new one where nothing was added to it."""
        if name not in self._columns:
            self._columns[name] = ColumnEncoder(self.n_rows)
        return self._columns[name]

    def add_rows(self, numbers: np.ndarray) -> None:
        """The numbers of a piece's rows, once all its columns are added."""
        if len(numbers):
            breaks = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 2) != 1)
            if self._next == numbers[0]:
                breaks = breaks[1:]
            self._starts.append(breaks + self.n_rows)
            self._firsts.append(numbers[breaks])
            self._next = int(numbers[-1]) + 1
        self.n_rows += len(numbers)

    def table(self) -> EncodedTable:
        columns = {name: encoder.column() for name, encoder in self._columns.items()}
        rows = RowNumbers(self._starts.whole(), self._firsts.whole())
        return EncodedTable(columns, rows, self.n_rows)


def encoded(frame: pd.DataFrame) -> EncodedTable:
    """A frame of text, as `as_text` makes it."""
    encoder = TableEncoder()
    encoder.add(frame)
    return encoder.table()


def _width(values: np.ndarray) -> int:
    """Of whole numbers, in bytes."""
    info = np.iinfo(np.int32)
    return 4 if values.min() > info.min and values.max() <= info.max else 8


def _empty(dtype: np.dtype[Any]) -> Any:
    return np.nan if dtype.kind == "f" else EMPTY[dtype.itemsize]
