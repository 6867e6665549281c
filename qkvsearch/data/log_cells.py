"""The cells of a log's columns as what the columns are for: ids, numbers, times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from qkvsearch.data.columns.times import MISSING, seconds_of, seconds_of_numbers, with_missing
from qkvsearch.data.columns.types import typed_distinct
from qkvsearch.data.files.encoded import (
    Coded,
    EncodedColumn,
    EncodedTable,
    NumberColumn,
    unit_of,
)
from qkvsearch.data.files.scratch import (
    counts_of,
    first_places,
    pieces_of,
    scratch_array,
    spread,
    taken,
)
from qkvsearch.data.ids import Ids, case_note, id_texts, identified
from qkvsearch.data.report import ReadReport

# How many of each unit of moments make a second.
A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# Before this year the text of a moment is read as none.
FIRST_YEAR = "1000-01-01"


class Names(NamedTuple):
    """Who or what each row is of. texts (m,): objects, by their first rows; counts (m,): how often
    each occurs; codes int32 (n,): a number for each row, and place int32: where the text of each
    number is in `texts`, the last one that of −1, −1 for none.
    """

    codes: np.ndarray
    place: np.ndarray
    texts: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, column: Coded, usable: np.ndarray) -> Names:
        """Of the usable rows (bool, n) alone."""
        n = len(column.texts)
        which = None if usable.all() else usable
        counts = counts_of(column.codes, n, which)
        first = first_places(column.codes, n, which)
        order = np.argsort(first, kind="stable")[: np.count_nonzero(counts)]
        place = np.full(n + 1, -1, np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        codes = taken(column.codes, usable)
        return cls(codes, place, column.texts.to_numpy(object)[order], counts[order])

    def numbered(self, known: Ids | None, fold: bool) -> tuple[np.ndarray, Ids]:
        """The number of the id of each row, int32 (n,), as `factorize` gives it, and the ids."""
        found, ids = identified(self.texts, self.counts, known, fold)
        return spread(np.append(found, np.int32(-1))[self.place], self.codes), ids

    def rows(self) -> np.ndarray:
        """The text of each row, objects (n,)."""
        return np.append(self.texts, "")[self.place][self.codes]

    def case_note(self, kind: str) -> str:
        """What is said where ids differ in case alone."""
        return case_note(id_texts(pd.Series(self.texts, dtype=object)).tolist(), kind)


def numbers_of(column: EncodedColumn, name: str, report: ReadReport) -> np.ndarray:
    """float64 (n,), NaN where there is nothing, ∞ for what is no number."""
    if isinstance(column, NumberColumn) and not column.moment:
        found = scratch_array(len(column), np.float64)
        for rows in pieces_of(len(column)):
            found[rows] = np.where(column.filled(rows), column.values[rows], np.nan)
        return found
    codes, texts = column.coded()
    numbers = pd.to_numeric(texts, errors="coerce")
    if numbers.isna().any():
        read = typed_distinct(texts, counts_of(codes, len(texts)), "number")
        numbers = read.cells.astype(float).mask(read.unfit, np.inf)
        report.changed(name, read.changed)
    return spread(np.append(numbers.to_numpy(np.float64, na_value=np.nan), np.nan), codes)


def times_in(
    table: EncodedTable, name: str, usable: np.ndarray, report: ReadReport
) -> np.ndarray | None:
    """The times (int64, n) of the usable rows, as `times_of` reads them."""
    column = table.columns[name]
    seconds = None
    if isinstance(column, NumberColumn):
        values = taken(column.values, usable)
        of_kind = _of_moments if column.moment else _of_numbers
        seconds = of_kind(NumberColumn(values, column.moment), name, report)
    if seconds is None:
        seconds = _by_text(table, name, usable, report)
    return with_missing(seconds, report)


def _of_numbers(column: NumberColumn, name: str, report: ReadReport) -> np.ndarray | None:
    """None where the texts have to be read."""
    found = scratch_array(len(column), np.int64)
    for rows in pieces_of(len(column)):
        values, filled = column.values[rows], column.filled(rows)
        if values.dtype.kind == "f" and not (np.abs(values[filled]) < 2**62).all():
            return None
        whole = np.floor(np.where(filled, values, 0)).astype(np.int64)
        found[rows] = np.where(filled, whole, MISSING)
    return found if seconds_of_numbers(found, name, report) else None


def _of_moments(column: NumberColumn, name: str, report: ReadReport) -> np.ndarray | None:
    """None where the texts of some would be read as no moments."""
    in_a_second = A_SECOND[unit_of(column.moment)]
    earliest = int(np.datetime64(FIRST_YEAR, "s").astype(np.int64)) * in_a_second
    found = scratch_array(len(column), np.int64)
    for rows in pieces_of(len(column)):
        values, filled = column.values[rows].astype(np.int64), column.filled(rows)
        if (values[filled] < earliest).any():
            return None
        found[rows] = np.where(filled, values // in_a_second, MISSING)
    return found


def _by_text(table: EncodedTable, name: str, usable: np.ndarray, report: ReadReport) -> np.ndarray:
    codes, texts = table.columns[name].coded()
    n = len(texts)
    counts, first = counts_of(codes, n, usable), first_places(codes, n, usable)
    order = np.argsort(first, kind="stable")[: np.count_nonzero(counts)]
    index = [table.rows[place] for place in first[order].tolist()]
    cells = pd.Series(texts.to_numpy(object)[order], index, name=name, dtype=object)
    seconds = np.full(n + 1, MISSING)
    seconds[order] = seconds_of(cells, counts[order], report)
    return spread(seconds, taken(codes, usable))
