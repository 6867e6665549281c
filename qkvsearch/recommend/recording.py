"""Interactions recorded after the build, one by one or from a file: check, write, undo and list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.validation import check_id, is_number, require
from qkvsearch.collaborative.user_history import NOW, UNKNOWN_TIME, Interaction
from qkvsearch.data.ids import id_text
from qkvsearch.errors import DataError, QkvError
from qkvsearch.index.interaction_log import Histories
from qkvsearch.search.candidates import id_list, positions_of
from qkvsearch.search.listing import Listing
from qkvsearch.storage import StoredCatalog, Workspace
from qkvsearch.storage.records import NewRecord

# What a file alone needs is imported by `record_file`: pandas is slow to import.
if TYPE_CHECKING:
    from qkvsearch.data.columns import Columns
    from qkvsearch.data.dataset import Source
    from qkvsearch.data.log import LogRows
    from qkvsearch.data.report import ReadReport

RECORDED_NAMES = ("user", "id", "title", "rating", "weight", "time")
LOGGED_NAMES = (
    "number", "user", "item", "title", "rating", "weight", "time", "batch", "learned"
)  # fmt: skip
HISTORY_NAMES = ("id", "title", "confidence", "recorded", "rating", "weight", "time")
# Numbers between are seconds since 1970, from 1980 to 2286; others may be ranks.
SECONDS_SINCE_1970 = range(315_532_800, 10**10)


@dataclass(frozen=True)
class Recording:
    """The records of a workspace, as its current build sees them."""

    workspace: Workspace
    histories: Histories

    def record(self, user: Any, item: Any, value: float | None) -> Listing:
        """Record one interaction. Raises `QkvError` for an unknown item, or a wrong id or value."""
        return self.record_each([(user, item, value)])

    def record_each(self, triples: Iterable[tuple[Any, Any, float | None]]) -> Listing:
        """Record triples of user, item and value: all of them or, where one is wrong, none."""
        return self.write(*self._checked(triples))

    def listed_again(self, triples: Sequence[tuple[Any, Any, float | None]]) -> Listing:
        """Return what `record_each` returned for these triples when they were recorded. Raises
        `QkvError` where a user or an item has left since.
        """
        rows, notes = self._checked(triples)
        for user, item, _ in triples:
            if self.histories.catalog.item_position(item) not in self.histories.of(user).positions:
                raise QkvError(f"user {id_text(user)!r} has no item {id_text(item)!r}")
        return self.listed(rows, notes)

    def _checked(
        self, triples: Iterable[tuple[Any, Any, float | None]]
    ) -> tuple[list[NewRecord], list[str]]:
        checked = [self._row(*triple) for triple in triples]
        notes = dict.fromkeys(note for _, note in checked if note)
        return [row for row, _ in checked], [*notes]

    def _row(self, user: Any, item: Any, value: float | None) -> tuple[NewRecord, str]:
        if not id_text(check_id("user", user)):
            raise QkvError("a user needs an id")
        self.check_value(value)
        catalog = self.histories.catalog
        position, note = catalog.find_item(check_id("item", item))
        (id_,), _ = catalog.names([position])
        rating, weight = (None, value) if self.weighed else (value, None)
        return NewRecord(catalog.user_text(user), id_text(id_), rating, weight), note

    def write(self, rows: Sequence[NewRecord], notes: Sequence[str] = ()) -> Listing:
        """Write interactions that were checked, all or none. Raises `WorkspaceError`."""
        histories = self.histories
        listing = self.listed(rows, notes)  # before the write: nothing can fail after it
        learned = histories.catalog.records.learned
        self.workspace.records.append(rows, histories.models.last_time, learned)
        return listing

    def undo(self) -> Listing:
        """Take back what was recorded last. Raises `QkvError` where nothing is left, or a build has
        learned from it.
        """
        with closing(self.workspace.open()) as current:
            learned = current.catalog.records.learned
        records = self.workspace.records.undo(learned)
        if not records:
            raise QkvError(f"{self.workspace.path}: nothing is recorded here that could be undone")
        return self.listed([NewRecord(*record[1:6]) for record in records])

    @property
    def weighed(self) -> bool:
        """Whether interactions come with weights instead of ratings."""
        return self.has_weights and not self.rated

    @property
    def rated(self) -> bool:
        """Whether interactions come with ratings."""
        return self.histories.models.rating_scale is not None

    @property
    def has_weights(self) -> bool:
        """Whether interactions come with weights, be it beside ratings."""
        return "interactions.weights" in self.histories.models.snapshot

    def as_if_recorded(self, ratings: Mapping[Any, float]) -> tuple[list[Interaction], list[str]]:
        """Return what `record` of these ratings would append to a history, in their order, and
        notes on ambiguous names. Raises `QkvError`, which names the item, for a wrong value.
        """
        is_mapping = isinstance(ratings, Mapping)
        require(is_mapping, "ratings", ratings, "a mapping from items to ratings")
        positions, notes = positions_of(self.histories.catalog, id_list("ratings", ratings.keys()))
        for item, value in ratings.items():
            try:
                self.check_value(value)
            except QkvError as error:
                raise QkvError(f"`ratings`: {id_text(item)!r}: {error}") from None
        weighed, first = self.weighed, NOW - len(ratings)
        return [
            Interaction(position, *((None, time, value) if weighed else (value, time)))
            for time, (position, value) in enumerate(
                zip(positions, ratings.values(), strict=True), first
            )
        ], notes

    def check_value(self, value: float | None) -> None:
        """Raise `QkvError` for a rating outside the log's scale, or where the log has none."""
        if value is None:
            return
        require(is_number(value), "rating", value, "a number")
        scale = self.histories.models.rating_scale
        if scale is not None and not scale[0] <= value <= scale[1]:
            raise QkvError(f"a rating here is from {scale[0]:g} to {scale[1]:g}, not {value:g}")
        if scale is None and not self.weighed:
            raise QkvError("the interactions here have no ratings: leave the rating out")
        if self.weighed and not value:
            raise QkvError("a weight is a number other than 0, negative for a refund: not 0")

    def listed(self, rows: Sequence[NewRecord], notes: Sequence[str] = ()) -> Listing:
        """Return rows with their titles; an item that has left the catalog has none."""
        titled = self.histories.catalog.ids_and_titles({row.item for row in rows})
        cells = []
        for row in rows:
            id_, title = titled.get(row.item, (row.item, None))
            time = None if row.time is None else readable_time(row.time)
            cells.append([row.user, id_, title, row.rating, row.weight, time])
        return _listing(RECORDED_NAMES, cells, notes, always=3)


def record_rows(catalog: StoredCatalog, user: Any, k: int | None, offset: int) -> Listing:
    """List the records of one user or of all, the latest first; `learned` where the log of the
    build contains them. Raises `UnknownIdError`.
    """
    records, total = catalog.records.page(user, k, offset)
    if user is not None and not total and catalog.user_position(user) is None:
        raise catalog.unknown_user(user)
    titled = catalog.ids_and_titles({record.item for record in records})
    rows = [
        {
            **record._asdict(),
            "title": titled.get(record.item, (None, None))[1],
            "time": readable_time(record.time),
            "learned": record.number <= catalog.records.learned,
        }
        for record in records
    ]
    rows = [{name: row[name] for name in LOGGED_NAMES} for row in rows]
    return Listing(rows, total, LOGGED_NAMES, offset)


def history_rows(histories: Histories, user: Any) -> Listing:
    """List all interactions of a user, the latest first. Raises `UnknownIdError`."""
    history, catalog = histories.of(user), histories.catalog
    recorded = {position for position, *_ in catalog.records.of(user)}
    ids, titles = catalog.names(history.positions)
    rows = [
        [
            ids[i],
            titles[i],
            float(history.confidences[i]),
            int(history.positions[i]) in recorded,
            _number(history.ratings[i]),
            None if history.weights is None else _number(history.weights[i]),
            _time(int(history.times[i])),
        ]
        for i in np.argsort(history.times, kind="stable")[::-1].tolist()
    ]
    gone = catalog.records.strays(user)
    note = f"Recorded as well, of items that are not in the catalog: {', '.join(map(repr, gone))}."
    return _listing(HISTORY_NAMES, rows, [note] if gone else (), always=4)


def _listing(
    names: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str], always: int
) -> Listing:
    """Make a listing of the first `always` columns, and of the others that any row has."""
    columns = [
        i for i in range(len(names)) if i < always or any(row[i] is not None for row in rows)
    ]
    named_rows = [{names[i]: row[i] for i in columns} for row in rows]
    return Listing(named_rows, len(named_rows), [names[i] for i in columns], notes=notes)


def readable_time(time: int) -> int | str:
    """Return seconds since 1970 as date and time in UTC, and a rank unchanged.

    >>> readable_time(1_700_000_000), readable_time(7)
    ('2023-11-14 22:13:20', 7)
    """
    if time not in SECONDS_SINCE_1970:
        return time
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _time(time: int) -> int | str | None:
    return None if time == UNKNOWN_TIME else readable_time(time)


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


# --- files ---


def record_file(recording: Recording, source: Source, columns: Columns | None = None) -> Listing:
    """Record the rows of a file or frame, which is read as a build reads a log, all at once. The
    notes say what became of every row. Raises `DataError` where no row can be used.
    """
    from qkvsearch.data.columns import Columns, find_column
    from qkvsearch.data.dataset import load_encoded
    from qkvsearch.data.log import rows_from_table

    models, catalog = recording.histories.models, recording.histories.catalog
    columns = columns or Columns()
    table, report = load_encoded(source, "interactions", columns)
    facts = models.snapshot.facts
    names = list(table.columns)
    chosen = _with_columns_of_build(columns, facts.get("interaction_columns", ()), names)
    chosen = replace(chosen, fold_ids=bool(facts.get("fold_ids")))
    if find_column("rating", chosen.rating, names, report.file) is not None:
        chosen = replace(chosen, rating_scale=models.rating_scale)
    log = rows_from_table(table, chosen, report, catalog.ids("items"))
    rows = _usable_rows(recording, log, report)
    report.note(
        _in_log(recording, rows),
        "{n} have no effect, because the log has the same user and item at that time or later",
    )
    report.conclude(columns.strict)
    return recording.write(rows, [f"{report}.", *report.warning_lines()])


def _with_columns_of_build(columns: Columns, facts: object, names: list[str]) -> Columns:
    """Return the columns with those of the build's log by the same names, where none is chosen."""
    for fact in facts:  # type: ignore[attr-defined]
        role, name = fact["role"], fact["name"]
        if name in names and getattr(columns, role, "") is None:
            columns = replace(columns, **{role: name})
    return columns


def _usable_rows(recording: Recording, log: LogRows, report: ReadReport) -> list[NewRecord]:
    """Return the rows one by one, since a refund takes back what only the build's log has. Raises
    `DataError` where none can be used.
    """
    import pandas as pd

    from qkvsearch.data.ids import id_texts

    ids = recording.histories.catalog.ids("items")
    codes, _ = log.items.numbered(ids, ids.fold)
    ratings = _column("ratings", log, recording.rated, report)
    weights = _column("weights", log, recording.has_weights, report)
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
            [None] * len(codes) if log.times is None else log.times.tolist(),
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
        if history is not None and row.time is not None:
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
