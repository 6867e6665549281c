"""Pieces of a table to an encoded one, piece after piece."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from qkvsearch.data.files.encoded import (
    EMPTY,
    EncodedColumn,
    EncodedTable,
    NumberColumn,
    RowNumbers,
    TextColumn,
)
from qkvsearch.data.files.scratch import GrowingArray, pieces_of
from qkvsearch.data.ids import are_integers


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
