"""The records as one build sees them: of its users and items, beyond what is in its log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from qkvsearch.collaborative.user_history import Interaction
from qkvsearch.data.ids import id_text
from qkvsearch.storage.records.changes import is_user
from qkvsearch.storage.records.database import RecordsDatabase
from qkvsearch.storage.records.record_rows import RECORD, Record

if TYPE_CHECKING:
    from qkvsearch.storage import StoredCatalog

Row = tuple[str, str, float | None, int, float | None]


class Records:
    """What was recorded in a workspace, as far as the items are in the catalog of a build."""

    def __init__(self, catalog: StoredCatalog, database: RecordsDatabase) -> None:
        self.catalog, self.database = catalog, database

    @property
    def learned(self) -> int:
        """The number of the last record that the log of the build contains."""
        return int(self.catalog.facts.get("learned_records", 0))

    def unlearned(self) -> tuple[int, int]:
        """How many records the log of the build does not contain, and the last number given."""
        last = [last for (last,) in self.database.rows("SELECT last FROM totals")]
        return self.count(), max([self.learned, *last])

    def of(self, user: Any) -> list[Interaction]:
        """What was recorded of a user since, oldest first."""
        return [interaction for _, interaction in self._interactions(self._rows_of(user))]

    def by_user(self) -> dict[str, list[Interaction]]:
        """`of` for every user with records, in the order of their first; each by the id of the
        build, or as it was recorded first.
        """
        names: dict[str, str] = {}
        found: dict[str, list[Interaction]] = {}
        built = self.catalog.ids("users") if self.catalog.fold_ids else None
        for name, interaction in self._interactions(self._rows()):
            place = -1 if built is None else built.find(name)
            spelled = name if built is None or place < 0 else built.texts[place]
            spelled = names.setdefault(self._key(spelled), spelled)
            found.setdefault(spelled, []).append(interaction)
        return found

    def count(self) -> int:
        """How many there are since, including those of items that are not in the catalog."""
        sql = "SELECT count(*) FROM recorded WHERE number > ?"
        return sum(n for (n,) in self.database.rows(sql, self.learned))

    def n_stray(self) -> int:
        """How many of them are of items that are not in the catalog."""
        rows = self._rows()
        return len(rows) - len(self._interactions(rows))

    @property
    def state(self) -> str:
        """Another text after every change: no number is given twice, to undo lowers the count."""
        return "-".join(map(str, (self.database.rows("SELECT n, last FROM totals") or [(0, 0)])[0]))

    def has(self, user: Any) -> bool:
        """Whether anything was recorded of a user, even of items that are not in the catalog."""
        return bool(self._first_spelling(user))

    def user_text(self, user: Any) -> str:
        """A user's id as it was recorded first, otherwise as it is given."""
        return next(iter(self._first_spelling(user)), self._text(user))

    def user_names(self, most: int) -> list[str]:
        """Ids of users of whom anything was recorded."""
        sql = "SELECT DISTINCT user FROM recorded LIMIT ?"
        return [name for (name,) in self.database.rows(sql, most)]

    def users_of(self, position: int) -> list[str]:
        """Of whom anything was recorded since with the item in this row, each in one spelling."""
        (id_,), _ = self.catalog.names([position])
        is_item = "casefold(item) = casefold(?2)" if self.catalog.fold_ids else "item = ?2"
        sql = f"SELECT user FROM recorded WHERE number > ?1 AND {is_item} ORDER BY time, number"
        rows = self.database.rows(sql, self.learned, id_text(id_))
        return list({self._key(name): name for (name,) in reversed(rows)}.values())

    def strays(self, user: Any) -> list[str]:
        """Ids of the items recorded of a user since that are not in the catalog."""
        items = dict.fromkeys(item for _, item, *_ in self._rows_of(user))
        known = self.catalog.find_items(items)
        return [item for item in items if item not in known]

    def page(self, user: Any, k: int | None, offset: int) -> tuple[list[Record], int]:
        """`k` records, all where it is None, the last ones first, from the one in place `offset`
        on; and how many there are in all, be they in the log of the build or not. user: only theirs
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
        """What is equal for all spellings of one user."""
        text = self._text(user)
        return text.casefold() if self.catalog.fold_ids else text

    def _first_spelling(self, user: Any) -> list[str]:
        sql = f"SELECT user FROM recorded WHERE {is_user(self.catalog.fold_ids)} "
        rows = self.database.rows(f"{sql} ORDER BY number LIMIT 1", self._text(user))
        return [name for (name,) in rows]

    def _rows_of(self, user: Any) -> list[Row]:
        return self._rows(f"AND {is_user(self.catalog.fold_ids)}", self._text(user))

    def _rows(self, condition: str = "", *values: Any) -> list[Row]:
        """User, item, rating, time and weight, oldest first."""
        sql = f"SELECT user, item, rating, time, weight FROM recorded WHERE number > {self.learned}"
        return self.database.rows(f"{sql} {condition} ORDER BY time, number", *values)

    def _interactions(self, rows: Iterable[Row]) -> list[tuple[str, Interaction]]:
        """With the users; without items that are not in the catalog."""
        rows = list(rows)
        positions = self.catalog.find_items({item for _, item, *_ in rows})
        return [
            (user, Interaction(positions[item], rating, time, weight))
            for user, item, rating, time, weight in rows
            if item in positions
        ]
