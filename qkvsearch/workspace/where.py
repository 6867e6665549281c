"""`where`: a person's SQL expression over the catalog's columns, and nothing but those."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from itertools import accumulate

from qkvsearch.errors import QkvError, suggest

# Functions that depend on their arguments only; none reads files, clocks or memory.
PURE_FUNCTIONS = frozenset(
    "abs coalesce glob ifnull iif instr length like lower ltrim max min nullif replace round rtrim "
    "substr substring trim typeof unicode upper".split()
)
# Texts, quoted names and comments: no parenthesis or keyword inside them counts.
QUOTED = re.compile(r"""(?s)'[^']*'|"[^"]*"|`[^`]*`|\[[^]]*\]|--[^\n]*|/\*.*?(?:\*/|$)""")


def matching_positions(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], expression: str
) -> list[int]:
    """Positions of the rows for which `expression` is true.

    An authorizer lets SQLite compile only what reads `columns` of `table`. Raises `QkvError` with
    SQLite's reason, and the columns where one of them may be misspelt.
    """
    if not _one_condition(expression):
        raise QkvError(_reason(expression, "give one condition, without SELECT", columns))
    # SQLite would silently read an unknown column in double quotes as a text.
    for name in (text[1:-1] for text in QUOTED.findall(expression) if text.startswith('"')):
        if name.casefold() not in {column.casefold() for column in columns}:
            error = f"no such column: {name} (texts stand in single quotes)"
            raise QkvError(_reason(expression, error, columns))
    readable = {*columns, "_position", ""}  # "" where none is read, as in 1 = 1

    def authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
        reads = action == sqlite3.SQLITE_READ and first == table and second in readable
        calls = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in PURE_FUNCTIONS
        allowed = reads or calls or action == sqlite3.SQLITE_SELECT
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    connection.set_authorizer(authorize)
    try:
        rows = connection.execute(
            f'SELECT _position FROM "{table}" WHERE ({expression}\n) ORDER BY _position'
        ).fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        raise QkvError(_reason(expression, str(error), columns)) from None
    finally:
        connection.set_authorizer(None)
    return [position for (position,) in rows]


def _one_condition(expression: str) -> bool:
    """False where a parenthesis would end the condition early, or a query is nested."""
    bare = QUOTED.sub(" ", expression)
    depths = accumulate((char == "(") - (char == ")") for char in bare)
    return min(depths, default=0) >= 0 and not re.search(r"(?i)\b(select|values)\b", bare)


def _reason(expression: str, error: str, columns: Sequence[str]) -> str:
    message = f"`where` {expression!r}: {error}"
    unknown = re.search(r"no such column: (\S+)", error)
    if unknown:
        message += suggest(unknown.group(1), list(columns))
    return f"{message} (columns: {', '.join(columns)})"
