"""Rows of a log to interactions: the users, the items, their ratings or weights, and the times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from qkvsearch._utils.folding import fold
from qkvsearch._utils.scratch import (
    counts_of,
    filtered,
    first_rows,
    pieces_of,
    scratch_array,
    spread,
)
from qkvsearch.errors import DataError, quantity
from qkvsearch.tables.column_facts import MAX_EXAMPLES, examples_of
from qkvsearch.tables.column_types.inference import typed_distinct
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.columns.dates import WITHOUT_TIME, seconds_of, seconds_of_numbers
from qkvsearch.tables.columns.events import event_weights, times_events
from qkvsearch.tables.columns.log_words import LOG_WORDS
from qkvsearch.tables.columns.rating_cells import ANSWERS, read_ratings
from qkvsearch.tables.columns.row_meaning import are_users
from qkvsearch.tables.ids import (
    BLANK,
    UNUSABLE_REASON,
    Ids,
    case_note,
    id_texts,
    identified,
    is_usable_id,
)
from qkvsearch.tables.interactions import MAX_HISTORY, Interactions
from qkvsearch.tables.ratings import LARGEST, Scale, infer_scale, standing_apart
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.role_choice import LogChoice, choose_log_columns
from qkvsearch.tables.table import Coded, Column, NumberColumn, Table, unit_of
from qkvsearch.tables.times import UNKNOWN_TIME, first_future_time, is_future
from qkvsearch.terminal import shorten

# A user with a larger share of the rows, and so many times those of the median one, stands out.
MAX_ROWS_OF_USER, MANY_TIMES = 0.01, 20
# Users that stand for many.
NOBODY = frozenset(map(fold, LOG_WORDS["nobody"]))
# How many of each unit of moments make a second.
UNITS_IN_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# The text of an earlier moment is not read as a date.
FIRST_YEAR = "1000-01-01"


class IdColumn(NamedTuple):
    """The users or the items of the usable rows of a log.

    codes: a number for each row, int32 (n,). slots: for each number, where its text is in `texts`,
    −1 for none; the last slot is that of the number −1. texts: objects (m,), in the order in which
    they occur first. counts: how often each occurs (m,).
    """

    codes: np.ndarray
    slots: np.ndarray
    texts: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, column: Coded, usable: np.ndarray) -> IdColumn:
        """Take the usable rows (bool, n) of a column."""
        order, counts, _ = _used_texts(column, usable)
        slots = np.full(len(column.texts) + 1, -1, np.int32)
        slots[order] = np.arange(len(order), dtype=np.int32)
        texts = column.texts.to_numpy(object)[order]
        return cls(filtered(column.codes, usable), slots, texts, counts)

    def numbered(self, ids: Ids | None, fold: bool) -> tuple[np.ndarray, Ids]:
        """Return the row number of each row's id, int32 (n,), as `factorize` does, and the ids."""
        rows, ids = identified(self.texts, self.counts, ids, fold)
        return spread(np.append(rows, np.int32(-1))[self.slots], self.codes), ids

    def rows(self) -> np.ndarray:
        """Return the text of each row, objects (n,)."""
        return np.append(self.texts, "")[self.slots][self.codes]

    def check_nobody(self, report: ReadReport) -> None:
        """Warn of users such as (not set) and 0 who have far more rows than others."""
        n = len(self.codes)
        limit = max(MAX_ROWS_OF_USER * n, MANY_TIMES * np.median(self.counts))
        report.warnings += [
            f"{report.file}: user {text!r} has {count:,} of {n:,} rows and may stand "
            "for many people: leave these rows out"
            for text, count in zip(self.texts, self.counts.tolist(), strict=True)
            if count > (limit if text.strip() == "0" else min(limit, n / 10))
            and fold(text.strip()) in NOBODY
        ]


def _used_texts(column: Coded, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which texts of a column the usable rows have, in the order of their first rows; how
    often each occurs, and its first row.
    """
    n, mask = len(column.texts), None if usable.all() else usable
    counts, first = counts_of(column.codes, n, mask), first_rows(column.codes, n, mask)
    order = np.argsort(first, kind="stable")[: np.count_nonzero(counts)]
    return order, counts[order], first[order]


@dataclass(frozen=True)
class LogRows:
    """The usable rows of a log, in the order of the file.

    ratings, weights: NaN where a row has none. scale: that of the ratings.
    """

    users: IdColumn
    items: IdColumn
    ratings: np.ndarray | None
    weights: np.ndarray | None
    times: np.ndarray | None
    times_comparable: bool
    scale: Scale


def interactions_from_table(
    table: Table, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> Interactions:
    """Make interactions of the rows of a log; unusable rows are skipped and counted in `report`."""
    rows = rows_from_table(table, columns, report, item_ids)
    users, user_ids = rows.users.numbered(None, columns.fold_ids)
    items, item_ids = rows.items.numbered(item_ids, columns.fold_ids)
    log = Interactions.from_numbers(
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
    n_long = int((counts_of(log.users, log.n_users) > MAX_HISTORY).sum())
    report.note(
        n_long, "no neighbours are learned from {n} {n:user|users} with over 20,000 items each"
    )
    return log


def rows_from_table(
    table: Table, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> LogRows:
    """Return the usable rows one by one: repeated pairs are not combined, refunds not applied."""
    report.require_rows()
    roles = choose_log_columns(table, columns, report, item_ids)
    report.require_plain("user", roles.user)
    report.require_plain("item", roles.item)
    if columns.rating_scale is not None:
        check_scale(columns.rating_scale, roles, report.file)
    users, items = (table.columns[name].coded() for name in (roles.user, roles.item))
    numbers, stated = {}, None
    if roles.rating is not None:
        numbers["rating"], stated = _ratings_of(table, roles.rating, columns, report)
    if roles.weight is not None:
        numbers["weight"] = numbers_of(table.columns[roles.weight], roles.weight, report)
    usable = _usable_rows(table, users, items, numbers, columns, report, item_ids)
    events = None
    if roles.event is not None:
        usable, events = _weighed_events(table, roles.event, users, usable, columns, report)
    if not usable.any():
        texts = IdColumn.of(items, items.codes >= 0).texts
        raise DataError(f"{report.file}: no usable rows; {report}{mismatch(texts, item_ids)}")
    numbers = {role: filtered(cells, usable) for role, cells in numbers.items()}
    if events is not None:
        numbers["weight"] = _times_events(numbers.get("weight"), events)
    ratings, weights, scale = _feedback(numbers, roles, columns, report, stated)
    times = None if roles.time is None else times_in(table, roles.time, usable, report)
    user_column, item_column = IdColumn.of(users, usable), IdColumn.of(items, usable)
    user_column.check_nobody(report)
    if not columns.fold_ids:
        for column, kind in ((user_column, "users"), (item_column, "items")):
            if kind == "users" or item_ids is None:
                texts = id_texts(pd.Series(column.texts, dtype=object)).tolist()
                report.notes += filter(None, [case_note(texts, kind)])
    return LogRows(user_column, item_column, ratings, weights, times, roles.times_comparable, scale)


# --- which rows are usable ---


def _usable_rows(
    table: Table,
    users: Coded,
    items: Coded,
    numbers: Mapping[str, np.ndarray],
    columns: Columns,
    report: ReadReport,
    item_ids: Ids | None,
) -> np.ndarray:
    """Return True (n,) where a row has a user, an item of the catalog, and no text where a
    number belongs."""
    usable = np.ones(len(table), dtype=bool)
    skip = partial(_skip, usable, table, report)
    for column, what in ((users, "a user"), (items, "an item")):
        blank = np.append(column.texts.str.strip(BLANK).eq("").to_numpy(bool), True)
        skip(f"without {what}", blank.__getitem__, column.codes)
        unusable = np.append(~column.texts.str.strip(BLANK).map(is_usable_id).to_numpy(bool), True)
        skip(UNUSABLE_REASON, unusable.__getitem__, column.codes)
    if item_ids is not None:
        counts = counts_of(items.codes, len(items.texts))
        unknown = np.append(identified(items.texts, counts, item_ids)[0] < 0, True)
        skip("with an item that is not in the catalog", unknown.__getitem__, items.codes)
    for what, cells in numbers.items():
        skip(f"with a {what} that is not a number", np.isinf, cells)
        skip(f"with a {what} beyond ±{LARGEST:g}", partial(_is_outside, -LARGEST, LARGEST), cells)
        if what == "rating" and columns.rating_scale is not None:
            low, high = columns.rating_scale
            reason = f"with a rating outside {low:g} to {high:g}"
            skip(reason, partial(_is_outside, low, high), cells)
            values, counts = _distinct(cells)
            apart = standing_apart(values[np.isfinite(values)], counts[np.isfinite(values)])
            is_left_out = np.isin(values, [*apart]) & _is_outside(low, high, values)
            report.intended += int(counts[is_left_out].sum())
    return usable


def _skip(
    usable: np.ndarray,
    table: Table,
    report: ReadReport,
    reason: str,
    is_bad: Callable[[np.ndarray], Any],
    cells: np.ndarray,
    intended: bool = False,
) -> None:
    """Mark rows with a bad cell as unusable (bool, n), and count those not marked before."""
    for rows in pieces_of(len(usable)):
        bad = np.flatnonzero(usable[rows] & is_bad(cells[rows])) + rows.start
        usable[bad] = False
        report.skip(reason, table.rows.of(bad))
        report.intended += len(bad) * intended


def _is_outside(low: float, high: float, numbers: np.ndarray) -> np.ndarray:
    return np.asarray((numbers < low) | (numbers > high))


def mismatch(items: np.ndarray, item_ids: Ids | None) -> str:
    """Return the end of a message, with examples of ids, where no item of a log is in the catalog.

    items: the distinct ones of the log, objects (m,), in the order in which they occur first.
    """
    counts = np.ones(len(items), np.int64)
    if item_ids is None or not len(items) or (identified(items, counts, item_ids)[0] >= 0).any():
        return ""
    first = id_texts(pd.Series(items, dtype=object)).iloc[0]
    if "@" in first:
        return "; its items look like e-mail addresses: name another `item_column`"
    return (
        f"; its items look like {shorten(first)!r}, those of the catalog like "
        f"{shorten(item_ids.texts[0])!r}: write both the same way, or name another "
        "`item_column` or `id_column`"
    )


# --- events ---


def _weighed_events(
    table: Table,
    name: str,
    users: Coded,
    usable: np.ndarray,
    columns: Columns,
    report: ReadReport,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the usable rows without those whose event is missing or not counted (bool, n), and the
    weights of the events of the rows that are left.
    """
    codes, texts = table.columns[name].coded()
    counts = counts_of(codes, len(texts), usable)
    if are_users(texts, users.texts).any():
        raise DataError(
            f"{report.file}: column {name} has users in it, not events; use `ignore` {quote(name)}"
        )
    weights = event_weights(texts.tolist(), counts, name, columns, report)
    of_code = np.append(weights, np.nan)
    skip = partial(_skip, usable, table, report)
    skip("without an event", lambda codes: codes < 0, codes)
    skip("with an event of weight 0", lambda codes: of_code[codes] == 0, codes, intended=True)
    return usable, spread(of_code, filtered(codes, usable))


def _times_events(weights: np.ndarray | None, events: np.ndarray) -> np.ndarray:
    """Return the weight of each row: that of its event, times its own, 1 where it has none. A row
    is taken back where either is negative.
    """
    if weights is None:
        return events
    for rows in pieces_of(len(events)):
        amounts = np.where(np.isnan(weights[rows]), 1, weights[rows])
        events[rows] = times_events(amounts, events[rows])
    return events


# --- ratings and weights ---


def _feedback(
    numbers: Mapping[str, np.ndarray],
    roles: LogChoice,
    columns: Columns,
    report: ReadReport,
    stated: Scale,
) -> tuple[np.ndarray | None, np.ndarray | None, Scale]:
    """Return the ratings, the weights, and the scale of the ratings; None for what is missing."""
    filled = {role: cells for role, cells in numbers.items() if not np.isnan(cells).all()}
    ratings, weights = filled.get("rating"), filled.get("weight")
    if ratings is None:
        return None, weights, None
    return ratings, weights, decided_scale(*_distinct(ratings), roles, columns, report, stated)


def _distinct(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct numbers, ascending and without NaN, and how often each occurs, int64."""
    counts = pd.Series(dtype=np.float64)
    for rows in pieces_of(len(numbers)):
        counts = counts.add(pd.Series(numbers[rows]).value_counts(), fill_value=0)
    return counts.index.to_numpy(np.float64), counts.to_numpy(np.int64)


def decided_scale(
    ratings: np.ndarray,
    counts: np.ndarray,
    roles: LogChoice,
    columns: Columns,
    report: ReadReport,
    stated: Scale = None,
) -> Scale:
    """Decide on which scale ratings are, and write it into the report.

    ratings, counts (n,): the distinct numbers, and how often each occurs. stated: the scale that
    the cells tell. Raises `DataError` where the numbers may be counts, or where one of them may
    mean that nothing was rated.
    """
    if columns.rating_scale is not None:
        return columns.rating_scale
    if stated is not None:
        report.notes.append(f"ratings are on a scale from {stated[0]:g} to {stated[1]:g}")
        return stated
    report.scale_inferred = True
    scale, occur = infer_scale(ratings, counts), f"{ratings[0]:g} to {ratings[-1]:g}"
    if scale is None:
        name = str(roles.rating)
        report.warnings.append(
            f"{report.file}: column {name} may hold counts, not ratings: whole numbers from "
            f"{occur}, most of them low. Every row is a like; use `weight_column` {quote(name)} if "
            f"they are counts, `rating_scale` {occur.replace(' to ', '..')} if they are ratings"
        )
        return None
    low, high = scale
    apart = standing_apart(ratings, counts)
    if apart:
        is_apart = np.isin(ratings, [*apart])
        others = ratings[~is_apart]
        lowest = min(others[0], 1) if is_apart[0] else others[0]
        without, whole = (
            f"{np.floor(low):g}..{np.ceil(high):g}"
            for low, high in ((lowest, others[-1]), (ratings[0], ratings[-1]))
        )
        values = " and ".join(f"{value:g}, {why}," for value, why in sorted(apart.items()))
        raise DataError(
            f"{report.file}: column {roles.rating}: {values} may mean that nothing was rated ("
            f"{int(counts[is_apart].sum()):,} of {counts.sum():,} ratings). Use "
            f"`rating_scale` {without} to leave it out, or `rating_scale` {whole} if it is a rating"
        )
    report.notes.append(
        f"ratings are on a scale from {low:g} to {high:g} ({occur} occur; `rating_scale` decides)"
    )
    outside = int(counts[(ratings < low) | (ratings > high)].sum())
    report.note(outside, "{n} {n:rating|ratings} outside the scale {n:counts|count} as its ends")
    return scale


def check_scale(scale: tuple[float, float], roles: LogChoice, file: str) -> None:
    """Raise `DataError` for a scale that is none, or for a log without ratings."""
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


def _ratings_of(
    table: Table, name: str, columns: Columns, report: ReadReport
) -> tuple[np.ndarray, Scale]:
    """Return a column of ratings as numbers, as `numbers_of` does, and the scale that its cells
    tell. Yes and no are the ends of a scale. Raises `DataError` for 4/5 on another scale.
    """
    column = table.columns[name]
    if isinstance(column, NumberColumn):
        return numbers_of(column, name, report), None
    codes, texts = column.coded()
    counts = counts_of(codes, len(texts))
    values, scale, change = read_ratings(texts, counts, name, report.file)
    if not change:
        return numbers_of(column, name, report), None
    declared = columns.rating_scale
    if change == ANSWERS and declared is not None:
        values = values * (declared[1] - declared[0]) + declared[0]
    elif scale is not None and declared is not None and declared[1] != scale[1]:
        raise DataError(
            f"{report.file}: column {name} has ratings out of {scale[1]:g}, and `rating_scale` "
            f"ends at {declared[1]:g}: write them on one scale"
        )
    is_read = np.isfinite(values)
    examples = texts[is_read][:MAX_EXAMPLES].tolist()
    report.changed(name, {change: int(counts[is_read].sum())}, examples=examples)
    return spread(np.append(values, np.nan), codes), scale


def numbers_of(column: Column, name: str, report: ReadReport) -> np.ndarray:
    """Return a column as numbers, float64 (n,): NaN for an empty cell, ∞ for one of text."""
    if isinstance(column, NumberColumn) and not column.moment:
        numbers = scratch_array(len(column), np.float64)
        for rows in pieces_of(len(column)):
            numbers[rows] = np.where(column.filled(rows), column.values[rows], np.nan)
        return numbers
    codes, texts = column.coded()
    distinct = pd.to_numeric(texts, errors="coerce")
    if distinct.isna().any():
        counts = counts_of(codes, len(texts))
        parsed = typed_distinct(texts, counts, "number")
        distinct = parsed.cells.astype(float).mask(parsed.unfit, np.inf)
        is_changed = np.zeros(len(texts), dtype=bool)
        if parsed.original is not None:
            is_changed = parsed.original.notna().to_numpy()
        report.changed(
            name,
            parsed.changed,
            int(counts[is_changed].sum()),
            examples_of(texts[is_changed], parsed.unfit[is_changed]),
        )
    return spread(np.append(distinct.to_numpy(np.float64, na_value=np.nan), np.nan), codes)


# --- times ---


def times_in(table: Table, name: str, usable: np.ndarray, report: ReadReport) -> np.ndarray | None:
    """Return the times of the usable rows, int64; `UNKNOWN_TIME`, before all others, for none.

    Numbers and moments are read without their texts where the texts would give the same.
    """
    column, seconds = table.columns[name], None
    if isinstance(column, NumberColumn):
        numbers = NumberColumn(filtered(column.values, usable), column.moment)
        seconds = (
            _seconds_of_moments(numbers)
            if column.moment
            else _seconds_of_numbers(numbers, name, report)
        )
    if seconds is None:
        seconds = _seconds_of_texts(table, name, usable, report)
    n_missing = int(np.count_nonzero(seconds == UNKNOWN_TIME))
    if n_missing == len(seconds):
        return None
    report.note(n_missing, WITHOUT_TIME)
    _warn_of_future(seconds, table, usable, report)
    return seconds


def _warn_of_future(
    seconds: np.ndarray, table: Table, usable: np.ndarray, report: ReadReport
) -> None:
    """Warn of rows with a time in the future. What is recorded later is dated after them."""
    if not is_future(int(seconds.max())):
        return
    future = np.flatnonzero(seconds >= first_future_time())
    (number,) = table.rows.of(np.flatnonzero(usable)[future[:1]])
    moment = np.datetime64(int(seconds[future[0]]), "s")
    report.warnings.append(
        f"{report.file}: {quantity(len(future), 'row')} with a time in the future, the first of "
        f"them row {report.where(int(number))} with {moment.item():%Y-%m-%d}; correct or "
        "remove it, because all that is recorded from now on is dated after it"
    )


def _seconds_of_numbers(column: NumberColumn, name: str, report: ReadReport) -> np.ndarray | None:
    """Return numbers as seconds, None where their texts may be dates."""
    seconds = scratch_array(len(column), np.int64)
    for rows in pieces_of(len(column)):
        values, filled = column.values[rows], column.filled(rows)
        if values.dtype.kind == "f" and not (np.abs(values[filled]) < 2**62).all():
            return None
        whole = np.floor(np.where(filled, values, 0)).astype(np.int64)
        seconds[rows] = np.where(filled, whole, UNKNOWN_TIME)
    return seconds if seconds_of_numbers(seconds, name, report) else None


def _seconds_of_moments(column: NumberColumn) -> np.ndarray | None:
    """Return moments as seconds, None where the texts of some would not be read as dates."""
    in_a_second = UNITS_IN_A_SECOND[unit_of(column.moment)]
    earliest = int(np.datetime64(FIRST_YEAR, "s").astype(np.int64)) * in_a_second
    seconds = scratch_array(len(column), np.int64)
    for rows in pieces_of(len(column)):
        values, filled = column.values[rows].astype(np.int64), column.filled(rows)
        if (values[filled] < earliest).any():
            return None
        seconds[rows] = np.where(filled, values // in_a_second, UNKNOWN_TIME)
    return seconds


def _seconds_of_texts(
    table: Table, name: str, usable: np.ndarray, report: ReadReport
) -> np.ndarray:
    column = table.columns[name].coded()
    order, counts, first = _used_texts(column, usable)
    rows = table.rows.of(first)
    cells = pd.Series(column.texts.to_numpy(object)[order], rows, name=name, dtype=object)
    seconds = np.full(len(column.texts) + 1, UNKNOWN_TIME)
    seconds[order] = seconds_of(cells, counts, report)
    return spread(seconds, filtered(column.codes, usable))
