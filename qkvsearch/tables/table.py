"""A table: columns of cells of text, each stored by its distinct cells or as numbers.

All files and frames are read into a `Table`, piece by piece, so that it may be larger than memory.
The catalog and the log are made of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.folding import composed
from qkvsearch._utils.scratch import GrowingArray, pieces_of, scratch_array
from qkvsearch.errors import quantity
from qkvsearch.tables.frames import as_text
from qkvsearch.tables.ids import are_integers
from qkvsearch.tables.report import FILE_ROWS, ReadReport

# The whole number of an empty cell, by the number of bytes.
EMPTY = {4: int(np.iinfo(np.int32).min), 8: int(np.iinfo(np.int64).min)}
# The sign that is read for bytes that are not UTF-8.
LOST = "\ufffd"
# Texts of more characters, in the mean, are long, and the dtype of a frame's column of them.
LONG = 1_000
LONG_TEXTS = pd.StringDtype("python", na_value=np.nan)
# Distinct numbers that are collected before they are joined with those before them.
MAX_WAITING = 1 << 22


# --- columns ---


class Coded(NamedTuple):
    """Cells by number: codes int32 (n,), −1 for empty, and the distinct texts (m,), a Series."""

    codes: np.ndarray
    texts: pd.Series


class Column(ABC):
    """A column of cells of text, stored in fewer bytes than text."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def coded(self) -> Coded:
        """Return the cells by number. Distinct texts have distinct numbers."""

    @abstractmethod
    def filled(self, rows: slice) -> np.ndarray:
        """Return which cells of a span are not empty, bool."""

    @abstractmethod
    def texts(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the texts of some cells, objects, NaN where empty."""

    @property
    def dtype(self) -> str | pd.StringDtype:
        """The dtype of its cells as text in a frame."""
        return "str"

    @cached_property
    def n_filled(self) -> int:
        return sum(int(np.count_nonzero(self.filled(rows))) for rows in pieces_of(len(self)))

    def filled_rows(self, step: int) -> np.ndarray:
        """Return the row of every `step`th cell that is not empty, int64."""
        sample, n_before = [np.empty(0, np.int64)], 0
        for span in pieces_of(len(self)):
            rows = np.flatnonzero(self.filled(span)) + span.start
            sample.append(rows[-n_before % step :: step])
            n_before += len(rows)
        return np.concatenate(sample)


@dataclass(frozen=True)
class TextColumn(Column):
    """A column by its distinct texts (m,), objects, in the order in which they occur first."""

    codes: np.ndarray
    distinct: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)

    def coded(self) -> Coded:
        return Coded(self.codes, pd.Series(self.distinct, dtype=object))

    def filled(self, rows: slice) -> np.ndarray:
        return np.asarray(self.codes[rows] >= 0)

    @cached_property
    def dtype(self) -> str | pd.StringDtype:
        # Arrow, which holds short texts in fewer bytes, would copy long ones whenever they are
        # read. In this dtype they stay the objects that they are.
        n_characters = sum(map(len, self.distinct))
        return LONG_TEXTS if n_characters > LONG * len(self.distinct) else "str"

    def texts(self, rows: slice | np.ndarray) -> np.ndarray:
        return np.append(self.distinct, np.nan)[self.codes[rows]]


@dataclass(frozen=True)
class NumberColumn(Column):
    """A column of numbers.

    values: int32 or int64, `EMPTY` where a cell is; or float64, NaN where a cell is empty. moment:
    the dtype of moments that are stored as whole numbers, such as "datetime64[us, UTC]".
    """

    values: np.ndarray
    moment: str = ""

    def __len__(self) -> int:
        return len(self.values)

    def filled(self, rows: slice) -> np.ndarray:
        values = self.values[rows]
        if values.dtype.kind == "f":
            return np.asarray(~np.isnan(values))
        return np.asarray(values != EMPTY[values.itemsize])

    def texts(self, rows: slice | np.ndarray) -> np.ndarray:
        values = self.values[rows]
        filled = NumberColumn(values).filled(slice(None))
        texts = np.full(len(values), np.nan, dtype=object)
        distinct, codes = np.unique(values[filled], return_inverse=True)
        texts[filled] = self.texts_of(distinct)[codes]
        return texts

    def texts_of(self, values: np.ndarray) -> np.ndarray:
        """Return the texts (n,), objects, of values (n,) that are not empty."""
        if self.values.dtype.kind == "i" and not self.moment:
            return np.array([*map(str, values.tolist()), None], dtype=object)[:-1]
        cells = moments(values, self.moment) if self.moment else pd.Series(values)
        return as_text(cells.to_frame("cells"))["cells"].to_numpy(object)

    def coded(self) -> Coded:
        """Return the cells by number, in the order of the values."""
        distinct = self._distinct()
        codes, index = scratch_array(len(self), np.int32), pd.Index(distinct)
        for rows in pieces_of(len(self)):
            codes[rows] = index.get_indexer(self.values[rows])
        return Coded(codes, pd.Series(self.texts_of(distinct), dtype=object))

    def _distinct(self) -> np.ndarray:
        """Return the distinct values, ascending, without that of an empty cell."""
        distinct = np.empty(0, self.values.dtype)
        waiting: list[np.ndarray] = []
        for rows in pieces_of(len(self)):
            waiting.append(pd.unique(self.values[rows][self.filled(rows)]))
            if sum(map(len, waiting)) > max(len(distinct), MAX_WAITING):
                distinct, waiting = pd.unique(np.concatenate([distinct, *waiting])), []
        return np.sort(pd.unique(np.concatenate([distinct, *waiting])))


def unit_of(dtype: str) -> str:
    """Return the unit of a dtype of moments.

    >>> unit_of("datetime64[us, UTC]")
    'us'
    """
    return dtype.removeprefix("datetime64[").removesuffix("]").partition(",")[0]


def moments(values: np.ndarray, dtype: str) -> pd.Series:
    """Return moments (n,) that are stored as whole numbers.

    >>> moments(np.array([90]), "datetime64[s, Europe/Berlin]").astype(str).tolist()
    ['1970-01-01 01:01:30+01:00']
    """
    zone = dtype.removesuffix("]").partition(", ")[2]
    series = pd.Series(values.astype(np.int64).view(f"M8[{unit_of(dtype)}]"))
    return series.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else series


# --- tables ---


@dataclass(frozen=True)
class RowNumbers:
    """The rows of a file that the rows of a table are: numbers count on from `firsts`, int64
    (runs,), at the rows `starts` of the table, int64 (runs,).
    """

    starts: np.ndarray
    firsts: np.ndarray

    def __getitem__(self, row: int) -> int:
        return int(self.of(np.array([row]))[0])

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of each of some rows of the table, int64."""
        run = np.searchsorted(self.starts, rows, side="right") - 1
        return np.asarray(self.firsts[run] + rows - self.starts[run]) if len(rows) else rows


@dataclass(frozen=True)
class Table:
    """A table. columns: by their names, in their order. rows: their numbers in the file."""

    columns: dict[str, Column]
    rows: RowNumbers
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def frame(self, names: Sequence[str] | None = None, rows: slice | None = None) -> pd.DataFrame:
        """Return columns and rows, all by default, as cells of text."""
        span = rows or slice(0, self.n_rows)
        start, stop, _ = span.indices(self.n_rows)
        numbers = self.rows.of(np.arange(start, max(start, stop)))
        names = list(self.columns) if names is None else names
        cells = {
            name: pd.Series(self.columns[name].texts(span), numbers, dtype=self.columns[name].dtype)
            for name in names
        }
        return pd.DataFrame(cells, index=numbers, columns=names, dtype=None if cells else "str")

    def filled(self, name: str) -> tuple[int, int, str]:
        """Return how many cells of a column are not empty, of how many, and the first of them."""
        column = self.columns[name]
        first = column.filled_rows(max(column.n_filled, 1))
        return column.n_filled, len(column), str(column.texts(first)[0]) if len(first) else ""

    def sample(self, name: str, n_cells: int) -> pd.Series:
        """Return about `n_cells` cells of a column that are not empty, evenly spread."""
        column = self.columns[name]
        rows = column.filled_rows(max(1, column.n_filled // n_cells))
        return pd.Series(column.texts(rows), self.rows.of(rows), name=name, dtype=object)

    def is_unique(self, name: str) -> bool:
        """Return whether no two cells of a column are equal, empty ones included."""
        codes, texts = self.columns[name].coded()
        n_empty = len(codes) - self.columns[name].n_filled
        return len(texts) + n_empty == len(codes) and n_empty < 2


def different_rows(table: Table, names: Sequence[str]) -> pd.DataFrame:
    """Return columns as a frame of text, without the rows that a later one repeats."""
    coded = {name: table.columns[name].coded() for name in names}
    distinct = pd.DataFrame({name: np.empty(0, np.int32) for name in names})
    for rows in pieces_of(len(table)):
        codes = {name: column.codes[rows] for name, column in coded.items()}
        piece = pd.DataFrame(codes, index=np.arange(rows.start, rows.stop))
        distinct = pd.concat([distinct, piece.drop_duplicates(keep="last")])
        distinct = distinct.drop_duplicates(keep="last")
    cells = {
        name: np.append(column.texts.to_numpy(object), np.nan)[distinct[name].to_numpy()]
        for name, column in coded.items()
    }
    numbers = table.rows.of(distinct.index.to_numpy(np.int64))
    return pd.DataFrame(cells, index=numbers, columns=list(names), dtype=object)


# --- pieces to a table ---


class ColumnBuilder:
    """A column piece after piece: as numbers as long as all its cells are, else by its texts."""

    def __init__(self, n_empty: int) -> None:
        self._numbers: GrowingArray | None = None
        self._moment = ""
        self._codes: GrowingArray | None = None
        self._code_of: dict[str, int] = {}
        self._n_empty = n_empty  # before the first cell that is not empty
        self.n_lost = 0  # cells with `LOST`

    def add_texts(self, codes: np.ndarray, texts: list[str]) -> None:
        """Add cells: codes (n,), −1 for empty, and the texts of the numbers, perhaps repeated."""
        if not texts:
            self.add_empty(len(codes))
        elif self._codes is None and are_integers(texts):
            numbers = np.array([*map(int, texts), EMPTY[8]], dtype=np.int64)
            self.add_numbers(numbers[codes], codes >= 0)
        else:
            self._to_texts()
            self._add_codes(codes, texts)

    def add_numbers(self, values: np.ndarray, filled: np.ndarray, moment: str = "") -> None:
        """Add values (n,), int64 or float64, that are empty where `filled` (bool) is False.

        moment: as in `NumberColumn`.
        """
        numbers = values[filled]
        if not len(numbers):
            self.add_empty(len(values))
        elif self._can_add(numbers, moment):
            self._append(numbers, values, filled, moment)
        else:
            self._to_texts()
            distinct, inverse = np.unique(numbers, return_inverse=True)
            codes = np.full(len(values), -1)
            codes[filled] = inverse
            self._add_codes(codes, NumberColumn(distinct, moment).texts_of(distinct))

    def _can_add(self, numbers: np.ndarray, moment: str) -> bool:
        """Return whether numbers fit among those of the column."""
        if self._codes is not None:
            return False
        kind = "f" if numbers.dtype.kind == "f" else "i"
        if kind == "i" and numbers.min() == EMPTY[8]:  # it would be read as an empty cell
            return False
        # Those of another file may be of another kind.
        return self._numbers is None or (self._numbers.dtype.kind, self._moment) == (kind, moment)

    def _append(
        self, numbers: np.ndarray, values: np.ndarray, filled: np.ndarray, moment: str
    ) -> None:
        """Add values, of which `numbers` are those that are not empty."""
        is_float = values.dtype.kind == "f"
        if self._numbers is None:
            self._moment = moment
            self._numbers = GrowingArray(values.dtype if is_float else f"i{_n_bytes(numbers)}")
            self._numbers.fill(_empty(self._numbers.dtype), self._n_empty)
        elif not is_float and _n_bytes(numbers) > self._numbers.dtype.itemsize:
            self._widen()
        self._numbers.append(np.where(filled, values, _empty(self._numbers.dtype)))

    def add_empty(self, count: int) -> None:
        """Add empty cells."""
        if self._codes is not None:
            self._codes.fill(-1, count)
        elif self._numbers is not None:
            self._numbers.fill(_empty(self._numbers.dtype), count)
        else:
            self._n_empty += count

    def column(self) -> Column:
        """Return the whole column; nothing can be added any more."""
        if self._numbers is not None:
            return NumberColumn(self._numbers.whole(), self._moment)
        self._to_texts()
        assert self._codes is not None
        texts = np.array([*self._code_of, None], dtype=object)[:-1]
        return TextColumn(self._codes.whole(), texts)

    def _add_codes(self, codes: np.ndarray, texts: Iterable[str]) -> None:
        assert self._codes is not None
        code_of = self._code_of
        own = np.array([*(code_of.setdefault(t, len(code_of)) for t in texts), -1], np.int32)
        self._codes.append(own[codes])
        if lost := [code for code, text in enumerate(texts) if LOST in text]:
            self.n_lost += int(np.isin(codes, lost).sum())

    def _to_texts(self) -> None:
        """Change the column into one of texts."""
        if self._codes is not None:
            return
        self._codes = GrowingArray(np.int32)
        if self._numbers is None:
            return self._codes.fill(-1, self._n_empty)
        column, self._numbers = NumberColumn(self._numbers.whole(), self._moment), None
        for rows in pieces_of(len(column)):
            self._add_codes(*pd.factorize(column.texts(rows)))

    def _widen(self) -> None:
        """Change the column into one of 8 bytes a number."""
        assert self._numbers is not None
        narrow, self._numbers = self._numbers.whole(), GrowingArray(np.int64)
        for rows in pieces_of(len(narrow)):
            values = narrow[rows].astype(np.int64)
            self._numbers.append(np.where(values == EMPTY[4], EMPTY[8], values))


class TableBuilder:
    """A table piece after piece, of one file or several. A column is empty where a piece lacks it.

    n_rows: of all pieces. names: the columns of the file that is read.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.names: set[Any] = set()
        self._file = 0
        self._filled: set[Any] = set()
        self._columns: dict[Any, ColumnBuilder] = {}
        self._starts, self._firsts = GrowingArray(np.int64), GrowingArray(np.int64)
        self._next: int | None = None

    def add(self, frame: pd.DataFrame) -> None:
        """Add a frame of text, as `read_table` returns it, with the rows of the file as index."""
        for name in frame:
            codes, texts = _factorized(frame[name])
            self.encoder(name).add_texts(codes, [str(text) for text in texts])
        self.add_rows(frame.index.to_numpy(np.int64))

    def encoder(self, name: Any) -> ColumnBuilder:
        """Return the encoder of a column to add a piece to, a new one for a new column.

        Names that differ in their Unicode form alone are one, unless the piece has both.
        """
        one_name = composed(name) if isinstance(name, str) else name
        if one_name not in self._filled:
            name = one_name
        self._filled.add(name)
        if name not in self._columns:
            self._columns[name] = ColumnBuilder(self.n_rows)
        return self._columns[name]

    def add_rows(self, numbers: np.ndarray) -> None:
        """Add the numbers of a piece's rows, once all its columns are added."""
        for name in self._columns.keys() - self._filled:
            self._columns[name].add_empty(len(numbers))
        self.names |= self._filled
        self._filled = set()
        numbers = numbers + self._file * FILE_ROWS
        if len(numbers):
            breaks = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 2) != 1)
            if self._next == numbers[0]:
                breaks = breaks[1:]
            self._starts.append(breaks + self.n_rows)
            self._firsts.append(numbers[breaks])
            self._next = int(numbers[-1]) + 1
        self.n_rows += len(numbers)

    def next_file(self) -> None:
        """Count the rows that follow as those of another file, from 1."""
        self._file += 1
        self.names = set()

    def warn_of_lost(self, report: ReadReport) -> None:
        """Warn of bytes of the file that are no text."""
        for name, column in self._columns.items():
            if column.n_lost:
                cells = f"{quantity(column.n_lost, 'cell')} of column {name}"
                report.warnings.append(f"{report.file}: {cells} with bytes that are not UTF-8")
            column.n_lost = 0

    def table(self) -> Table:
        """Return the whole table; nothing can be added any more."""
        columns = {name: encoder.column() for name, encoder in self._columns.items()}
        rows = RowNumbers(self._starts.whole(), self._firsts.whole())
        return Table(columns, rows, self.n_rows)


def table_of(frame: pd.DataFrame) -> Table:
    """Encode a frame of text, as `as_text` returns it."""
    encoder = TableBuilder()
    encoder.add(frame)
    return encoder.table()


def _factorized(cells: pd.Series) -> tuple[np.ndarray, Iterable[str]]:
    """Return the number of each cell, −1 where it is empty, and the distinct texts. Of objects, one
    long text may be many cells: Python computes its hash once, pandas for each.
    """
    if cells.dtype != object:
        return pd.factorize(cells)
    code_of: dict[str, int] = {}
    filled = cells.notna()
    codes = np.full(len(cells), -1)
    codes[filled] = [code_of.setdefault(cell, len(code_of)) for cell in cells[filled]]
    return codes, code_of


def _n_bytes(values: np.ndarray) -> int:
    """Return the bytes that the widest of whole numbers takes."""
    info = np.iinfo(np.int32)
    return 4 if values.min() > info.min and values.max() <= info.max else 8


def _empty(dtype: np.dtype[Any]) -> Any:
    return np.nan if dtype.kind == "f" else EMPTY[dtype.itemsize]
