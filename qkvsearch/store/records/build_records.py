"""The records from the view of one build: with its items, and newer than its log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from qkvsearch._utils.caching import cached_property
from qkvsearch.models.user_history import PastInteraction
from qkvsearch.store.catalog.stored import StoredCatalog
from qkvsearch.store.records.committed import SqlQuery
from qkvsearch.store.records.database import RecordsDatabase
from qkvsearch.store.records.record_rows import MOMENT, RECORD, Record, is_item, is_user
from qkvsearch.tables.ids import id_text

StoredRow = tuple[str, str, float | None, int, float | None]
NEW_ROW = "user, item, rating, time, weight"
# The greatest number that a record can have.
NO_LIMIT = 2**63 - 1


class UserRecords(NamedTuple):
    """What is recorded of one user. name: the id as it was recorded first, learned or not, and
    whatever became of the item; None where nothing is recorded. interactions: the new ones with
    items in the catalog, oldest first. strays: the items of new ones that are not in the catalog.
    """

    name: str | None
    interactions: list[PastInteraction]
    strays: list[str]


class BuildRecords:
    """The records of a workspace with items in the catalog of a build.

    "New" records are those that the build has not learned from. Each call reads the records as they
    are then. An answer that reads more than once takes a `view`.
    """

    def __init__(self, catalog: StoredCatalog, database: RecordsDatabase) -> None:
        self.catalog, self.database = catalog, database

    def view(self) -> RecordsView:
        """Return the records of one moment, for one answer."""
        return RecordsView(self.catalog, self.database)

    @property
    def learned(self) -> int:
        """The number of the last record that the build learned from."""
        return int(self.catalog.facts.get("learned_records", 0))

    def user(self, user: Any) -> UserRecords:
        """Return what is recorded of a user."""
        sql = f"SELECT number, {NEW_ROW} FROM recorded WHERE {is_user(self.catalog.fold_ids)} "
        sql += f"AND number <= {self._last} ORDER BY {MOMENT}, number"
        (rows,) = self._read((sql, [self._text(user)]))
        name = min(rows)[1] if rows else None
        return self._of_one(name, [cells for number, *cells in rows if number > self.learned])

    def _of_one(self, name: str | None, rows: Sequence[Sequence[Any]]) -> UserRecords:
        """Return what is recorded of a user. rows: as `_new_rows` returns them."""
        interactions = [interaction for _, interaction in self._interactions(rows)]
        items = dict.fromkeys(item for _, item, *_ in rows)
        known = self.catalog.find_items(items)
        return UserRecords(name, interactions, [item for item in items if item not in known])

    def by_user(self) -> dict[str, list[PastInteraction]]:
        """Return the new interactions of every user, in the order of each user's first record. Ids
        are spelled as in the build, or as recorded first.
        """
        names: dict[str, str] = {}
        interactions: dict[str, list[PastInteraction]] = {}
        built = self.catalog.ids("users") if self.catalog.fold_ids else None
        for name, interaction in self._interactions(self._new_rows()):
            row = -1 if built is None else built.find(name)
            spelled = name if built is None or row < 0 else built.texts[row]
            spelled = names.setdefault(self._key(spelled), spelled)
            interactions.setdefault(spelled, []).append(interaction)
        return interactions

    def of_items(self, positions: Sequence[int]) -> list[list[StoredRow]]:
        """Return user, item, rating, time and weight of the new records of each of the items in
        these rows, oldest first. All are read at one moment.
        """
        ids, _ = self.catalog.names(positions)
        sql = f"SELECT {NEW_ROW} FROM recorded WHERE {is_item(self.catalog.fold_ids)} "
        sql += f"AND number > {self.learned} AND number <= {self._last} ORDER BY {MOMENT}, number"
        return self._read(*((sql, [id_text(id_)]) for id_ in ids))

    def by_user_of(
        self, position: int, rows: Iterable[StoredRow]
    ) -> dict[str, list[PastInteraction]]:
        """Return the interactions with the item in this row by user, of whose id all spellings are
        the same text here. rows: as `of_items` returns them.
        """
        interactions: dict[str, list[PastInteraction]] = {}
        for user, _, rating, time, weight in rows:
            interaction = PastInteraction(position, rating, time, weight)
            interactions.setdefault(self._key(user), []).append(interaction)
        return interactions

    def count(self) -> int:
        """Count the new records, including those with items that are not in the catalog."""
        sql = f"SELECT count(*) FROM recorded WHERE number > {self.learned} "
        (rows,) = self._read((f"{sql} AND number <= {self._last}", []))
        return sum(n for (n,) in rows)

    def has(self, user: Any) -> bool:
        """Return whether a user has records, even if none of an item in the catalog."""
        return bool(self._first_spelling(user))

    def user_text(self, user: Any) -> str:
        """Return a user's id as the build spells it, or as it was recorded first; a new id as it
        is.
        """
        position = self.catalog.users.position(user)
        if position is not None:
            return self.catalog.users.text(position)
        return next(iter(self._first_spelling(user)), self._text(user))

    def page(self, user: Any, k: int | None, offset: int) -> tuple[list[Record], int]:
        """Return `k` records, all for None, the latest first, after skipping `offset`; and how many
        there are in all. These are all records, new or not. user: only those of one user.
        """
        where, values = "", []
        if user is not None:
            where, values = f"WHERE {is_user(self.catalog.fold_ids)}", [self._text(user)]
        counting = f"SELECT count(*) FROM recorded {where}"
        limit = -1 if k is None else int(k)
        listing = f"SELECT {RECORD} FROM recorded {where} ORDER BY number DESC "
        listing += f"LIMIT {limit} OFFSET {int(offset)}"
        counts, rows = self._read((counting, values), (listing, values))
        return [Record(*row) for row in rows], sum(n for (n,) in counts)

    @property
    def _last(self) -> int:
        """The number of the last record that counts."""
        return NO_LIMIT

    def _read(self, *queries: SqlQuery) -> list[list[tuple[Any, ...]]]:
        """Return the rows of queries, all of one moment."""
        return self.database.rows_of_all(queries)

    def _text(self, user: Any) -> str:
        return id_text(user, whole=self.catalog.are_whole("users"))

    def _key(self, user: Any) -> str:
        """Return a text that is the same for all spellings of a user's id."""
        text = self._text(user)
        return text.casefold() if self.catalog.fold_ids else text

    def _first_spelling(self, user: Any) -> list[str]:
        sql = f"SELECT user FROM recorded WHERE {is_user(self.catalog.fold_ids)} "
        rows = self.database.rows(f"{sql} ORDER BY number LIMIT 1", self._text(user))
        return [name for (name,) in rows]

    def _new_rows(self) -> list[StoredRow]:
        """Return user, item, rating, time and weight of all new records, oldest first."""
        sql = f"SELECT {NEW_ROW} FROM recorded WHERE number > {self.learned} "
        sql += f"AND number <= {self._last} ORDER BY {MOMENT}, number"
        (rows,) = self._read((sql, []))
        return rows

    def _interactions(self, rows: Iterable[Sequence[Any]]) -> list[tuple[str, PastInteraction]]:
        """Return user and interaction of each row whose item is in the catalog."""
        rows = list(rows)
        positions = self.catalog.find_items({item for _, item, *_ in rows})
        return [
            (user, PastInteraction(positions[item], rating, time, weight))
            for user, item, rating, time, weight in rows
            if item in positions
        ]


class RecordsView(BuildRecords):
    """The records of one moment, that of the first reading, for all parts of one answer.

    What is recorded later does not exist here. What was read stays, even if it is undone meanwhile.
    """

    def __init__(self, catalog: StoredCatalog, database: RecordsDatabase) -> None:
        super().__init__(catalog, database)
        self._until: int | None = None
        self._users: dict[str, UserRecords] = {}

    def fix_moment(self) -> None:
        """Let nothing count that is recorded from now on, unless something was read before."""
        self._read()

    def user(self, user: Any) -> UserRecords:
        key = self._key(user)
        if key not in self._users:
            self._users[key] = self._read_before(key) or super().user(user)
        return self._users[key]

    def _read_before(self, key: str) -> UserRecords | None:
        """Return what is known of a user where all new records are read already, None otherwise.
        What was undone since then is still there.
        """
        rows = self._rows_of_all_users.get(key) if self._has_all else None
        return None if rows is None else self._of_one(rows[0][0], rows)

    def unlearned(self) -> tuple[int, int, int]:
        """Return how many records are new, how many of these have items that are not in the
        catalog, and the last number used.
        """
        rows = self._new_rows()
        n_stray = len(rows) - len(self._interactions(rows))
        return len(rows), n_stray, max(self.learned, self._last)

    def _new_rows(self) -> list[StoredRow]:
        return self._all_new_rows

    @cached_property
    def _all_new_rows(self) -> list[StoredRow]:
        return super()._new_rows()

    @property
    def _has_all(self) -> bool:
        return "_all_new_rows" in self.__dict__

    @cached_property
    def _rows_of_all_users(self) -> dict[str, list[StoredRow]]:
        rows_of_users: dict[str, list[StoredRow]] = {}
        for row in self._all_new_rows:
            rows_of_users.setdefault(self._key(row[0]), []).append(row)
        return rows_of_users

    @property
    def _last(self) -> int:
        return NO_LIMIT if self._until is None else self._until

    def _read(self, *queries: SqlQuery) -> list[list[tuple[Any, ...]]]:
        last, *found = self.database.rows_of_all([("SELECT last FROM totals", []), *queries])
        if self._until is None:
            self._until = sum(number for (number,) in last)
        return found
