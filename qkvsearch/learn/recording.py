"""Record interactions after the build: check, write, undo and list them."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.validation import check_id, is_whole, require
from qkvsearch.errors import QkvError, UnknownIdError
from qkvsearch.heads.histories import Histories
from qkvsearch.models.user_history import NOW, readable_time
from qkvsearch.rank.given_values import GivenValues
from qkvsearch.rank.listing import Listing
from qkvsearch.store import Snapshot, Workspace
from qkvsearch.store.records import NewRecord, Origin
from qkvsearch.store.records.database import AlreadyRecordedError
from qkvsearch.store.records.record_rows import RECORD, Record
from qkvsearch.tables.ids import check_new_id, id_text
from qkvsearch.tables.times import is_future

RECORDED_NAMES = ("user", "id", "title", "rating", "weight", "time")
LOGGED_NAMES = (
    *("number", "user", "item", "title", "rating", "weight", "time"),
    *("batch", "recorded", "client", "learned"),
)
HISTORY_NAMES = ("id", "title", "confidence", "recorded", "rating", "weight", "time")
# The client of what is recorded over HTTP; others are "local:" and the user of the system.
HTTP = "http"


class NewRow(NamedTuple):
    """An interaction to be recorded, as it is given."""

    user: Any
    item: Any
    rating: float | None = None
    weight: float | None = None
    # What it is, such as "purchase", by the names of the build's log.
    event: str | None = None


@dataclass(frozen=True)
class Recording:
    """The records of a workspace, as its current build sees them."""

    workspace: Workspace
    histories: Histories
    # Whether it records and undoes for clients of the server.
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
        unknown item, a wrong id or value, and an event without a weight.

        key: of a request. What came with it first is not recorded again, but returned, as long as
        it is recorded; other interactions with the same key raise `QkvError`.
        """
        new_rows = list(new_rows)
        content = None if key is None else _request_content(key, new_rows)
        if content is not None:
            stored = self._recorded(content)
            if stored is not None:
                return stored
        checked = [self._row(row) for row in new_rows]
        notes = dict.fromkeys(note for _, note in checked if note)
        try:
            return self.write([row for row, _ in checked], [*notes], content=content)
        except AlreadyRecordedError:
            # Another request wrote the same at the same time, and may have undone it since.
            assert content is not None
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

    def _row(self, row: NewRow) -> tuple[NewRecord, str]:
        check_new_id("user", id_text(check_id("user", row.user)))
        weight = row.weight
        if row.event is not None:
            weight = self.values.weight_of_event(row.event, row.weight)
        self.values.check(row.rating, weight)
        catalog = self.histories.catalog
        position, note = catalog.titles.find_item(check_id("item", row.item))
        (id_,), _ = catalog.names([position])
        spelled = self.histories.models.snapshot.records.user_text(row.user)
        return NewRecord(spelled, id_text(id_), row.rating, weight), note

    def write(
        self, rows: Sequence[NewRecord], notes: Sequence[str] = (), **of_file: Any
    ) -> Listing:
        """Write interactions that were checked, all or none, as one batch. of_file: fields of
        `Origin`. Raises `WorkspaceError`, and `AlreadyRecordedError` for content recorded before.
        """
        histories = self.histories
        last_time = histories.models.last_time
        if is_future(last_time) and any(row.time == NOW for row in rows):
            dated = f"The log has a time in the future, {readable_time(last_time or 0)}: what is"
            notes = [*notes, f"{dated} recorded is dated after it."]
        listing = self.listed(rows, notes)  # before the write: nothing can fail after it
        learned = histories.models.snapshot.records.learned
        origin = Origin(self.client, **of_file)
        database = self.workspace.writable_records()
        records = database.append(rows, origin, last_time, learned)
        return _in_batch(listing, records[0].batch)

    def undo(self, batch: int | None = None) -> Listing:
        """Take back a batch, by default the last one of this client. Raises `QkvError` where there
        is none, or a build has learned from it.
        """
        is_batch = batch is None or (is_whole(batch) and 0 < batch < 2**63)
        require(is_batch, "batch", batch, "the number of a batch, as `records` lists them")
        with closing(self.workspace.open()) as current:
            learned = current.records.learned
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


def record_rows(snapshot: Snapshot, user: Any, k: int | None, offset: int) -> Listing:
    """List the records of one user or of all, the latest first; `learned` where the log of the
    build contains them. Raises `UnknownIdError`.
    """
    catalog = snapshot.catalog
    records, total = snapshot.records.page(user, k, offset)
    # Without any record, a user can only be one of the build.
    if user is not None and not total and catalog.users.position(user) is None:
        raise catalog.users.unknown(user)
    titled = catalog.ids_and_titles({record.item for record in records})
    rows = [
        {
            **record._asdict(),
            "title": titled.get(record.item, (None, None))[1],
            "time": readable_time(record.time),
            "recorded": readable_time(record.recorded),
            "learned": record.number <= snapshot.records.learned,
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

    def is_shown(column: int) -> bool:
        return column < always or not rows or any(row[column] is not None for row in rows)

    columns = [column for column in range(len(names)) if is_shown(column)]
    named_rows = [{names[column]: row[column] for column in columns} for row in rows]
    return Listing(named_rows, len(named_rows), [names[column] for column in columns], notes=notes)


def _in_batch(listing: Listing, batch: int) -> Listing:
    rows = [{**row, "batch": batch} for row in listing]
    return replace(listing, rows=rows, names=[*listing.names, "batch"])


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
