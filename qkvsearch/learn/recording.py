"""Interactions recorded after the build, one by one or from a file: check, write, undo and list."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import xxhash

from qkvsearch._utils.validation import check_id, is_whole, require
from qkvsearch.errors import DataError, QkvError, UnknownIdError
from qkvsearch.heads.stored_log import Histories
from qkvsearch.models.user_history import (
    NOW,
    readable_time,
)
from qkvsearch.rank.given_values import GivenValues
from qkvsearch.rank.listing import Listing
from qkvsearch.store import StoredCatalog, Workspace
from qkvsearch.store.records import NewRecord, Origin
from qkvsearch.store.records.database import AlreadyRecordedError
from qkvsearch.store.records.record_rows import RECORD, Record
from qkvsearch.tables.ids import check_new_id, id_text
from qkvsearch.tables.times import UNKNOWN_TIME

# What a file alone needs is imported by `record_file`: pandas is slow to import.
if TYPE_CHECKING:
    from qkvsearch.tables.columns import Columns
    from qkvsearch.tables.dataset import Source
    from qkvsearch.tables.files.encoded import EncodedTable
    from qkvsearch.tables.log import LogRows
    from qkvsearch.tables.report import ReadReport

RECORDED_NAMES = ("user", "id", "title", "rating", "weight", "time")
LOGGED_NAMES = (
    "number", "user", "item", "title", "rating", "weight", "time", "batch", "recorded", "client",
    "learned",
)  # fmt: skip
HISTORY_NAMES = ("id", "title", "confidence", "recorded", "rating", "weight", "time")
# The client of what is recorded over HTTP; others are "local:" and the user of the system.
HTTP = "http"
# A user, an item, and a rating, a weight or neither.
NewRow: TypeAlias = tuple[Any, Any, float | None, float | None]


@dataclass(frozen=True)
class Recording:
    """The records of a workspace, as its current build sees them. over_http: records and undoes for
    clients of the server.
    """

    workspace: Workspace
    histories: Histories
    over_http: bool = False

    @property
    def client(self) -> str:
        """Who records."""
        if self.over_http:
            return HTTP
        try:
            return f"local:{getpass.getuser()}"
        except (ImportError, KeyError, OSError):  # a user without a name
            return f"local:{os.getuid()}"

    @property
    def values(self) -> GivenValues:
        """The ratings and weights that the log takes."""
        return GivenValues(self.histories)

    def record(self, new_rows: Iterable[NewRow], key: str | None = None) -> Listing:
        """Record interactions: all of them or, where one is wrong, none. Raises `QkvError` for an
        unknown item, or a wrong id or value.

        key: of a request. What came with it first is not recorded again, but returned, as long as
        it is recorded; other interactions with the same key raise `QkvError`.
        """
        new_rows = list(new_rows)
        content = "" if key is None else _request_content(key, new_rows)
        if content and (stored := self._recorded(content)):
            return stored
        checked = [self._row(*row) for row in new_rows]
        notes = dict.fromkeys(note for _, note in checked if note)
        try:
            return self.write([row for row, _ in checked], [*notes], content=content or None)
        except AlreadyRecordedError:  # by a request at the same time
            return self._recorded(content) or self.record(new_rows, key)

    def _recorded(self, content: str) -> Listing | None:
        """Return what is recorded with the key in `content`. Raises `QkvError` for another one."""
        of_key = f"SELECT {RECORD} FROM recorded WHERE content LIKE ? ORDER BY number"
        rows = self.workspace.records.rows(of_key, f"{content.partition(':')[0]}:%")
        if not rows:
            return None
        records = [Record(*row) for row in rows]
        if records[0].content != content:
            raise QkvError(
                f"this key came with other interactions, batch {records[0].batch}; new ones need "
                "a new key"
            )
        listing = self.listed([NewRecord(*record[1:5]) for record in records])
        return _in_batch(listing, records[0].batch)

    def _row(
        self, user: Any, item: Any, rating: float | None, weight: float | None
    ) -> tuple[NewRecord, str]:
        check_new_id("user", id_text(check_id("user", user)))
        self.values.check(rating, weight)
        catalog = self.histories.catalog
        position, note = catalog.find_item(check_id("item", item))
        (id_,), _ = catalog.names([position])
        return NewRecord(catalog.user_text(user), id_text(id_), rating, weight), note

    def write(
        self, rows: Sequence[NewRecord], notes: Sequence[str] = (), **of_file: Any
    ) -> Listing:
        """Write interactions that were checked, all or none, as one batch. of_file: fields of
        `Origin`. Raises `WorkspaceError`, and `AlreadyRecordedError` for content recorded before.
        """
        histories = self.histories
        listing = self.listed(rows, notes)  # before the write: nothing can fail after it
        learned = histories.catalog.records.learned
        origin = Origin(self.client, **of_file)
        database = self.workspace.writable_records()
        records = database.append(rows, origin, histories.models.last_time, learned)
        return _in_batch(listing, records[0].batch)

    def undo(self, batch: int | None = None) -> Listing:
        """Take back a batch, by default the last one of this client. Raises `QkvError` where there
        is none, or a build has learned from it.
        """
        is_batch = batch is None or (is_whole(batch) and 0 < batch < 2**63)
        require(is_batch, "batch", batch, "the number of a batch, as `records` lists them")
        with closing(self.workspace.open()) as current:
            learned = current.catalog.records.learned
        client = self.client if batch is None or self.over_http else None
        records = self.workspace.writable_records().undo(learned, client, batch)
        if not records:
            raise UnknownIdError(self._nothing_to_undo(batch))
        listing = self.listed([NewRecord(*record[1:6]) for record in records])
        return _in_batch(listing, records[0].batch)

    def _nothing_to_undo(self, batch: int | None) -> str:
        if batch is not None:
            over_http = " over HTTP" if self.over_http else ""
            return f"no batch {batch} was recorded{over_http}, or it is undone already"
        others = "SELECT batch, client FROM recorded ORDER BY number DESC LIMIT 1"
        for last, client in self.workspace.records.rows(others):
            return (
                f"{self.workspace.path}: nothing that you recorded is left to undo; the last batch "
                f"is {last}, recorded by {client}: name it to undo that"
            )
        return f"{self.workspace.path}: nothing is recorded here that could be undone"

    def listed(self, rows: Sequence[NewRecord], notes: Sequence[str] = ()) -> Listing:
        """Return rows with their titles; an item that has left the catalog has none."""
        titled = self.histories.catalog.ids_and_titles({row.item for row in rows})
        cells = []
        for row in rows:
            id_, title = titled.get(row.item, (row.item, None))
            time = None if row.time == NOW else readable_time(row.time)
            cells.append([row.user, id_, title, row.rating, row.weight, time])
        return _listing(RECORDED_NAMES, cells, notes, always=3)


def _request_content(key: str, new_rows: Sequence[NewRow]) -> str:
    """Return a hash of a key, and one of key and request: to guess a request takes its key."""
    request = json.dumps([key, new_rows], default=str)
    return ":".join(sha256(text.encode()).hexdigest() for text in (key, request))


def record_rows(catalog: StoredCatalog, user: Any, k: int | None, offset: int) -> Listing:
    """List the records of one user or of all, the latest first; `learned` where the log of the
    build contains them. Raises `UnknownIdError`.
    """
    records, total = catalog.records.page(user, k, offset)
    # Without any record, a user can only be one of the build.
    if user is not None and not total and catalog.user_position(user) is None:
        raise catalog.unknown_user(user)
    titled = catalog.ids_and_titles({record.item for record in records})
    rows = [
        {
            **record._asdict(),
            "title": titled.get(record.item, (None, None))[1],
            "time": readable_time(record.time),
            "recorded": readable_time(record.recorded),
            "learned": record.number <= catalog.records.learned,
        }
        for record in records
    ]
    rows = [{name: row[name] for name in LOGGED_NAMES} for row in rows]
    return Listing(rows, total, LOGGED_NAMES, offset)


def history_rows(histories: Histories, user: Any) -> Listing:
    """List all interactions of a user, the latest first. Raises `UnknownIdError`."""
    history, catalog = histories.of(user), histories.catalog
    records = histories.records.user(user)
    recorded = {position for position, *_ in records.interactions}
    ids, titles = catalog.names(history.positions)
    rows = [
        [
            ids[i],
            titles[i],
            float(history.confidences[i]),
            int(history.positions[i]) in recorded,
            _number(history.ratings[i]),
            None if history.weights is None else _number(history.weights[i]),
            readable_time(int(history.times[i])),
        ]
        for i in np.argsort(history.times, kind="stable")[::-1].tolist()
    ]
    gone = records.strays
    note = f"Recorded as well, of items that are not in the catalog: {', '.join(map(repr, gone))}."
    return _listing(HISTORY_NAMES, rows, [note] if gone else (), always=4)


def _listing(
    names: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str], always: int
) -> Listing:
    """Make a listing of the first `always` columns, and of the others that any row has."""
    columns = [
        i
        for i in range(len(names))
        if i < always or not rows or any(row[i] is not None for row in rows)
    ]
    named_rows = [{names[i]: row[i] for i in columns} for row in rows]
    return Listing(named_rows, len(named_rows), [names[i] for i in columns], notes=notes)


def _in_batch(listing: Listing, batch: int) -> Listing:
    rows = [{**row, "batch": batch} for row in listing]
    return replace(listing, rows=rows, names=[*listing.names, "batch"])


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


# --- files ---


def record_file(
    recording: Recording, source: Source, columns: Columns | None = None, again: bool = False
) -> Listing:
    """Record the rows of a file or frame, which is read as the build read its log, all at once. The
    notes say what became of every row. Raises `DataError` where no row can be used, and `QkvError`
    where the same content is recorded already, unless `again`.
    """
    from qkvsearch.tables.columns import Columns, check_column, find_column
    from qkvsearch.tables.dataset import load_encoded
    from qkvsearch.tables.log import rows_from_table

    models, catalog = recording.histories.models, recording.histories.catalog
    columns, facts = columns or Columns(), models.snapshot.facts
    stored = dict(facts.get("interaction_options", {}))
    if not isinstance(source, str | os.PathLike):  # a frame has columns, whatever the lines had
        stored = {"ignore": stored.get("ignore", ())}
    chosen = columns.with_options(stored)
    table, report = load_encoded(source, "interactions", chosen)
    content = content_hash(table)
    for name in columns.ignore:
        check_column(name, list(table.columns), report.file, "`ignore`")
    names = chosen.not_ignored(table.columns)
    chosen = _with_columns_of_build(chosen, facts.get("interaction_columns", ()), names)
    chosen = replace(chosen, fold_ids=bool(facts.get("fold_ids")))
    if find_column("rating", chosen.rating, names, report.file) is not None:
        chosen = replace(chosen, rating_scale=models.rating_scale)
    log = rows_from_table(table, chosen, report, catalog.ids("items"))
    rows = _usable_rows(recording, log, report)
    report.note(
        _in_log(recording, rows),
        "{n} {n:has|have} no effect, because the log has the same user and item at that time or "
        "later",
    )
    report.conclude(columns.strict)
    notes = [f"{report}.", *report.warning_lines()]
    return recording.write(rows, notes, content=content, again=again, file=report.file)


def content_hash(table: EncodedTable) -> str:
    """Return a hash of the names and the cells of all columns."""
    digest = xxhash.xxh3_128()
    for name, column in table.columns.items():
        codes, texts = column.coded()
        digest.update("\0".join([name, *map(str, texts), ""]).encode("utf-8", "surrogatepass"))
        digest.update(codes.tobytes())
    return digest.hexdigest()


def _with_columns_of_build(
    columns: Columns, facts: Sequence[Mapping[str, Any]], names: list[str]
) -> Columns:
    """Return the columns with those of the build's log by the same names, and the weights of its
    events, where none are chosen.
    """
    for fact in facts:
        role, name = fact["role"], fact["name"]
        if name in names and getattr(columns, role, "") is None:
            columns = replace(columns, **{role: name})
            if role == "event" and fact["convention"] and not columns.event_weights:
                columns = replace(columns, event_weights=json.loads(fact["convention"]))
    return columns


def _usable_rows(recording: Recording, log: LogRows, report: ReadReport) -> list[NewRecord]:
    """Return the rows one by one, since a refund takes back what only the build's log has. Raises
    `DataError` where none can be used.
    """
    import pandas as pd

    from qkvsearch.tables.ids import id_texts

    ids = recording.histories.catalog.ids("items")
    codes, _ = log.items.numbered(ids, ids.fold)
    ratings = _column("ratings", log, recording.values.rated, report)
    weights = _column("weights", log, recording.values.has_weights, report)
    usable = np.ones(len(codes), dtype=bool)
    scale = recording.histories.models.rating_scale
    if scale is not None and ratings is not None:
        usable &= ~((ratings < scale[0]) | (ratings > scale[1]))
        report.skip(f"with a rating outside {scale[0]:g} to {scale[1]:g}", int((~usable).sum()))
    if log.weights is not None and weights is None:
        refunds = usable & (log.weights <= 0)
        report.skip("with a weight of 0 or less", int(refunds.sum()))
        usable &= ~refunds
    if not usable.any():
        raise DataError(f"{report.file}: no usable rows; {report}")
    return [
        NewRecord(user, ids.texts[code], *values)
        for user, code, *values, is_usable in zip(
            id_texts(pd.Series(log.users.rows(), dtype=object)),
            codes,
            _cells(ratings, len(codes)),
            _cells(weights, len(codes)),
            [UNKNOWN_TIME] * len(codes) if log.times is None else log.times.tolist(),
            usable,
            strict=True,
        )
        if is_usable
    ]


def _in_log(recording: Recording, rows: list[NewRecord]) -> int:
    """Count the rows of which the build's log has the same user and item at that time or later."""
    models, catalog = recording.histories.models, recording.histories.catalog
    users, items, n_covered = catalog.ids("users"), catalog.ids("items"), 0
    histories = {
        user: models.history(user) for user in {users.find(row.user) for row in rows} - {-1}
    }
    for row in rows:
        history = histories.get(users.find(row.user))
        if history is not None and row.time != UNKNOWN_TIME:
            times = history.times[history.positions == items.find(row.item)]
            n_covered += int((row.time <= times).any())
    return n_covered


def _column(name: str, log: LogRows, is_in_build: bool, report: ReadReport) -> np.ndarray | None:
    """Return the ratings or weights; None, with a note, where the build's log has none."""
    column: np.ndarray | None = getattr(log, name)
    if column is None or is_in_build:
        return column
    report.notes.append(f"{name} left out, because the interactions here have none")
    return None


def _cells(column: np.ndarray | None, count: int) -> list[float | None]:
    if column is None:
        return [None] * count
    return [float(value) if np.isfinite(value) else None for value in column]
