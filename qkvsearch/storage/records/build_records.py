"""The records from the view of one build: with its items, and newer than its log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from qkvsearch.collaborative.user_history import Interaction
from qkvsearch.data.ids import id_text
from qkvsearch.storage.records.database import RecordsDatabase
from qkvsearch.storage.records.record_rows import MOMENT, RECORD, Record, is_user

if TYPE_CHECKING:
    from qkvsearch.storage import StoredCatalog

Row = tuple[str, str, float | None, int, float | None]


class BuildRecords:
    """The records of a workspace with items in the catalog of a build.

    "New" records are those that the build has not learned from.
    """

    def __init__(self, catalog: StoredCatalog, database: RecordsDatabase) -> None:
        self.catalog, self.database = catalog, database

    @property
    def learned(self) -> int:
        """The number of the last record that the build learned from."""
        return int(self.catalog.facts.get("learned_records", 0))

    def unlearned(self) -> tuple[int, int]:
        """Return how many records are new, and the last number used."""
        last = [last for (last,) in self.database.rows("SELECT last FROM totals")]
        return self.count(), max([self.learned, *last])

    def of(self, user: Any) -> list[Interaction]:
        """Return the new interactions of a user, oldest first."""
        return [interaction for _, interaction in self._interactions(self._rows_of(user))]

    def by_user(self) -> dict[str, list[Interaction]]:
        """Return the new interactions of every user, in the order of each user's first record. Ids
        are spelled as in the build, or as recorded first.
        """
        names: dict[str, str] = {}
        interactions: dict[str, list[Interaction]] = {}
        built = self.catalog.ids("users") if self.catalog.fold_ids else None
        for name, interaction in self._interactions(self._rows()):
            row = -1 if built is None else built.find(name)
            spelled = name if built is None or row < 0 else built.texts[row]
            spelled = names.setdefault(self._key(spelled), spelled)
            interactions.setdefault(spelled, []).append(interaction)
        return interactions

    def count(self) -> int:
        """Count the new records, including those with items that are not in the catalog."""
        sql = "SELECT count(*) FROM recorded WHERE number > ?"
        return sum(n for (n,) in self.database.rows(sql, self.learned))

    def n_stray(self) -> int:
        """Count the new records with items that are not in the catalog."""
        rows = self._rows()
        return len(rows) - len(self._interactions(rows))

    @property
    def state(self) -> str:
        """A text that changes with every change: numbers only rise, and undo lowers the count."""
        return "-".join(map(str, (self.database.rows("SELECT n, last FROM totals") or [(0, 0)])[0]))

    def has(self, user: Any) -> bool:
        """Return whether a user has records, even if none of an item in the catalog."""
        return bool(self._first_spelling(user))

    def user_text(self, user: Any) -> str:
        """Return a user's id as it was recorded first; an id without records as it is."""
        return next(iter(self._first_spelling(user)), self._text(user))

    def users_of(self, position: int) -> list[str]:
        """Return the ids of users with new records of the item in this row, each once."""
        (id_,), _ = self.catalog.names([position])
        is_item = "casefold(item) = casefold(?2)" if self.catalog.fold_ids else "item = ?2"
        sql = f"SELECT user FROM recorded WHERE number > ?1 AND {is_item} ORDER BY {MOMENT}, number"
        rows = self.database.rows(sql, self.learned, id_text(id_))
        return list({self._key(name): name for (name,) in reversed(rows)}.values())

    def strays(self, user: Any) -> list[str]:
        """Return the items of a user's new records that are not in the catalog."""
        items = dict.fromkeys(item for _, item, *_ in self._rows_of(user))
        rows = self.catalog.find_items(items)
        return [item for item in items if item not in rows]

    def page(self, user: Any, k: int | None, offset: int) -> tuple[list[Record], int]:
        """Return `k` records, all for None, the latest first, after skipping `offset`; and how many
        there are in all. These are all records, new or not. user: only those of one user.
        """
        where, values = "", []
        if user is not None:
            where, values = f"WHERE {is_user(self.catalog.fold_ids)}", [self._text(user)]
        sql = f"FROM recorded {where}"
        total = sum(n for (n,) in self.database.rows(f"SELECT count(*) {sql}", *values))
        sql = f"SELECT {RECORD} {sql} ORDER BY number DESC LIMIT {-1 if k is None else int(k)} "
        rows = self.database.rows(f"{sql} OFFSET {int(offset)}", *values)
        return [Record(*row) for row in rows], total

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

    def _rows_of(self, user: Any) -> list[Row]:
        return self._rows(f"AND {is_user(self.catalog.fold_ids)}", self._text(user))

    def _rows(self, condition: str = "", *values: Any) -> list[Row]:
        """Return user, item, rating, time and weight of new records, oldest first."""
        sql = f"SELECT user, item, rating, time, weight FROM recorded WHERE number > {self.learned}"
        return self.database.rows(f"{sql} {condition} ORDER BY {MOMENT}, number", *values)

    def _interactions(self, rows: Iterable[Row]) -> list[tuple[str, Interaction]]:
        """Return user and interaction of each row whose item is in the catalog."""
        rows = list(rows)
        positions = self.catalog.find_items({item for _, item, *_ in rows})
        return [
            (user, Interaction(positions[item], rating, time, weight))
            for user, item, rating, time, weight in rows
            if item in positions
        ]
