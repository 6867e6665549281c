"""Run conditions in SQLite: on a guarded connection, within limits of time, length and depth."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from qkvsearch._utils.deadline import check_deadline, is_past_deadline
from qkvsearch._utils.interrupts import held_interrupts
from qkvsearch._utils.limits import EXPRESSION_DEPTH, EXPRESSION_SECONDS, EXPRESSION_TEXT
from qkvsearch.errors import DamagedError, QkvError, duration
from qkvsearch.tables.catalog_columns import StoredColumn, quoted, sql_name, stored_name, table_name
from qkvsearch.tables.column_types import type_named
from qkvsearch.where.functions import COLLATIONS, DATES, EARLIEST, FUNCTIONS, LATEST, SPANS
from qkvsearch.where.parameters import for_sqlite

# Functions that depend on their arguments only; none reads files, clocks or memory.
PURE_FUNCTIONS = frozenset(
    "abs coalesce glob has ifnull iif instr length like lower ltrim max min nullif replace round "
    "rtrim substr substring trim typeof unicode upper".split()
)
TOO_DEEP = (
    f"more than {EXPRESSION_DEPTH.value} parts in one another, or in one chain: write "
    "id IN (1, 2, 3) for many values, or ask several times"
)
# Each step of SQLite's machine ends soon enough for the clock to be looked at: no text is longer
# than a million bytes, and no pattern than 250.
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: EXPRESSION_TEXT.value,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 250,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: EXPRESSION_DEPTH.value,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 250_000,
}
STEPS_BETWEEN_LOOKS = 20
# How positions are read, so many rows at a time that their text stays within the limit.
JOINED, ROWS = "group_concat", 1 << 16
# SQLite's errors for a damaged file.
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR)


def no_such_function(call: str) -> QkvError:
    names = ", ".join(sorted(PURE_FUNCTIONS))
    return QkvError(f"{call}: there is no such function here (there are {names})")


def numbers_in(text: str | None) -> np.ndarray:
    """Return the whole numbers that SQLite's group_concat joined, as int64; none for None.

    >>> numbers_in("3,1"), numbers_in(None)
    (array([3, 1]), array([], dtype=int64))
    """
    return np.fromstring(text or "", dtype=np.int64, sep=",")


class TimeLimit:
    """The seconds of a condition from now, or until the thread's deadline if that is earlier.

    Ctrl-C ends it too. SQLite discards what a handler of signals raises in one of our callbacks,
    and says "interrupted" instead.
    """

    def __init__(self) -> None:
        self.seconds = EXPRESSION_SECONDS.value
        self._end = self._next_look = time.monotonic() + self.seconds
        self._deliver: Callable[[], None] | None = None
        # What Ctrl-C raised in `is_over`.
        self.interrupt: BaseException | None = None

    def is_over(self) -> bool:
        """Return whether SQLite must stop. It asks after every few steps, so this is fast."""
        return (time.monotonic() > self._next_look and self._must_stop()) or is_past_deadline()

    @contextmanager
    def with_interrupts(self) -> Iterator[None]:
        """Let Ctrl-C stop the queries of a block, which then raises what the handler raises."""
        with held_interrupts(self._look_now) as self._deliver:
            yield

    def _look_now(self) -> None:
        self._next_look = -math.inf

    def _must_stop(self) -> bool:
        self._next_look = self._end
        try:
            if self._deliver is not None:
                self._deliver()
        except BaseException as error:
            self.interrupt = error
            return True
        return time.monotonic() > self._end


def positions(
    connection: sqlite3.Connection,
    table: str,
    columns: Mapping[str, StoredColumn],
    expression: str,
    parameters: Mapping[str, Any],
    limit: TimeLimit,
) -> np.ndarray:
    """Return the positions of the rows of `table` for which the expression is true, int64, sorted.

    columns: the columns by their names in the expression; it can read no others. An authorizer lets
    SQLite compile only reads of these and calls of pure functions. An item with variants matches if
    any of them does. Raises `QkvError` with SQLite's
    reason, or `DamagedError` for a damaged file. The limits of the connection remain afterwards.
    """
    info = connection.execute("PRAGMA table_info(variants)")
    stored_in_variants = {stored_name(name) for _, name, *_ in info}
    has_spans = any(column.is_uncertain for column in columns.values())
    varying = stored_in_variants & {column.stored for column in columns.values()}
    named = "".join(
        f", {_value(column, column.stored in varying, has_spans)} AS {quoted(name)}"
        for name, column in columns.items()
    )
    source = f"{quoted(table)} LEFT JOIN variants USING (_position)" if varying else quoted(table)
    own = _position_name(columns)
    # An item is listed once, though several of its variants match.
    position = f"DISTINCT {own}" if varying else own
    values = {name: for_sqlite(value) for name, value in parameters.items()}
    readable = {table_name(column.stored) for column in columns.values()}
    raised: list[Exception] = []
    matches: list[np.ndarray] = []
    try:
        last = connection.execute(f"SELECT max(_position) FROM {quoted(table)}").fetchone()[0] or 0
        with limit.with_interrupts(), _guarded(connection, table, readable, limit, raised):
            for first in range(0, last + 1, ROWS):
                rows = f"SELECT _position AS {own}{named} FROM {source} "
                rows += f"WHERE _position BETWEEN {first} AND {first + ROWS - 1}"
                # One text for all of them: a row each would take twice as long.
                sql = f"SELECT {JOINED}({position}) FROM ({rows}) WHERE ({expression}\n)"
                matches.append(numbers_in(connection.execute(sql, values).fetchone()[0]))
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        if limit.interrupt is not None:
            raise limit.interrupt from None
        if raised:
            raise raised[0] from None
        check_deadline()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE:
            raise DamagedError(_file(connection), str(error)) from None
        raise QkvError(_reason(str(error), limit.seconds)) from None
    return np.sort(np.concatenate(matches))


def _position_name(columns: Mapping[str, StoredColumn]) -> str:
    """Return a name for the position of a row that no column of the expression has."""
    taken = {name.casefold() for name in columns}
    name = "_position"
    while name in taken:
        name = "_" + name
    return name


def _value(column: StoredColumn, varies: bool, has_spans: bool) -> str:
    """Return a column in SQL. has_spans: the condition reads a column of uncertain dates."""
    name = sql_name(column.stored)
    if varies:
        name = f"coalesce(variants.{name}, items.{name})"
    if type_named(column.type).equals_beginnings:
        return f"{name} COLLATE {SPANS if has_spans else DATES}"
    return name


@contextmanager
def _guarded(
    connection: sqlite3.Connection,
    table: str,
    readable: set[str],
    limit: TimeLimit,
    raised: list[Exception],
) -> Iterator[None]:
    """Install our functions, an authorizer and a time limit, until the end of the block."""
    allowed = {*readable, "_position", ""}  # "" where none is read, as in 1 = 1

    def authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
        is_here = first in (table, "variants")
        reads = action == sqlite3.SQLITE_READ and is_here and second in allowed
        functions = (*PURE_FUNCTIONS, JOINED, EARLIEST, LATEST)
        calls = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in functions
        is_allowed = reads or calls or action == sqlite3.SQLITE_SELECT
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function to store its error, which SQLite discards."""

        def call(*values: Any) -> Any:
            try:
                return function(*values)
            except (QkvError, MemoryError) as error:
                raised.append(error)
                raise

        return call

    for name, n_arguments, function in FUNCTIONS:
        connection.create_function(name, n_arguments, noting(function), deterministic=True)
    for name, order in COLLATIONS.items():
        connection.create_collation(name, order)
    for category, limit_value in LIMITS.items():
        connection.setlimit(category, limit_value)
    connection.set_authorizer(authorize)
    connection.set_progress_handler(limit.is_over, STEPS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)
        connection.set_authorizer(None)


def _file(connection: sqlite3.Connection) -> str:
    """Return the path of the connected database."""
    return str(connection.execute("PRAGMA database_list").fetchone()[2])


def _reason(error: str, seconds: float) -> str:
    if error == "interrupted":
        how = f"{EXPRESSION_SECONDS.raised_by}=N in the environment"
        return f"stopped after {duration(seconds)}: make it simpler, or allow more ({how})"
    if error == "parser stack overflow":
        return TOO_DEEP
    if error == "string or blob too big":
        max_bytes = f"{EXPRESSION_TEXT.value:,}"
        return f"a text in it has more than {max_bytes} bytes, which no condition may read or make"
    return error
