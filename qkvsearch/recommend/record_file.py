"""Many interactions recorded at once, from a file or a frame in the form of the build's log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from qkvsearch.data.columns import Columns, find_column
from qkvsearch.data.ids import id_texts
from qkvsearch.data.log import LogRows, rows_from_table
from qkvsearch.data.readers import Source, load_encoded
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError
from qkvsearch.recommend.recording import Recording
from qkvsearch.search.listing import Listing
from qkvsearch.storage.records import Recorded


def record_file(recording: Recording, source: Source, columns: Columns | None = None) -> Listing:
    """Read as a build reads a log, then written all at once. The notes say what became of every
    row. Raises `DataError` where no row can be used.
    """
    models, catalog = recording.histories.models, recording.histories.catalog
    columns = columns or Columns()
    table, report = load_encoded(source, "interactions", columns.delimiter)
    facts = models.snapshot.facts
    names = list(table.columns)
    given = _with_known(columns, facts.get("interaction_columns", ()), names)
    given = replace(given, fold_ids=bool(facts.get("fold_ids")))
    if find_column("rating", given.rating, names, report.file) is not None:
        given = replace(given, rating_scale=models.rating_scale)
    found = rows_from_table(table, given, report, catalog.ids("items"))
    rows = _rows(recording, found, report)
    report.note(
        _in_log(recording, rows),
        "{n} count nothing, for the log has the same user and item at that time or later",
    )
    return recording.write(rows, [f"{report}."])


def _with_known(columns: Columns, facts: object, names: list[str]) -> Columns:
    """Columns that the build's log had are what they were there, where none is told."""
    for fact in facts:  # type: ignore[attr-defined]
        role, name = fact["role"], fact["name"]
        if name in names and getattr(columns, role, "") is None:
            columns = replace(columns, **{role: name})
    return columns


def _rows(recording: Recording, found: LogRows, report: ReadReport) -> list[Recorded]:
    """One by one, since a refund takes back what only the build's log has. Raises `DataError`
    where none can be used.
    """
    ids = recording.histories.catalog.ids("items")
    codes, _ = found.items.numbered(ids, ids.fold)
    ratings = _column("ratings", found, recording.rated, report)
    weights = _column("weights", found, recording.has_weights, report)
    usable = np.ones(len(codes), dtype=bool)
    scale = recording.histories.models.rating_scale
    if scale is not None and ratings is not None:
        usable &= ~((ratings < scale[0]) | (ratings > scale[1]))
        report.skip(f"with a rating outside {scale[0]:g} to {scale[1]:g}", int((~usable).sum()))
    if found.weights is not None and weights is None:
        refunds = usable & (found.weights <= 0)
        report.skip("with a weight of 0 or less", int(refunds.sum()))
        usable &= ~refunds
    if not usable.any():
        raise DataError(f"{report.file}: no usable rows; {report}")
    return [
        Recorded(user, ids.texts[code], *values)
        for user, code, *values, is_usable in zip(
            id_texts(pd.Series(found.users.rows(), dtype=object)),
            codes,
            _cells(ratings, len(codes)),
            _cells(weights, len(codes)),
            [None] * len(codes) if found.times is None else found.times.tolist(),
            usable,
            strict=True,
        )
        if is_usable
    ]


def _in_log(recording: Recording, rows: list[Recorded]) -> int:
    """How many the log of the build has already, or something later in their place."""
    models, catalog = recording.histories.models, recording.histories.catalog
    users, items, found = catalog.ids("users"), catalog.ids("items"), 0
    log = {user: models.history(user) for user in {users.find(row.user) for row in rows} - {-1}}
    for row in rows:
        history = log.get(users.find(row.user))
        if history is not None and row.time is not None:
            times = history.times[history.positions == items.find(row.item)]
            found += int((row.time <= times).any())
    return found


def _column(name: str, found: LogRows, is_known: bool, report: ReadReport) -> np.ndarray | None:
    """The ratings or weights of a file; None, and that is said, where the build's log has none."""
    column: np.ndarray | None = getattr(found, name)
    if column is None or is_known:
        return column
    report.notes.append(f"{name} left out, for the interactions here have none")
    return None


def _cells(column: np.ndarray | None, count: int) -> list[float | None]:
    if column is None:
        return [None] * count
    return [float(value) if np.isfinite(value) else None for value in column]
