"""Many interactions recorded at once, from a file or a frame in the form of the build's log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qkvsearch.answers.columns import Listing
from qkvsearch.answers.recording import Recording
from qkvsearch.collaborative.history import UNKNOWN_TIME
from qkvsearch.data.columns import Columns, find_column
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.log import interactions_from_frame
from qkvsearch.data.readers import Source, load
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError
from qkvsearch.workspace.records import Recorded


def record_file(recording: Recording, source: Source, columns: Columns | None = None) -> Listing:
    """Read as a build reads a log, then written all at once. The notes say what became of every
    row. Raises `DataError` where no row can be used.
    """
    models, tables = recording.histories.models, recording.histories.tables
    frame, report = load(source, "interactions")
    facts = models.snapshot.facts
    names = list(frame)
    given = _with_known(columns or Columns(), facts.get("interaction_columns", ()), names)
    given = replace(given, fold_ids=bool(facts.get("fold_ids")))
    if find_column("rating", given.rating, names, report.file) is not None:
        given = replace(given, rating_scale=models.rating_scale)
    log = interactions_from_frame(frame, given, report, tables.ids("items"))
    log = _within_scale(log, models.rating_scale, report)
    values = _values(recording, log, report)
    times = [None] * len(log) if log.times is None else log.times.tolist()
    rows = [
        Recorded(log.user_ids.texts[user], log.item_ids.texts[item], **value, time=_known(time))
        for user, item, value, time in zip(log.users, log.items, values, times, strict=True)
    ]
    recording.workspace.record(rows)
    return recording.listed(rows, [f"{report}."])


def _with_known(columns: Columns, facts: object, names: list[str]) -> Columns:
    """Columns that the build's log had are what they were there, where none is told."""
    for fact in facts:  # type: ignore[attr-defined]
        role, name = fact["role"], fact["name"]
        if name in names and getattr(columns, role, "") is None:
            columns = replace(columns, **{role: name})
    return columns


def _within_scale(
    log: Interactions, scale: tuple[float, float] | None, report: ReadReport
) -> Interactions:
    if scale is None or log.ratings is None:
        return log
    outside = (log.ratings < scale[0]) | (log.ratings > scale[1])
    report.skip(f"with a rating outside {scale[0]:g} to {scale[1]:g}", int(outside.sum()))
    if outside.all():
        raise DataError(f"{report.file}: no usable rows; {report}")
    return log.take(~outside)


def _values(
    recording: Recording, log: Interactions, report: ReadReport
) -> list[dict[str, float | None]]:
    """Each row's rating, or its weight where the build's log has weights."""
    name = "weights" if recording.weighed else "ratings"
    rated = recording.histories.models.rating_scale is not None or recording.weighed
    found = getattr(log, name, None)
    for other in {"weights", "ratings"} - ({name} if rated else set()):
        if getattr(log, other, None) is not None:
            report.notes.append(f"{other} left out, for the interactions here have none")
    if found is None or not rated:
        return [{}] * len(log)
    numbers = [float(value) if np.isfinite(value) else None for value in found]
    return [{name.removesuffix("s"): number} for number in numbers]


def _known(time: int | None) -> int | None:
    return None if time in (None, UNKNOWN_TIME) else time
