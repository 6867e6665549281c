"""Look-ups in a build's tables: items by id or title, users by id, cells, conditions."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from qkvsearch.data.ids import Id, Ids, are_integers, id_text
from qkvsearch.errors import UnknownIdError, suggest
from qkvsearch.workspace.columns import CatalogColumns
from qkvsearch.workspace.records import Records
from qkvsearch.workspace.schema import are_whole, folds_ids, quoted, read_rows, table_columns
from qkvsearch.workspace.titles import MAX_COMPARED, MAX_SHOWN, as_form, near_titles, title_key
from qkvsearch.workspace.where import Where, matching_positions


@dataclass(frozen=True)
class Tables:
    """One build's tables, read only. `uri` opens another connection like `db`. column_facts: what
    the build's manifest says of the catalog's columns.
    """

    db: sqlite3.Connection
    build: int
    uri: str
    column_facts: Sequence[Mapping[str, Any]] = ()

    def close(self) -> None:
        self.db.close()

    @property
    def columns(self) -> list[str]:
        """The catalog's columns as they are stored, id and title first."""
        return [column.stored for column in self.catalog_columns]

    @cached_property
    def catalog_columns(self) -> CatalogColumns:
        """The catalog's columns with their types, and their owner's names for them."""
        stored = table_columns(self.db, f"items_{self.build}")
        del stored["_position"]
        return CatalogColumns.of(list(stored.items()), self.column_facts)

    def names(self, positions: Sequence[int] | np.ndarray) -> tuple[list[Id], list[str]]:
        """Ids and titles of items, in the order of `positions`."""
        rows = self.cells_of(positions, ["id", "title"])
        return [id_ for id_, _ in rows], [str(title) for _, title in rows]

    def known(self, ids: Iterable[str]) -> dict[str, tuple[Id, str]]:
        """By the text of each id that is in the catalog: the id, and the title."""
        rows = self._rows(
            f"SELECT id, title FROM items_{self.build} "
            "WHERE CAST(id AS TEXT) IN (SELECT value FROM json_each(?))",
            json.dumps(list(ids)),
        )
        return {str(id_): (id_, str(title)) for id_, title in rows}

    def ids(self, kind: Literal["items", "users"]) -> Ids:
        """All ids, in the order of their row numbers."""
        rows = self._rows(f"SELECT id FROM {kind}_{self.build} ORDER BY _position")
        return Ids((str(id_) for (id_,) in rows), self._folds)

    def cells(self) -> list[tuple[Any, ...]]:
        """The whole catalog, one tuple an item, in the order of `columns`; None where blank."""
        picked = ", ".join(map(quoted, self.columns))
        return self._rows(f"SELECT {picked} FROM items_{self.build} ORDER BY _position")

    def cells_of(
        self, positions: Sequence[int] | np.ndarray, columns: Sequence[str]
    ) -> list[tuple[Any, ...]]:
        """These columns of items, in the order of `positions`; None where blank."""
        wanted = [int(position) for position in positions]
        picked = ", ".join(["_position", *map(quoted, columns)])
        rows = self._rows(
            f"SELECT {picked} FROM items_{self.build} "
            "WHERE _position IN (SELECT value FROM json_each(?))",
            json.dumps(wanted),
        )
        found = {position: tuple(cells) for position, *cells in rows}
        return [found[position] for position in wanted]

    def row(self, position: int) -> dict[str, Any]:
        """One item by column; None where blank."""
        columns = self.columns
        picked = ", ".join(map(quoted, columns))
        sql = f"SELECT {picked} FROM items_{self.build} WHERE _position = ?"
        return dict(zip(columns, self._rows(sql, int(position))[0], strict=True))

    def mask(self, where: Where, n_items: int) -> np.ndarray:
        """bool (n_items,), True where the condition holds. Raises `QkvError`."""
        keep = np.zeros(n_items, dtype=bool)
        # Its own connection: the authorizer would also stop other threads that use the shared one.
        with closing(sqlite3.connect(self.uri, uri=True)) as db:
            table = f"items_{self.build}"
            keep[matching_positions(db, table, self.catalog_columns, where)] = True
        return keep

    def user_position(self, user: Any) -> int | None:
        """The row number of a user, or None."""
        return self._position("users", user)

    def user_text(self, user: Any) -> str:
        """A user's id as it is spelled here; one that is not here yet as it is given."""
        position = self.user_position(user)
        if position is None:
            return self.records.user_text(user)
        sql = f"SELECT CAST(id AS TEXT) FROM users_{self.build} WHERE _position = ?"
        return str(self._rows(sql, position)[0][0])

    @cached_property
    def records(self) -> Records:
        """What was recorded since builds began, for the items of this one."""
        return Records(self.db, self.build)

    def unknown_user(self, user: Any) -> UnknownIdError:
        """The error for a user who is neither in the build nor recorded since."""
        users = f"SELECT CAST(id AS TEXT) FROM users_{self.build}"
        if self.records.exist:
            users += " UNION SELECT user FROM recorded"
        known = [name for (name,) in self._rows(f"{users} LIMIT {MAX_COMPARED}")]
        nobody = "; nobody's interactions are here yet: record some, or build with `interactions`"
        near = suggest(id_text(user), known) or (f"; such as {known[0]}" if known else nobody)
        return UnknownIdError(f"no user {id_text(user)!r}{near}")

    def item_position(self, item: Any) -> int:
        """The row number of an item, as `item_named` finds it."""
        return self.item_named(item)[0]

    def item_named(self, item: Any) -> tuple[int, str]:
        """The row number of an item by its id, or by its title where only one item has that; and a
        note where a text is the id of one item and the title of another, else "".

        A title may lack its year and its article. `id:300` is read as an id alone, `title:300` as a
        title. Raises `UnknownIdError` with near matches, or with the ids to choose from.
        """
        wanted = id_text(item)
        by_id = self._position("items", item)
        form = ""
        if by_id is None:
            form, wanted = as_form(wanted)
            by_id = self._position("items", wanted) if form == "id" else None
        titled = [] if form == "id" else self._titled(wanted)
        if by_id is not None:
            # A number in Python is no title.
            others = sorted(set(titled) - {by_id}) if isinstance(item, str) else []
            return by_id, self._two_readings(wanted, by_id, others) if others else ""
        if len(titled) == 1:
            return titled[0], ""
        if titled:
            choices = ", ".join(map(self._label, titled))
            raise UnknownIdError(
                f"{wanted!r} is the title of {len(titled)} items; give an id: {choices}"
            )
        near = near_titles(self._rows, self.build, wanted)
        what = f"with the {form} " if form else ""
        raise UnknownIdError(
            f"no item {what}{wanted!r}" + (f"; did you mean {'; '.join(near)}?" if near else "")
        )

    def also_titles(self, rows: Mapping[str, int]) -> list[str]:
        """Those texts, each with the row number of the item that it is the id of (−1: of none),
        that are titles of other items.
        """
        keys = {title_key(text): text for text, row in rows.items() if row >= 0}
        found = self._rows(
            f"SELECT DISTINCT key, position FROM titles_{self.build} "
            "WHERE key IN (SELECT value FROM json_each(?))",
            json.dumps(list(keys)),
        )
        return list({keys[key]: 0 for key, row in found if row != rows[keys[key]]})

    def _titled(self, wanted: str) -> list[int]:
        """Row numbers of the items with this very title, or else with one that is much like it."""
        key = title_key(wanted)
        alike = self._rows(
            f"SELECT position, title FROM titles_{self.build} JOIN items_{self.build} "
            "ON _position = position WHERE key = ?",
            key,
        )
        exact = [position for position, title in alike if title == wanted]
        return exact or [position for position, _ in alike]

    def _two_readings(self, wanted: str, by_id: int, titled: Sequence[int]) -> str:
        others = " and ".join(map(self._label, titled[:MAX_SHOWN]))
        return (
            f"{wanted!r} is the id of {self._label(by_id)} and the title of {others}: read as the "
            f"id; title:{wanted} is the other, and id:{wanted} says so"
        )

    def _position(self, kind: Literal["items", "users"], value: Any) -> int | None:
        """By id. Integer ids are checked first, since SQLite would read 007 and 1e0 as 7 and 1."""
        whole = are_whole(self.db, kind, self.build)
        text = id_text(value, whole)
        if self._folds:
            sql = f"SELECT position FROM folded_{self.build} WHERE kind = ? AND key = ?"
            rows = self._rows(sql, kind, text.casefold())
        elif whole and not are_integers([text]):
            return None
        else:
            rows = self._rows(f"SELECT _position FROM {kind}_{self.build} WHERE id = ?", text)
        return rows[0][0] if rows else None

    @cached_property
    def _folds(self) -> bool:
        return folds_ids(self.db, self.build)

    def _label(self, position: int) -> str:
        """An item by its id, its title and, where there is one, its year."""
        row = self.row(position)
        label = f"{row['id']} = {row['title']}"
        if "year" not in row or re.search(r"\(\d{4}\)", str(row["title"])):
            return label
        return f"{label} ({'' if row['year'] is None else row['year']})"

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return read_rows(self.db, sql, *values)
