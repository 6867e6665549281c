"""Record the interactions of a file, which is read as the build read its log."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from qkvsearch.errors import DataError
from qkvsearch.learn.recording import Recording
from qkvsearch.rank.listing import Listing
from qkvsearch.store.records import NewRecord
from qkvsearch.tables.times import UNKNOWN_TIME

# Pandas is slow to import: whoever records one interaction does not wait for it.
if TYPE_CHECKING:
    from qkvsearch.heads.stored_models import StoredModels
    from qkvsearch.tables.columns import Columns
    from qkvsearch.tables.dataset import Source
    from qkvsearch.tables.log import LogRows
    from qkvsearch.tables.report import ReadReport
    from qkvsearch.tables.table import Table


def record_file(
    recording: Recording, source: Source, columns: Columns | None = None, again: bool = False
) -> Listing:
    """Record the rows of a file or frame all at once.

    The notes of the listing say what became of every row. again: also where the same content is
    recorded already. Raises `DataError` where no row can be used, and `QkvError` where the content
    is recorded already.
    """
    from qkvsearch.tables.columns import Columns
    from qkvsearch.tables.log import rows_from_table

    columns = columns or Columns()
    table, report, chosen = read_like_log(recording.histories.models, source, columns)
    content = content_hash(table)
    log = rows_from_table(table, chosen, report, recording.histories.catalog.ids("items"))
    records = _usable_records(recording, log, report)
    report.note(
        _count_without_effect(recording, records),
        "{n} {n:has|have} no effect, because the log has the same user and item at that time or "
        "later",
    )
    report.conclude(columns.strict)
    notes = [f"{report}.", *report.warning_lines()]
    return recording.write(records, notes, content=content, again=again, file=report.file)


def read_like_log(
    models: StoredModels,
    source: Source,
    columns: Columns | None = None,
) -> tuple[Table, ReadReport, Columns]:
    """Read files or frames as the build read its log. Return the table, the report, and the columns
    by which it becomes interactions.
    """
    from qkvsearch.tables.columns import Columns, check_column
    from qkvsearch.tables.dataset import load

    columns = columns or Columns()
    options = dict(models.snapshot.facts.get("interaction_options", {}))
    if not isinstance(source, str | os.PathLike):
        # A frame has columns, whatever the lines of the build's file had.
        options = {"ignore": options.get("ignore", ())}
    chosen = columns.with_options(options)
    table, report = load(source, "interactions", chosen)
    for ignored in columns.ignore:
        check_column(ignored, list(table.columns), report.file, "`ignore`")
    chosen = _columns_of_build(models, chosen, chosen.not_ignored(table.columns), report.file)
    return table, report, chosen


def content_hash(table: Table) -> str:
    """Return a hash of the names and the cells of all columns."""
    digest = xxhash.xxh3_128()
    for name, column in table.columns.items():
        codes, texts = column.coded()
        digest.update("\0".join([name, *map(str, texts), ""]).encode("utf-8", "surrogatepass"))
        digest.update(codes.tobytes())
    return digest.hexdigest()


def _columns_of_build(
    models: StoredModels, columns: Columns, names: list[str], file: str
) -> Columns:
    """Return the columns, and where none is chosen those that the build's log has by the same name.

    names: the columns that the file has. Ids are folded, and ratings have the scale, as in the
    build.
    """
    from qkvsearch.tables.columns import find_column

    facts = models.snapshot.facts
    for fact in facts.get("interaction_columns", ()):
        columns = _with_column(columns, fact, names)
    columns = replace(columns, fold_ids=bool(facts.get("fold_ids")))
    if find_column("rating", columns.rating, names, file) is not None:
        columns = replace(columns, rating_scale=models.rating_scale)
    return columns


def _with_column(columns: Columns, fact: Mapping[str, Any], names: list[str]) -> Columns:
    """Return the columns with one of the build's log, if the file has it and no other is chosen."""
    role, name = fact["role"], fact["name"]
    if name not in names or getattr(columns, role, "") is not None:
        return columns
    columns = replace(columns, **{role: name})
    if role == "event" and fact["convention"] and not columns.event_weights:
        columns = replace(columns, event_weights=json.loads(fact["convention"]))
    return columns


def _usable_records(recording: Recording, log: LogRows, report: ReadReport) -> list[NewRecord]:
    """Return a record for each row that can be used, in the order of the file.

    Rows of the same user and item are not added up: a refund takes back what the build's log has,
    and not what is in the file. Raises `DataError` where no row can be used.
    """
    import pandas as pd

    from qkvsearch.tables.ids import id_texts

    ids = recording.histories.catalog.ids("items")
    items, _ = log.items.numbered(ids, ids.fold)
    ratings = _column("ratings", log, recording.values.rated, report)
    weights = _column("weights", log, recording.values.has_weights, report)
    is_usable = np.ones(len(items), dtype=bool)
    scale = recording.histories.models.rating_scale
    if scale is not None and ratings is not None:
        is_usable &= ~((ratings < scale[0]) | (ratings > scale[1]))
        n_outside = int((~is_usable).sum())
        report.skip(f"with a rating outside {scale[0]:g} to {scale[1]:g}", n_outside)
    if log.weights is not None and weights is None:
        is_refund = is_usable & (log.weights <= 0)
        report.skip("with a weight of 0 or less", int(is_refund.sum()))
        is_usable &= ~is_refund
    if not is_usable.any():
        raise DataError(f"{report.file}: no usable rows; {report}")
    users = list(id_texts(pd.Series(log.users.rows(), dtype=object)))
    rating_of, weight_of = _numbers(ratings, len(items)), _numbers(weights, len(items))
    times = [UNKNOWN_TIME] * len(items) if log.times is None else log.times.tolist()
    return [
        NewRecord(users[row], ids.texts[items[row]], rating_of[row], weight_of[row], times[row])
        for row in np.flatnonzero(is_usable).tolist()
    ]


def _count_without_effect(recording: Recording, records: Sequence[NewRecord]) -> int:
    """Count the records whose user and item the build's log has at that time or later."""
    models, catalog = recording.histories.models, recording.histories.catalog
    users, items = catalog.ids("users"), catalog.ids("items")
    known_users = {users.find(record.user) for record in records} - {-1}
    histories = {user: models.history(user) for user in known_users}

    def covered() -> Iterator[bool]:
        for record in records:
            history = histories.get(users.find(record.user))
            if history is not None and record.time != UNKNOWN_TIME:
                times = history.times[history.positions == items.find(record.item)]
                yield bool((record.time <= times).any())

    return sum(covered())


def _column(name: str, log: LogRows, is_in_build: bool, report: ReadReport) -> np.ndarray | None:
    """Return the ratings or weights; None, with a note, where the build's log has none."""
    column: np.ndarray | None = getattr(log, name)
    if column is None or is_in_build:
        return column
    report.notes.append(f"{name} left out, because the interactions here have none")
    return None


def _numbers(column: np.ndarray | None, count: int) -> list[float | None]:
    """Return the numbers of a column, None for a missing one."""
    if column is None:
        return [None] * count
    return [float(value) if np.isfinite(value) else None for value in column]
