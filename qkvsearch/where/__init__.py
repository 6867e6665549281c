"""Conditions (`where`): SQL expressions that can read the catalog's columns and nothing else."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np

from qkvsearch._utils.deadline import DeadlineError
from qkvsearch._utils.folding import composed
from qkvsearch.errors import DamagedError, QkvError, listed_names
from qkvsearch.tables.catalog_columns import CatalogColumns
from qkvsearch.terminal import shorten
from qkvsearch.where.guarded import TimeLimit, positions
from qkvsearch.where.mismatch import CellsOfColumn
from qkvsearch.where.parameters import SqlParameters, bound

__all__ = ["Where", "cache_key", "matching_in_all"]

# Characters of the expression that an error repeats.
SHOWN = 200
# "price < 80", or ("price < ?", [80]), or ("price < :most", {"most": 80}).
Where: TypeAlias = str | tuple[str] | tuple[str, SqlParameters]


def matching_in_all(
    tables: Sequence[tuple[sqlite3.Connection, str]],
    columns: CatalogColumns,
    where: Where,
    cells: CellsOfColumn,
) -> list[np.ndarray]:
    """Return the positions of the rows of each table for which a condition is true, int64, sorted.

    tables: tables with the same columns, each with a connection that nobody else uses. Columns have
    either of their names, in upper or lower case. cells: a function that yields the nonblank cells
    of a column, for error messages. Raises `QkvError` if the expression is not a condition, for an
    unknown column, types that cannot be compared, and values that do not match the placeholders;
    and if all tables together take too long.
    """
    # The parser takes longer to import than most questions take to answer.
    from qkvsearch.where.tree import (
        differ_in_case,
        numbered,
        read_tree,
        told_apart,
        without_quotes,
    )
    from qkvsearch.where.types import check_types

    expression, parameters = _parts(where)
    limit = TimeLimit()
    try:
        values = bound(parameters)
        plain = numbered(expression)
        tree = read_tree(plain, values)
        used, ends = check_types(tree, values, columns, cells)
        if ends or differ_in_case(used):
            plain, used = told_apart(plain, tree, used, ends)
        return [positions(db, table, used, plain, values, limit) for db, table in tables]
    except (DamagedError, DeadlineError):
        raise
    except QkvError as error:
        reason = str(error)
        words = re.findall(r"\w+", without_quotes(expression))
        if unquoted := columns.unquoted_in(words):
            reason += f"; a column whose name is a word of SQL is written {listed_names(unquoted)}"
        names = listed_names(columns.sql_names)
        raise QkvError(
            f"`where` {shorten(expression, SHOWN)!r}: {reason} (columns: {names})"
        ) from None


def cache_key(where: Where) -> Hashable:
    """Return a key that is equal for conditions with the same matches; None for a condition with
    invalid values.

    >>> cache_key("n > 4") == cache_key(("n > 4",)), cache_key(("n > ?", [{}]))
    (True, None)
    """
    expression, parameters = _parts(where)
    try:
        values = bound(parameters)
    except QkvError:
        return None
    # 1, 1.0 and True are equal, and not the same in a condition.
    typed = ((name, type(value).__name__, value) for name, value in values.items())
    return expression, *typed


def _parts(where: Where) -> tuple[str, SqlParameters]:
    """Return the expression, and the values of its `?` or `:name`, composed as the cells are."""
    if isinstance(where, str):
        return composed(where), ()
    if isinstance(where, tuple) and len(where) in (1, 2) and isinstance(where[0], str):
        return composed(where[0]), where[1] if len(where) == 2 else ()
    raise QkvError(
        "`where` is a text, or a text and its values such as ('price < ?', [80]), not "
        f"{type(where).__name__}"
    )
