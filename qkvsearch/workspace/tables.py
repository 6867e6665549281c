"""One build's catalogue and users as tables of the workspace's database: written, looked up."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from qkvsearch.data.ids import Id, Ids, are_integers, id_text
from qkvsearch.errors import UnknownIdError, WorkspaceError, suggest
from qkvsearch.workspace.where import matching_positions

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog

ARTICLES = "The|A|An|Le|La|Les|El|Los|Las|Der|Die|Das|Il|Un|Une"
FIRST_ARTICLE = re.compile(rf"^({ARTICLES})\s+(?=\S)", re.IGNORECASE)
# So many titles are compared with a misspelt one; beyond, only those that share a word with it.
MAX_COMPARED = 20_000
MAX_SHOWN = 3


def write_tables(db: sqlite3.Connection, build: int, catalog: Catalog, users: Ids | None) -> None:
    """Create and fill `items_<build>`, `titles_<build>` and `users_<build>` in an open transaction.

    Integers are stored as such, so that the condition `id < 100` compares numbers.
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
    bare = title.strip()
    if bare.endswith(")"):
        bare = re.sub(r"(?<=\S)(\s*\([^()]*\))+$", "", bare)
    if ", " in bare:
        bare = re.sub(rf"^(.*), ({ARTICLES})$", r"\2 \1", bare, flags=re.IGNORECASE)
    return FIRST_ARTICLE.sub("", bare).casefold()


@dataclass(frozen=True)
class Tables:
    """Look-ups in one build's tables; the connection only reads. `uri` opens another like it."""

    db: sqlite3.Connection
    build: int
    uri: str

    def close(self) -> None:
        self.db.close()

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

    def cells(self) -> list[tuple[Any, ...]]:
        """The whole catalogue, a tuple an item, in the order of `columns`; None where blank."""
        picked = ", ".join(map(_quoted, self.columns))
        return self._rows(f"SELECT {picked} FROM items_{self.build} ORDER BY _position")

    def row(self, position: int) -> dict[str, Any]:
        """One item by column; None where blank."""
        picked = ", ".join(map(_quoted, self.columns))
        sql = f"SELECT {picked} FROM items_{self.build} WHERE _position = ?"
        return dict(zip(self.columns, self._rows(sql, int(position))[0], strict=True))

    def text(self, position: int, columns: Sequence[str]) -> str:
        """What search read of an item: its text columns, one a line."""
        picked = ", ".join(map(_quoted, columns))
        (row,) = self._rows(
            f"SELECT {picked} FROM items_{self.build} WHERE _position = ?", int(position)
        )
        return "\n".join("" if cell is None else str(cell) for cell in row)

    def mask(self, expression: str, n_items: int) -> np.ndarray:
        """bool (n_items,), True where the condition holds. Raises `QkvError`."""
        keep = np.zeros(n_items, dtype=bool)
        # An authorizer watches a whole connection, and other threads may be using the shared one.
        with closing(sqlite3.connect(self.uri, uri=True)) as db:
            table = f"items_{self.build}"
            keep[matching_positions(db, table, self.columns, expression)] = True
        return keep

    def user_position(self, user: Any) -> int | None:
        """The row number of a user, None for one that is not there."""
        return self._position("users", user)

    def recorded(self, user: Any) -> list[tuple[int, float | None, int]]:
        """What was recorded of a user, oldest first: row numbers of items that are still in the
        catalogue, ratings, and when (Unix seconds).
        """
        if not self._has_records:
            return []
        return self._rows(
            f"SELECT _position, rating, time FROM recorded JOIN items_{self.build} ON id = item "
            "WHERE user = ? ORDER BY number",
            id_text(user),
        )

    def recorded_by_user(self) -> dict[str, list[tuple[int, float | None, int]]]:
        """What `recorded` gives for everyone of whom there is any, in the order of their first."""
        found: dict[str, list[tuple[int, float | None, int]]] = {}
        if self._has_records:
            for user, *record in self._rows(
                f"SELECT user, _position, rating, time FROM recorded JOIN items_{self.build} "
                "ON id = item ORDER BY number"
            ):
                found.setdefault(user, []).append(tuple(record))
        return found

    def n_recorded(self) -> int:
        return int(self._rows("SELECT count(*) FROM recorded")[0][0]) if self._has_records else 0

    def unknown_user(self, user: Any) -> UnknownIdError:
        """The error for a user who is neither in the build nor recorded since."""
        users = f"SELECT CAST(id AS TEXT) FROM users_{self.build}"
        if self._has_records:
            users += " UNION SELECT user FROM recorded"
        known = [name for (name,) in self._rows(f"{users} LIMIT {MAX_COMPARED}")]
        near = suggest(id_text(user), known) or (f"; such as {known[0]}" if known else "; no users")
        return UnknownIdError(f"no user {id_text(user)!r}{near}")

    def item_position(self, item: Any) -> int:
        """The row number of an item, by its id or, where only one has it, by its title.

        A title may lack its year and its article. Raises `UnknownIdError` with near matches, or
        with the ids to choose from.
        """
        wanted = id_text(item)
        by_id = self._position("items", item)
        if by_id is not None:
            return by_id
        rows = self._rows(f"SELECT _position FROM items_{self.build} WHERE title = ?", wanted)
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
        near = self._near_titles(wanted)
        raise UnknownIdError(
            f"no item {wanted!r}" + (f"; did you mean {'; '.join(near)}?" if near else "")
        )

    def _position(self, kind: Literal["items", "users"], value: Any) -> int | None:
        """By id. SQLite would take 007 and 1e0 for the numbers 7 and 1, which other ids may be."""
        text = id_text(value)
        table = f"{kind}_{self.build}"
        if self._integer_ids(table) and not are_integers([text]):
            return None
        rows = self._rows(f"SELECT _position FROM {table} WHERE id = ?", text)
        return rows[0][0] if rows else None

    def _integer_ids(self, table: str) -> bool:
        columns = {name: kind for _, name, kind, *_ in self._rows(f"PRAGMA table_info({table})")}
        return columns["id"] == "INTEGER"

    @property
    def _has_records(self) -> bool:
        return bool(self._rows("SELECT 1 FROM sqlite_master WHERE name = 'recorded'"))

    def _label(self, position: int) -> str:
        """An item by its id, its title and, where there is one, its year."""
        (ids, titles), columns = self.names([position]), {*self.columns}
        if "year" not in columns or re.search(r"\(\d{4}\)", titles[0]):
            return f"{ids[0]} = {titles[0]}"
        return f"{ids[0]} = {titles[0]} ({self.text(position, ['year'])})"

    def _near_titles(self, wanted: str) -> list[str]:
        """Titles that contain what was typed, then those that are spelt much like it, and ids."""
        key = title_key(wanted)
        titles = f"SELECT key, title FROM titles_{self.build} JOIN items_{self.build} "
        titles += "ON _position = position"
        words = [f"%{word}%" for word in re.findall(r"\w{3,}", key)[:20]]
        sharing = " OR ".join(["key LIKE ?"] * len(words)) or "0"
        rows = [
            *self._rows(f"{titles} WHERE instr(key, ?) LIMIT {MAX_SHOWN}", key),
            *self._rows(f"{titles} WHERE {sharing} LIMIT {MAX_COMPARED}", *words),
            *self._rows(f"{titles} LIMIT {MAX_COMPARED}"),
        ]
        ids = self._rows(f"SELECT CAST(id AS TEXT) FROM items_{self.build} LIMIT {MAX_COMPARED}")
        named = {name: name for (name,) in ids} | {key: str(title) for key, title in rows}
        close = [named[name] for name in get_close_matches(key, named, n=MAX_SHOWN, cutoff=0.6)]
        containing = [str(title) for found, title in rows[:MAX_SHOWN] if key and key in found]
        return list(dict.fromkeys([*containing, *close]))[:MAX_SHOWN]

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
