"""The catalog's columns as their owner calls them, beside what the tables call them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qkvsearch.errors import QkvError, listed_names, suggest


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class StoredColumn:
    """name: in the owner's file. stored, sql_type: in the table of items. role and type: as in
    `data.columns.facts.ColumnFacts`.
    """

    name: str
    stored: str
    sql_type: str
    role: str
    type: str


class CatalogColumns(Sequence[StoredColumn]):
    """All of them, id and title first; found by either name, upper and lower case being equal.

    >>> columns = CatalogColumns.of([("id", "TEXT"), ("title", "TEXT"), ("Price", "REAL")], [
    ...     {"name": "SKU", "stored": "id", "role": "id", "type": "text"}])
    >>> columns.find("sku").stored, columns.find("price").type
    ('id', 'number')
    """

    def __init__(self, columns: Sequence[StoredColumn]) -> None:
        self._columns = list(columns)
        self._found = {column.stored.casefold(): column for column in reversed(columns)}
        for column in columns:  # what the tables call a column goes before another one's own name
            self._found.setdefault(column.name.casefold(), column)

    @classmethod
    def of(
        cls, stored: Sequence[tuple[str, str]], facts: Sequence[Mapping[str, Any]]
    ) -> CatalogColumns:
        """stored: name and SQL type of each. facts: what the build knows of them; a column that
        they leave out has the type of its cells.
        """
        known = {str(fact.get("stored") or fact["name"]).casefold(): fact for fact in facts}

        def column(name: str, sql_type: str) -> StoredColumn:
            fact = known.get(name.casefold(), {})
            kind = "number" if sql_type in ("INTEGER", "REAL") else "text"
            role = name if name in ("id", "title") else ""
            return StoredColumn(
                name=fact.get("name", name),
                stored=name,
                sql_type=sql_type,
                role=fact.get("role", role),
                # An id is text to its owner, and whole numbers are stored and compared as such.
                type=kind if name == "id" else fact.get("type", kind),
            )

        return cls([column(name, sql_type) for name, sql_type in stored])

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, place: Any) -> Any:
        return self._columns[place]

    def __iter__(self) -> Iterator[StoredColumn]:
        return iter(self._columns)

    @property
    def names(self) -> list[str]:
        """As their owner calls them."""
        return [column.name for column in self]

    @property
    def sql_names(self) -> list[str]:
        """The same as a condition has to spell them: in double quotes where they are no words."""
        return [name if name.isidentifier() else quoted(name) for name in self.names]

    def has(self, name: str) -> bool:
        return name.strip().casefold() in self._found

    def find(self, name: str, parameter: str = "fields") -> StoredColumn:
        """Raises `QkvError`, which names the parameter and the columns, where there is none."""
        found = self._found.get(name.strip().casefold())
        if found is None:
            raise QkvError(
                f"`{parameter}`: no column {name!r}{suggest(name, self.names)} "
                f"(columns: {listed_names(self.names)})"
            )
        return found
