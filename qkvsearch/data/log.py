"""Rows of text to interactions: who, what, how well liked or how much, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from qkvsearch.data.columns import Columns
from qkvsearch.data.columns.choice import LogChoice, choose_log_columns
from qkvsearch.data.columns.column_types import typed_distinct
from qkvsearch.data.columns.dates import MISSING, seconds_of, seconds_of_numbers, with_missing
from qkvsearch.data.files.encoded import (
    Coded,
    EncodedColumn,
    EncodedTable,
    NumberColumn,
    encoded,
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
from qkvsearch.data.ids import BLANK, Ids, case_note, id_texts, identified
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.ratings import Scale, infer_scale
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError
from qkvsearch.terminal import shorten

Check: TypeAlias = Callable[[np.ndarray], Any]
# Numbers beyond are errors, and their squares could not be added up.
LARGEST = 1e12
# Different numbers of pieces of a column that are kept apart.
MOST_WAITING = 1 << 22


@dataclass(frozen=True)
class LogRows:
    """The usable rows of a log, in the order of the file: who and what, ratings and weights with
    NaN where there is none, times, and the scale of the ratings.
    """

    users: Names
    items: Names
    ratings: np.ndarray | None
    weights: np.ndarray | None
    times: np.ndarray | None
    times_comparable: bool
    scale: Scale


def interactions_from_table(
    table: EncodedTable, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> Interactions:
    """Rows of text to interactions; what cannot be used is skipped and counted in `report`."""
    rows = rows_from_table(table, columns, report, item_ids)
    users, user_ids = rows.users.numbered(None, columns.fold_ids)
    items, item_ids = rows.items.numbered(item_ids, columns.fold_ids)
    return Interactions.from_numbers(
        users,
        items,
        user_ids,
        item_ids,
        ratings=rows.ratings,
        times=rows.times,
        weights=rows.weights,
        times_comparable=rows.times_comparable,
        scale=rows.scale,
        report=report,
    )


def interactions_from_frame(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> Interactions:
    """The same of a frame, as `read_table` gives it."""
    return interactions_from_table(encoded(frame), columns, report, item_ids)


def rows_from_table(
    table: EncodedTable, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> LogRows:
    """The same, one by one: repeated pairs are apart, and nothing is taken back yet."""
    report.require_rows()
    roles = choose_log_columns(table, columns, report, item_ids)
    report.require_plain("user", roles.user)
    report.require_plain("item", roles.item)
    if columns.rating_scale is not None:
        check_scale(columns.rating_scale, roles, report.file)
    users, items = (table.columns[name].coded() for name in (roles.user, roles.item))
    numbers = {
        role: numbers_of(table.columns[name], name, report)
        for role, name in (("rating", roles.rating), ("weight", roles.weight))
        if name is not None
    }
    usable = _usable_rows(table, users, items, numbers, columns, report, item_ids)
    if not usable.any():
        said = mismatch(Names.of(items, items.codes >= 0).texts, item_ids)
        raise DataError(f"{report.file}: no usable rows; {report}{said}")
    numbers = {role: taken(found, usable) for role, found in numbers.items()}
    ratings, weights, scale = _feedback(numbers, roles, columns, report)
    times = None if roles.time is None else times_in(table, roles.time, usable, report)
    named = Names.of(users, usable), Names.of(items, usable)
    _note_cases(*named, columns, item_ids, report)
    return LogRows(*named, ratings, weights, times, roles.times_comparable, scale)


def _feedback(
    numbers: Mapping[str, np.ndarray], roles: LogChoice, columns: Columns, report: ReadReport
) -> tuple[np.ndarray | None, np.ndarray | None, Scale]:
    """Ratings, weights and the scale of the ratings, as far as there are any."""
    weights, ratings = _any(numbers.get("weight")), _any(numbers.get("rating"))
    if ratings is None:
        return None, weights, None
    kept, scale = decided_feedback(*_distinct(ratings), weights is not None, roles, columns, report)
    if kept == "rating":
        return ratings, weights, scale
    return None, ratings if weights is None else weights, None


def _distinct(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those that occur, ascending and without NaN, and how often each does, int64."""
    values, counts = [np.empty(0)], [np.empty(0, np.int64)]

    def join() -> None:
        found, place = np.unique(np.concatenate(values), return_inverse=True)
        together = np.bincount(place, np.concatenate(counts), len(found))
        values[:], counts[:] = [found], [together.astype(np.int64)]

    for rows in pieces_of(len(numbers)):
        some = numbers[rows][~np.isnan(numbers[rows])]
        some, often = np.unique(some, return_counts=True)
        values.append(some)
        counts.append(often)
        if sum(map(len, values[1:])) > max(len(values[0]), MOST_WAITING):
            join()
    join()
    return values[0], counts[0]


def decided_feedback(
    ratings: np.ndarray,
    counts: np.ndarray,
    has_weights: bool,
    roles: LogChoice,
    columns: Columns,
    report: ReadReport,
) -> tuple[str, Scale]:
    """Whether a column of ratings holds ratings, and their scale; or "weight", where these are
    counts. ratings, counts (n,): the distinct ones, and how often each occurs.
    """
    if columns.rating_scale is not None:
        return "rating", columns.rating_scale
    found = infer_scale(ratings, counts)
    if found.are_counts:
        kept = "left out" if has_weights else "taken as weights"
        report.notes.append(
            f"column {roles.rating} holds counts, not ratings ({found.why}), and was {kept}; "
            "`rating_scale` says otherwise"
        )
        if not has_weights:
            _taken_as_weight(report, roles)
        return "weight", None
    assert found.scale is not None
    low, high = found.scale
    report.notes.append(
        f"ratings are on a scale from {low:g} to {high:g} ({found.why}; `rating_scale` decides)"
    )
    outside = int(counts[(ratings < low) | (ratings > high)].sum())
    report.note(outside, "{n} ratings outside the scale count as its ends")
    return "rating", found.scale


def check_scale(scale: tuple[float, float], roles: LogChoice, file: str) -> None:
    """Raise `DataError` for a scale that is none, or of no ratings."""
    low, high = scale
    if not -LARGEST <= low < high <= LARGEST:
        raise DataError(
            f"`rating_scale` is the lowest and the highest rating, such as 1 and 5, not {low:g} "
            f"and {high:g}"
        )
    if roles.rating is None:
        raise DataError(
            f"{file}: `rating_scale` is of ratings, and no column looks like any; name it with "
            "`rating_column`"
        )


def _taken_as_weight(report: ReadReport, roles: LogChoice) -> None:
    report.columns = [
        replace(column, role="weight") if column.name == roles.rating else column
        for column in report.columns
    ]


def _any(numbers: np.ndarray | None) -> np.ndarray | None:
    """None for a column of which every cell is empty."""
    return None if numbers is None or np.isnan(numbers).all() else numbers


def mismatch(items: np.ndarray, item_ids: Ids | None) -> str:
    """For a message, example ids of log and catalog where no id of the log is in the catalog.
    items: the distinct ones of the log, objects (m,), in the order in which they occur first.
    """
    if item_ids is None or not len(items):
        return ""
    if (identified(items, np.ones(len(items), np.int64), item_ids)[0] >= 0).any():
        return ""
    first = id_texts(pd.Series(items, dtype=object)).iloc[0]
    return (
        f"; its items look like {shorten(first)!r}, those of the catalog like "
        f"{shorten(item_ids.texts[0])!r}: write them alike, or name another `item_column` or "
        "`id_column`"
    )


def _usable_rows(
    table: EncodedTable,
    users: Coded,
    items: Coded,
    numbers: Mapping[str, np.ndarray],
    columns: Columns,
    report: ReadReport,
    item_ids: Ids | None,
) -> np.ndarray:
    """True (n,) where a row has a user, a known item, and numbers or nothing for the rest."""
    usable = np.ones(len(table), dtype=bool)

    def drop(reason: str, is_bad: Check, cells: np.ndarray) -> None:
        count, first = 0, -1
        for rows in pieces_of(len(table)):
            leaving = np.flatnonzero(usable[rows] & is_bad(cells[rows]))
            usable[rows][leaving] = False
            first = int(leaving[0]) + rows.start if first < 0 < len(leaving) else first
            count += len(leaving)
        report.skip(reason, count, None if first < 0 else table.rows[first])

    for of_rows, what in ((users, "a user"), (items, "an item")):
        blank = np.append(of_rows.texts.str.strip(BLANK).eq("").to_numpy(bool), True)
        drop(f"without {what}", blank.__getitem__, of_rows.codes)
    if item_ids is not None:
        counts = counts_of(items.codes, len(items.texts))
        unknown = np.append(identified(items.texts, counts, item_ids)[0] < 0, True)
        drop("with an item that is not in the catalog", unknown.__getitem__, items.codes)
    for what, found in numbers.items():
        drop(f"with a {what} that is not a number", np.isinf, found)
        drop(f"with a {what} beyond ±{LARGEST:g}", partial(_is_outside, -LARGEST, LARGEST), found)
        if what == "rating" and columns.rating_scale is not None:
            low, high = columns.rating_scale
            reason = f"with a rating outside {low:g} to {high:g}"
            drop(reason, partial(_is_outside, low, high), found)
    return usable


def _is_outside(low: float, high: float, numbers: np.ndarray) -> np.ndarray:
    return np.asarray((numbers < low) | (numbers > high))


def _note_cases(
    users: Names, items: Names, columns: Columns, item_ids: Ids | None, report: ReadReport
) -> None:
    """How many ids would join if upper and lower case were equal."""
    if columns.fold_ids:
        return
    notes = [users.case_note("users"), items.case_note("items") if item_ids is None else ""]
    report.notes += filter(None, notes)


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
