"""Interactions recorded by their owner: checked, written, taken back, and shown with the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from qkvsearch._utils.validation import check_id, is_number, require
from qkvsearch.collaborative.user_history import NOW, UNKNOWN_TIME, Interaction
from qkvsearch.data.ids import id_text
from qkvsearch.errors import QkvError
from qkvsearch.index.interaction_log import Histories
from qkvsearch.search.candidates import id_list, positions_of
from qkvsearch.search.listing import Listing
from qkvsearch.storage import StoredCatalog, Workspace
from qkvsearch.storage.records import Recorded

RECORDED_NAMES = ("user", "id", "title", "rating", "weight", "time")
LOGGED_NAMES = (
    "number", "user", "item", "title", "rating", "weight", "time", "batch", "learned"
)  # fmt: skip
HISTORY_NAMES = ("id", "title", "confidence", "recorded", "rating", "weight", "time")
# Numbers between are seconds since 1970, from 1980 to 2286; others may be ranks.
SECONDS = range(315_532_800, 10**10)


@dataclass(frozen=True)
class Recording:
    """What is recorded in a workspace, as its current build sees it."""

    workspace: Workspace
    histories: Histories

    def record(self, user: Any, item: Any, value: float | None) -> Listing:
        """One interaction. Raises `QkvError` where the user, the item or the value cannot be."""
        return self.record_each([(user, item, value)])

    def record_each(self, given: Iterable[tuple[Any, Any, float | None]]) -> Listing:
        """Users, items and values: all of them or, where one cannot be, none."""
        return self.write(*self._checked(given))

    def listed_again(self, given: Sequence[tuple[Any, Any, float | None]]) -> Listing:
        """What `record_each` of these returned, which were recorded before. Raises `QkvError` where
        a user or an item has left since.
        """
        rows, notes = self._checked(given)
        for user, item, _ in given:
            if self.histories.catalog.item_position(item) not in self.histories.of(user).positions:
                raise QkvError(f"user {id_text(user)!r} has no item {id_text(item)!r}")
        return self.listed(rows, notes)

    def _checked(
        self, given: Iterable[tuple[Any, Any, float | None]]
    ) -> tuple[list[Recorded], list[str]]:
        found = [self._row(*one) for one in given]
        notes = dict.fromkeys(note for _, note in found if note)
        return [row for row, _ in found], [*notes]

    def _row(self, user: Any, item: Any, value: float | None) -> tuple[Recorded, str]:
        if not id_text(check_id("user", user)):
            raise QkvError("a user needs an id")
        self.check_value(value)
        catalog = self.histories.catalog
        position, note = catalog.find_item(check_id("item", item))
        (id_,), _ = catalog.names([position])
        rating, weight = (None, value) if self.weighed else (value, None)
        return Recorded(catalog.user_text(user), id_text(id_), rating, weight), note

    def write(self, rows: Sequence[Recorded], notes: Sequence[str] = ()) -> Listing:
        """Interactions that were checked, all or none. Raises `WorkspaceError`."""
        histories = self.histories
        self.workspace.record(rows, histories.models.last_time, histories.catalog.records.learned)
        return self.listed(rows, notes)

    def undo(self) -> Listing:
        """Take back what was recorded last. Raises `QkvError` where nothing is left, or a build has
        learned from it.
        """
        with closing(self.workspace.open()) as current:
            learned = current.catalog.records.learned
        records = self.workspace.undo_record(learned)
        if not records:
            raise QkvError(f"{self.workspace.path}: nothing is recorded here that could be undone")
        return self.listed([Recorded(*record[1:6]) for record in records])

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
        """What `record` of these would add to a history, in their order and after all that is in
        it; and notes on names that can be read in two ways. Raises `QkvError`, which names the
        item, for a value that cannot be.
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
        """Raise `QkvError` for a rating where there are none, or one outside the log's scale."""
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

    def listed(self, rows: Sequence[Recorded], notes: Sequence[str] = ()) -> Listing:
        """What was recorded, with titles; an item that has left the catalog has none."""
        known = self.histories.catalog.ids_and_titles({row.item for row in rows})
        found = []
        for row in rows:
            id_, title = known.get(row.item, (row.item, None))
            time = None if row.time is None else readable_time(row.time)
            found.append([row.user, id_, title, row.rating, row.weight, time])
        return _listing(RECORDED_NAMES, found, notes, always=3)


def record_rows(catalog: StoredCatalog, user: Any, k: int | None, offset: int) -> Listing:
    """What was recorded, the last first, of one user or of all; `learned` where the log of the
    build contains it. Raises `UnknownIdError` for a user who is not there.
    """
    records, total = catalog.records.page(user, k, offset)
    if user is not None and not total and catalog.user_position(user) is None:
        raise catalog.unknown_user(user)
    known = catalog.ids_and_titles({record.item for record in records})
    rows = [
        {
            **record._asdict(),
            "title": known.get(record.item, (None, None))[1],
            "time": readable_time(record.time),
            "learned": record.number <= catalog.records.learned,
        }
        for record in records
    ]
    rows = [{name: row[name] for name in LOGGED_NAMES} for row in rows]
    return Listing(rows, total, LOGGED_NAMES, offset)


def history_rows(histories: Histories, user: Any) -> Listing:
    """All that is known of a user, the latest first. Raises `UnknownIdError`."""
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
    said = f"Recorded as well, of items that are not in the catalog: {', '.join(map(repr, gone))}."
    return _listing(HISTORY_NAMES, rows, [said] if gone else (), always=4)


def _listing(
    names: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str], always: int
) -> Listing:
    """The first `always` columns, and those of the others in which any row has something."""
    kept = [
        place
        for place in range(len(names))
        if place < always or any(row[place] is not None for row in rows)
    ]
    found = [{names[place]: row[place] for place in kept} for row in rows]
    return Listing(found, len(found), [names[place] for place in kept], notes=notes)


def readable_time(time: int) -> int | str:
    """Seconds since 1970 as a date and a time in UTC; a rank as it is.

    >>> readable_time(1_700_000_000), readable_time(7)
    ('2023-11-14 22:13:20', 7)
    """
    if time not in SECONDS:
        return time
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _time(time: int) -> int | str | None:
    return None if time == UNKNOWN_TIME else readable_time(time)


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
