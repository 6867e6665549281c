"""Rows of text to interactions: who, what, how well liked or how often, and when."""

from __future__ import annotations

import numpy as np
import pandas as pd

from qkvsearch.data.columns import Columns
from qkvsearch.data.columns.choice import choose_log_columns
from qkvsearch.data.columns.times import times_of
from qkvsearch.data.ids import Ids, id_texts
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError


def interactions_from_frame(
    frame: pd.DataFrame, columns: Columns, report: ReadReport, item_ids: Ids | None
) -> Interactions:
    """Rows of text to interactions; what cannot be used is skipped and counted in `report`."""
    report.require_rows()
    chosen = choose_log_columns(frame, columns, report, item_ids)
    user, item, rating, time = chosen.user, chosen.item, chosen.rating, chosen.time
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
        times=None if time is None else times_of(frame[time], report, given=time),
        item_ids=item_ids,
        times_comparable=chosen.times_comparable,
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
        report.skip(reason, frame.index[usable & bad])
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
