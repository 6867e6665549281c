"""Rows of text to interactions: who, what, how well liked or how much, and when."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from qkvsearch.data.columns import Columns
from qkvsearch.data.columns.choice import LogChoice, choose_log_columns
from qkvsearch.data.columns.times import times_of
from qkvsearch.data.columns.types import typed
from qkvsearch.data.ids import BLANK, Ids, case_note, factorize, id_texts
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.ratings import Scale, infer_scale
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

# Numbers beyond are errors, and their squares could not be added up.
LARGEST = 1e12


@dataclass(frozen=True)
class LogRows:
    """The usable rows of a log, in the order of the file: ids as text, ratings and weights with NaN
    where there is none, times, and the scale of the ratings.
    """

    users: pd.Series
    items: pd.Series
    ratings: np.ndarray | None
    weights: np.ndarray | None
    times: np.ndarray | None
    times_comparable: bool
    scale: Scale


def interactions_from_frame(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> Interactions:
    """Rows of text to interactions; what cannot be used is skipped and counted in `report`."""
    rows = rows_from_frame(frame, columns, report, item_ids)
    return Interactions.from_columns(
        rows.users,
        rows.items,
        ratings=rows.ratings,
        times=rows.times,
        weights=rows.weights,
        item_ids=item_ids,
        times_comparable=rows.times_comparable,
        scale=rows.scale,
        fold_ids=columns.fold_ids,
        report=report,
    )


def rows_from_frame(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> LogRows:
    """The same, one by one: repeated pairs are apart, and nothing is taken back yet."""
    report.require_rows()
    roles = choose_log_columns(frame, columns, report, item_ids)
    if columns.rating_scale is not None:
        check_scale(columns.rating_scale, roles, report.file)
    frame = _with_numbers(frame, roles, report)
    usable = _usable_rows(frame, roles, columns, report, item_ids)
    if not usable.any():
        raise DataError(
            f"{report.file}: no usable rows; {report}{mismatch(frame[roles.item], item_ids)}"
        )
    frame = frame[usable]
    ratings, weights, scale = _feedback(frame, roles, columns, report)
    times = None
    if roles.time is not None:
        times = times_of(frame[roles.time], report)
    _note_cases(frame, roles, columns, item_ids, report)
    users, items = frame[roles.user], frame[roles.item]
    return LogRows(users, items, ratings, weights, times, roles.times_comparable, scale)


def _feedback(
    frame: pd.DataFrame, roles: LogChoice, columns: Columns, report: ReadReport
) -> tuple[np.ndarray | None, np.ndarray | None, Scale]:
    """Ratings, weights and the scale of the ratings, as far as there are any."""
    weights = _numbers(frame, roles.weight)
    ratings = _numbers(frame, roles.rating)
    if ratings is None:
        return None, weights, None
    known, counts = np.unique(ratings, return_counts=True)
    kept, scale = decided_feedback(known, counts, weights is not None, roles, columns, report)
    if kept == "rating":
        return ratings, weights, scale
    return None, ratings if weights is None else weights, None


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


def _with_numbers(frame: pd.DataFrame, roles: LogChoice, report: ReadReport) -> pd.DataFrame:
    """Ratings and weights as numbers, NaN where there is nothing, ∞ for what is no number."""
    for name in (roles.rating, roles.weight):
        if name is None:
            continue
        numbers = pd.to_numeric(frame[name], errors="coerce")
        if (frame[name].notna() & numbers.isna()).any():
            found = typed(frame[name], "number")
            numbers = found.cells.astype(float).mask(found.unfit, np.inf)
            report.changed(name, found.changed)
        frame = frame.assign(**{name: numbers})
    return frame


def _taken_as_weight(report: ReadReport, roles: LogChoice) -> None:
    report.columns = [
        replace(column, role="weight") if column.name == roles.rating else column
        for column in report.columns
    ]


def _numbers(frame: pd.DataFrame, name: str | None) -> np.ndarray | None:
    """A column of numbers, NaN where empty; None without a column, and for an empty one."""
    if name is None or not frame[name].notna().any():
        return None
    return np.asarray(frame[name], dtype=np.float64)


def mismatch(items: pd.Series, item_ids: Ids | None) -> str:
    """For a message, example ids of log and catalog where no id of the log is in the catalog."""
    unknown = items.dropna()
    if item_ids is None or unknown.empty or (factorize(unknown, item_ids)[0] >= 0).any():
        return ""
    return (
        f"; its items look like {id_texts(unknown).iloc[0]!r}, those of the catalog like "
        f"{item_ids.texts[0]!r}: write them alike, or name another `item_column` or `id_column`"
    )


def _usable_rows(
    frame: pd.DataFrame,
    roles: LogChoice,
    columns: Columns,
    report: ReadReport,
    item_ids: Ids | None,
) -> pd.Series:
    """True where a row has a user, a known item, and numbers or nothing for rating and weight."""
    usable = pd.Series(True, index=frame.index)

    def drop(bad: pd.Series | np.ndarray, reason: str) -> None:
        report.skip(reason, frame.index[usable & bad])
        usable.loc[bad] = False

    for id_, what in ((roles.user, "a user"), (roles.item, "an item")):
        drop(frame[id_].fillna("").str.strip(BLANK) == "", f"without {what}")
    if item_ids is not None:
        codes, _ = factorize(frame[roles.item], item_ids)
        drop(codes < 0, "with an item that is not in the catalog")
    for name, what in ((roles.rating, "rating"), (roles.weight, "weight")):
        if name is not None:
            drop(np.isinf(frame[name]), f"with a {what} that is not a number")
            drop(frame[name].abs() > LARGEST, f"with a {what} beyond ±{LARGEST:g}")
            if what == "rating" and columns.rating_scale is not None:
                low, high = columns.rating_scale
                outside = (frame[name] < low) | (frame[name] > high)
                drop(outside, f"with a rating outside {low:g} to {high:g}")
    return usable


def _note_cases(
    frame: pd.DataFrame,
    roles: LogChoice,
    columns: Columns,
    item_ids: Ids | None,
    report: ReadReport,
) -> None:
    """How many ids would join if upper and lower case were equal."""
    if columns.fold_ids:
        return
    of_role = {"users": roles.user} | ({"items": roles.item} if item_ids is None else {})
    for kind, name in of_role.items():
        note = case_note(id_texts(pd.Series(frame[name].unique())).tolist(), kind)
        report.notes += [note] if note else []
