"""One build's catalogue and users as tables of the workspace's database: written, looked up."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from qkvsearch.data.ids import Id, Ids, id_text
from qkvsearch.errors import UnknownIdError, WorkspaceError, suggest
from qkvsearch.workspace.where import matching_positions

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog

ARTICLES = "The|A|An|Le|La|Les|El|Los|Las|Der|Die|Das|Il|Un|Une"
# So many titles are compared with a misspelt one; beyond, only those that share a word with it.
MAX_COMPARED = 20_000


def write_tables(db: sqlite3.Connection, build: int, catalog: Catalog, users: Ids | None) -> None:
    """Create and fill `items_<build>`, `titles_<build>` and `users_<build>` in an open transaction.

    Integers are stored as such, so that `--where "id < 100"` compares numbers.
    """
    frame = catalog.frame
    columns = ", ".join(f"{_quoted(name)} {_sql_type(frame[name])}" for name in frame.columns[1:])
    db.execute(
        f"CREATE TABLE items_{build} (_position INTEGER PRIMARY KEY, "
        f"id {_id_type(catalog.ids)} NOT NULL UNIQUE, {columns})"
    )
    cells = [
        frame[name].astype(object).where(frame[name].notna(), None) for name in frame.columns[1:]
    ]
    rows = zip(range(len(catalog)), catalog.ids, *cells, strict=True)
    places = ", ".join("?" * (len(frame.columns) + 1))
    db.executemany(f"INSERT INTO items_{build} VALUES ({places})", rows)

    db.execute(f"CREATE TABLE titles_{build} (key TEXT NOT NULL, position INTEGER NOT NULL)")
    keys = ((title_key(title), position) for position, title in enumerate(frame["title"]))
    db.executemany(f"INSERT INTO titles_{build} VALUES (?, ?)", keys)
    db.execute(f"CREATE INDEX titles_{build}_key ON titles_{build} (key)")

    users = users or Ids([])
    db.execute(
        f"CREATE TABLE users_{build} (_position INTEGER PRIMARY KEY, "
        f"id {_id_type(users)} NOT NULL UNIQUE)"
    )
    db.executemany(f"INSERT INTO users_{build} VALUES (?, ?)", enumerate(users))


def drop_tables(db: sqlite3.Connection, build: int) -> None:
    for name in ("items", "titles", "users"):
        db.execute(f"DROP TABLE IF EXISTS {name}_{build}")


def title_key(title: str) -> str:
    """A title as people remember it: no case, no year or other brackets at its end, the article
    wherever it stands.

    >>> title_key("Matrix, The (1999)") == title_key("the matrix")
    True
    """
    bare = re.sub(r"(?<=\S)(\s*\([^()]*\))+$", "", title.strip())
    bare = re.sub(rf"^(.*), ({ARTICLES})$", r"\2 \1", bare, flags=re.IGNORECASE)
    return re.sub(rf"^({ARTICLES})\s+(?=\S)", "", bare, flags=re.IGNORECASE).casefold()


@dataclass(frozen=True)
class Tables:
    """Look-ups in one build's tables; the connection only reads."""

    db: sqlite3.Connection
    build: int

    @property
    def columns(self) -> list[str]:
        """The catalogue's columns, id and title first."""
        info = self._rows(f"PRAGMA table_info(items_{self.build})")
        return [name for _, name, *_ in info if name != "_position"]

    def names(self, positions: Sequence[int] | np.ndarray) -> tuple[list[Id], list[str]]:
        """Ids and titles of items, in the order of `positions`."""
        wanted = [int(position) for position in positions]
        rows = self._rows(
            f"SELECT _position, id, title FROM items_{self.build} "
            "WHERE _position IN (SELECT value FROM json_each(?))",
            json.dumps(wanted),
        )
        found = {position: (id_, str(title)) for position, id_, title in rows}
        return [found[position][0] for position in wanted], [found[p][1] for p in wanted]

    def ids(self, kind: Literal["items", "users"]) -> Ids:
        """All ids, in the order of their row numbers."""
        rows = self._rows(f"SELECT id FROM {kind}_{self.build} ORDER BY _position")
        return Ids(str(id_) for (id_,) in rows)

    def text(self, position: int, columns: Sequence[str]) -> str:
        """What search read of an item: its text columns, one a line."""
        picked = ", ".join(map(_quoted, columns))
        (row,) = self._rows(
            f"SELECT {picked} FROM items_{self.build} WHERE _position = ?", int(position)
        )
        return "\n".join("" if cell is None else str(cell) for cell in row)

    def mask(self, expression: str, n_items: int) -> np.ndarray:
        """bool (n_items,), True where `--where` holds. Raises `QkvError`."""
        keep = np.zeros(n_items, dtype=bool)
        keep[matching_positions(self.db, f"items_{self.build}", self.columns, expression)] = True
        return keep

    def user_position(self, user: Any) -> int | None:
        """The row number of a user, None for one that is not there."""
        rows = self._rows(f"SELECT _position FROM users_{self.build} WHERE id = ?", id_text(user))
        return rows[0][0] if rows else None

    def recorded(self, user: Any) -> list[tuple[int, float | None]]:
        """What was recorded of a user, oldest first: row numbers of items that are still in the
        catalogue, and ratings.
        """
        return self._rows(
            f"SELECT _position, rating FROM recorded JOIN items_{self.build} ON id = item "
            "WHERE user = ? ORDER BY number",
            id_text(user),
        )

    def n_recorded(self) -> int:
        return int(self._rows("SELECT count(*) FROM recorded")[0][0])

    def unknown_user(self, user: Any) -> UnknownIdError:
        """The error for a user who is neither in the build nor recorded since."""
        users = f"SELECT CAST(id AS TEXT) FROM users_{self.build} UNION SELECT user FROM recorded"
        known = [name for (name,) in self._rows(users)]
        first = f"; {len(known):,} users, the first is {known[0]}" if known else "; no users"
        near = suggest(id_text(user), known) or first
        return UnknownIdError(f"no user {id_text(user)!r}{near}")

    def item_position(self, item: Any) -> int:
        """The row number of an item, by its id or, where only one has it, by its title.

        A title may lack its year and its article. Raises `UnknownIdError` with near matches, or
        with the ids to choose from.
        """
        wanted = id_text(item)
        for condition, value in (("id", wanted), ("title", wanted)):
            rows = self._rows(
                f"SELECT _position FROM items_{self.build} WHERE {condition} = ?", value
            )
            if len(rows) == 1:
                return int(rows[0][0])
        rows = rows or self._rows(
            f"SELECT position FROM titles_{self.build} WHERE key = ?", title_key(wanted)
        )
        if len(rows) == 1:
            return int(rows[0][0])
        if rows:
            choices = ", ".join(self._label(position) for (position,) in rows)
            raise UnknownIdError(
                f"{wanted!r} is the title of {len(rows)} items; give an id: {choices}"
            )
        raise UnknownIdError(f"no item {wanted!r}{suggest(wanted, self._similar_titles(wanted))}")

    def _label(self, position: int) -> str:
        """An item by its id, its title and, where there is one, its year."""
        (ids, titles), columns = self.names([position]), {*self.columns}
        if "year" not in columns or re.search(r"\(\d{4}\)", titles[0]):
            return f"{ids[0]} = {titles[0]}"
        return f"{ids[0]} = {titles[0]} ({self.text(position, ['year'])})"

    def _similar_titles(self, wanted: str) -> list[str]:
        words = [f"%{word}%" for word in re.findall(r"\w{3,}", wanted)[:20]] or [f"%{wanted}%"]
        condition = " OR ".join(["title LIKE ?"] * len(words))
        sharing = self._rows(
            f"SELECT title FROM items_{self.build} WHERE {condition} LIMIT {MAX_COMPARED}", *words
        )
        first = self._rows(f"SELECT title FROM items_{self.build} LIMIT {MAX_COMPARED}")
        return [str(title) for (title,) in [*sharing, *first]]

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            return self.db.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise WorkspaceError(f"workspace.db: {error}; build the workspace again") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _id_type(ids: Ids) -> str:
    return "INTEGER" if ids.integer else "TEXT"


def _sql_type(column: Any) -> str:
    kind = column.dtype.kind
    return "INTEGER" if kind == "i" else "REAL" if kind == "f" else "TEXT"
