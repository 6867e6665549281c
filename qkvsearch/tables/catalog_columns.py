"""The columns of a catalog by the names in the owner's file and in the stored table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qkvsearch._utils.folding import composed
from qkvsearch.errors import QkvError, listed_names, suggest
from qkvsearch.tables.date_spans import UNCERTAIN


def quoted(name: str) -> str:
    """Return a column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


# The store's own columns. No other stored column has these names.
OWN_NAMES = ("id", "title")
PREFIX = "column_"
# SQLite reads these as truth values, in quotes too, so that no column of a query can have them.
TRUTH_VALUES = ("true", "false")
# Names that a condition can use for a column in double quotes only.
SQL_WORDS = frozenset(
    "add all alter and as autoincrement between case cast check collate commit constraint create "
    "cross current_date current_time current_timestamp default deferrable delete distinct drop "
    "else escape except exists for foreign from glob group having if in index inner insert "
    "intersect into is isnull join like limit not nothing notnull null on or order outer primary "
    "raise references regexp returning rollback select set table then to transaction union unique "
    "update using values when where with".split()
)


def table_name(stored: str) -> str:
    """Return the name of a stored column in the tables of a segment.

    The owner's names have a prefix there, so that none of them means anything to SQLite or to the
    store: a column may be called `rowid`, `_position` or `key`.

    >>> table_name("id"), table_name("rowid")
    ('id', 'column_rowid')
    """
    return stored if stored in OWN_NAMES else PREFIX + stored


def stored_name(name: str) -> str:
    """Return the stored name of a column by its name in a table."""
    return name.removeprefix(PREFIX)


def sql_name(stored: str) -> str:
    """Return a stored column as it is written in SQL."""
    return quoted(table_name(stored))


# A name as a condition spells it.
QUOTED = re.compile(r'"(?:[^"]|"")+"')


@dataclass(frozen=True)
class StoredColumn:
    """A column of a stored catalog.

    name: in the owner's file. stored, sql_type: in the table of items. role, type, unit: as in
    `tables.column_facts.ColumnFacts`. is_uncertain: it has dates of which only a span is known, as
    `tables.date_spans` describes them. convention: how cells that may be read in two ways were.
    """

    name: str
    stored: str
    sql_type: str
    role: str
    type: str
    is_uncertain: bool = False
    unit: str = ""
    convention: str = ""


class CatalogColumns(list[StoredColumn]):
    """All columns, id and title first, which `find` finds by either name in any case, also in
    double quotes, as a condition spells it.

    The exact name in the owner's file goes first, then the exact stored name, then both in any
    case: an owner's column `title` is never hidden by the column that has the titles. `in_stock`
    finds `in stock` where no column is called so.

    >>> columns = CatalogColumns.of([("id", "TEXT"), ("title", "TEXT"), ("Price", "REAL")], [
    ...     {"name": "SKU", "stored": "id", "role": "id", "type": "text"}])
    >>> columns.find("sku").stored, columns.find("price").type
    ('id', 'number')
    """

    def __init__(self, columns: Sequence[StoredColumn]) -> None:
        super().__init__(columns)
        self._by_stored = {column.stored: column for column in columns}
        # An owner's `title` follows the column of titles, whose name is `title` where the file has
        # none: the later one of equal names is the owner's.
        self._exact = self._by_stored | {column.name: column for column in columns}
        self._folded: dict[str, StoredColumn] = {}
        for column in columns:
            self._folded.setdefault(column.name.casefold(), column)
        for column in columns:
            self._folded.setdefault(column.stored.casefold(), column)
        # A query and a condition can spell a name with spaces without quotation marks.
        for column in columns:
            self._folded.setdefault(underscored(column.name).casefold(), column)

    @classmethod
    def of(
        cls, stored: Sequence[tuple[str, str]], facts: Sequence[Mapping[str, Any]]
    ) -> CatalogColumns:
        """Make columns of stored names and SQL types, and of the facts of the build.

        A column without facts has the type of its cells.
        """
        by_stored = {str(fact.get("stored") or fact["name"]).casefold(): fact for fact in facts}

        def column(name: str, sql_type: str) -> StoredColumn:
            fact = by_stored.get(name.casefold(), {})
            kind = "number" if sql_type in ("INTEGER", "REAL") else "text"
            role = name if name in ("id", "title") else ""
            convention = str(fact.get("convention", ""))
            return StoredColumn(
                name=fact.get("name", name),
                stored=name,
                sql_type=sql_type,
                role=fact.get("role", role),
                # An id is text to its owner, though whole numbers are stored and compared as such.
                type=kind if name == "id" else fact.get("type", kind),
                is_uncertain=fact.get("type") == "date" and convention.startswith(UNCERTAIN),
                unit=fact.get("unit", ""),
                convention=convention,
            )

        return cls([column(name, sql_type) for name, sql_type in stored])

    @property
    def names(self) -> list[str]:
        """A name of each column that `find` finds it by: that in the owner's file if possible."""
        return [self._name_of(column) for column in self]

    def name_of(self, stored: str) -> str:
        """Return the name of a column in the owner's file by its stored name."""
        return self._name_of(self.stored_as(stored))

    @property
    def sql_names(self) -> list[str]:
        """The names as a condition spells them, in double quotes where SQL needs these."""
        return [self.sql_name(column) for column in self]

    def sql_name(self, column: StoredColumn) -> str:
        """Return the name of a column as a condition spells it."""
        name = self._name_of(column)
        return _in_condition(column.stored if name.casefold() in TRUTH_VALUES else name)

    def unquoted_in(self, words: Iterable[str]) -> list[str]:
        """Return the columns among these words that a condition must quote, in their quotes."""
        used = {word.casefold() for word in words} & SQL_WORDS
        return [_in_condition(name) for name in self.names if name.casefold() in used]

    def has(self, name: str) -> bool:
        return self._found(name) is not None

    def stored_as(self, stored: str) -> StoredColumn:
        """Return a column by its stored name."""
        return self._by_stored[stored]

    def find(self, name: str, parameter: str = "fields") -> StoredColumn:
        """Return a column by either name. Raises `QkvError` that lists the columns."""
        column = self._found(name)
        if column is None:
            raise QkvError(
                f"`{parameter}`: no column {name!r}{suggest(name, self.names)} "
                f"(columns: {listed_names(self.names)})"
            )
        return column

    def _found(self, name: str) -> StoredColumn | None:
        name = composed(name.strip())
        found = self._exact.get(name) or self._folded.get(name.casefold())
        if found is None and QUOTED.fullmatch(name):
            return self._found(name[1:-1].replace('""', '"'))
        return found

    def _name_of(self, column: StoredColumn) -> str:
        is_found = self._exact[column.name] is column
        return column.name if is_found else column.stored


def underscored(name: str) -> str:
    """Return a name with underscores for its spaces.

    >>> underscored("in stock")
    'in_stock'
    """
    return "_".join(name.split())


def _in_condition(name: str) -> str:
    is_plain = name.isidentifier() and name.casefold() not in SQL_WORDS
    return name if is_plain else quoted(name)
