"""Files and frames of any origin to a `Catalog` and `Interactions`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from qkvsearch.data.catalog import Catalog, catalog_from_frame, catalog_of_ids
from qkvsearch.data.columns import Columns, check_column, find_column, require_column
from qkvsearch.data.ids import Ids, id_texts
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.report import ReadReport
from qkvsearch.data.tables import as_text, read_table
from qkvsearch.errors import DataError

Table: TypeAlias = tuple[pd.DataFrame, ReadReport]
Source: TypeAlias = "str | Path | pd.DataFrame | Table"

# For each unit the range, from and below, of times between 1980 and 2286, and how many make a
# second. Numbers outside the ranges, such as 20010909014640, stay as they are.
UNITS = {
    "milliseconds": (3e11, 1e13, 10**3),
    "microseconds": (3e14, 1e16, 10**6),
    "nanoseconds": (3e17, 1e19, 10**9),
}


@dataclass
class Dataset:
    """What `build` needs: items, interactions (or None), and a report on every row read."""

    catalog: Catalog
    interactions: Interactions | None = None
    reports: list[ReadReport] = field(default_factory=list)


def read_dataset(
    items: Source | None, interactions: Source | None, columns: Columns | None = None
) -> Dataset:
    """From a file or frame of items, of a log, or both. With a log alone, ids are the titles."""
    columns = columns or Columns()
    catalog, log = None, None
    reports: list[ReadReport] = []
    if interactions is None:
        columns.refuse(("user", "item", "rating", "time"), "interactions")
    if items is None and interactions is None:
        raise DataError("nothing to build from: give a source, `items` or `interactions`")
    if items is not None:
        frame, report = load(items, "items")
        catalog = catalog_from_frame(frame, columns, report)
        reports.append(report)
    if interactions is not None:
        frame, report = load(interactions, "interactions")
        if catalog is None:
            columns.refuse(("id",), "items")
            catalog = _titles_in_log(frame, columns, report.file)
        log = interactions_from_frame(frame, columns, report, catalog.ids if catalog else None)
        reports.append(report)
        catalog = catalog or catalog_of_ids(log.item_ids)
    assert catalog is not None
    return Dataset(catalog, log, reports)


def _titles_in_log(frame: pd.DataFrame, columns: Columns, file: str) -> Catalog | None:
    """The items that a log names beside their ids, or None where it names none."""
    names = list(frame.columns)
    title = find_column("title", columns.title, names, file)
    item = find_column("item", columns.item, [name for name in names if name != title], file)
    if title is None or item is None:
        columns.refuse(("text",), "items")
        return None
    about = Columns(id=item, title=title, text=columns.text or [title])
    text = [check_column(name, names, file, "`text_columns`") for name in about.text or ()]
    kept = frame[list(dict.fromkeys([item, title, *text]))]
    return catalog_from_frame(kept[kept[item].notna()], about, ReadReport(file, read=len(frame)))


def interactions_from_frame(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> Interactions:
    """Rows of text to interactions; what cannot be used is skipped and counted in `report`."""
    report.require_rows()
    names = list(frame.columns)
    user = require_column("user", columns.user, names, report.file)
    free = [name for name in names if name != user]
    item = require_column("item", columns.item, free, report.file)
    free.remove(item)
    rating = find_column("rating", columns.rating, free, report.file)
    time = find_column("time", columns.time, free, report.file)
    comparable = True
    if time is None and "time_rank_in_user" in free:
        time, comparable = "time_rank_in_user", False

    usable = _usable_rows(frame, user, item, rating, report, item_ids)
    if not usable.any():
        raise DataError(
            f"{report.file}: no usable rows; {report}{_mismatch(frame[item], item_ids)}"
        )
    frame = frame[usable]
    rated = rating is not None and frame[rating].notna().any()
    log = Interactions.from_columns(
        frame[user],
        frame[item],
        ratings=None if not rated else pd.to_numeric(frame[rating]),
        times=None if time is None else _times(frame[time], report, given=columns.time),
        item_ids=item_ids,
        times_comparable=comparable,
    )
    report.merged += len(frame) - len(log)
    return log


def _mismatch(items: pd.Series, item_ids: Ids | None) -> str:
    """For a message, example ids of log and catalog where no id of the log is in the catalog."""
    unknown = id_texts(items.dropna())
    if item_ids is None or unknown.empty or unknown.isin(item_ids.texts).any():
        return ""
    return (
        f"; its items look like {unknown.iloc[0]!r}, those of the catalog like "
        f"{item_ids.texts[0]!r}: write them alike, or name another `item_column` or `id_column`"
    )


def _usable_rows(
    frame: pd.DataFrame,
    user: str,
    item: str,
    rating: str | None,
    report: ReadReport,
    item_ids: Ids | None,
) -> pd.Series:
    """True where a row has a user, a known item, and either a finite rating or none."""
    usable = pd.Series(True, index=frame.index)

    def drop(bad: pd.Series, reason: str) -> None:
        report.skip(reason, int((usable & bad).sum()))
        usable.loc[bad] = False

    drop(frame[user].fillna("").str.strip() == "", "without a user")
    drop(frame[item].fillna("").str.strip() == "", "without an item")
    if item_ids is not None:
        drop(~id_texts(frame[item]).isin(item_ids.texts), "with an item that is not in the catalog")
    if rating is not None:
        numbers = pd.to_numeric(frame[rating], errors="coerce")
        bad = frame[rating].notna() & ~(numbers.abs() <= np.finfo(np.float32).max)
        drop(bad, "with a rating that is not a number")
    return usable


def _times(column: pd.Series, report: ReadReport, given: str | None) -> np.ndarray | None:
    """The column's times; None where the column was guessed and turns out to hold no times."""
    try:
        return _seconds(column, report)
    except DataError as error:
        if given is not None:
            raise
        report.notes.append(f"column {column.name} left out: {error}")
        return None


def _dates(column: pd.Series) -> pd.Series:
    """Dates in one format for the whole column: 12/02 and 13/02 are days of the same month."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no cell has this format
        found = [
            pd.to_datetime(column, errors="coerce", utc=True, **form)
            for form in ({"format": "ISO8601"}, {}, {"dayfirst": True})
        ]
    return max(found, key=lambda dates: int(dates.notna().sum()))


def _seconds(column: pd.Series, report: ReadReport) -> np.ndarray:
    """Whole seconds (or ranks) from numbers or dates; a row without a time comes first."""
    numbers = pd.to_numeric(column, errors="coerce")
    numbers = numbers.where(numbers.abs() < 2**63)
    if numbers.notna().sum() < column.notna().sum():
        dates = _dates(column)
        if dates.notna().sum() < column.notna().sum():
            bad = column[column.notna() & dates.isna()]
            worst = bad[numbers[bad.index].isna()]
            example = (bad if worst.empty else worst).iloc[0]
            raise DataError(f"{report.file}: column {column.name!r}: {example!r} is not a time")
        numbers = (dates - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
    usual = numbers.median()
    for unit, (lowest, beyond, in_a_second) in UNITS.items():
        if lowest <= usual < beyond:
            numbers = numbers // in_a_second
            report.notes.append(f"column {column.name} is in {unit}, and was brought to seconds")
    return numbers.fillna(0).to_numpy(dtype=np.int64)


def load(source: Source, name: str) -> Table:
    """A file or a frame, as a frame of text; `name` is what messages call a frame."""
    if isinstance(source, tuple):
        return source
    if isinstance(source, pd.DataFrame):
        return as_text(source), ReadReport(name, read=len(source))
    return read_table(source)
