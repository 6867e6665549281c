"""A condition as the tree of its parts. What this parser cannot read is refused, not unchecked."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, count
from typing import Any

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from qkvsearch._utils.interrupts import held_interrupts
from qkvsearch._utils.limits import EXPRESSION, EXPRESSION_DEPTH
from qkvsearch.errors import QkvError
from qkvsearch.tables.catalog_columns import StoredColumn, sql_name, table_name
from qkvsearch.where.functions import SPANS
from qkvsearch.where.guarded import PURE_FUNCTIONS, TOO_DEEP, no_such_function

# Texts, quoted names and comments: no parenthesis, keyword or `?` inside them counts.
QUOTED = re.compile(r"""(?s)'[^']*'|"[^"]*"|`[^`]*`|\[[^]]*\]|--[^\n]*|/\*.*?(?:\*/|$)""")
COMMENT = re.compile(r"(?s)--.*|/\*.*\*/")
OPENING = "'\"`["
# What may stand before a parenthesis. The parser reads `TEXT(…)`, where it may be a type or a
# function, in both ways: twice the time for each level.
CALLED = re.compile(r"(\w+|\")\s*\(")
KEYWORDS = frozenset(
    "and between case cast collate else escape from glob in is like not or then when".split()
)
# Before a condition where the parser reads it.
BEFORE = "SELECT 1 WHERE ("
EXAMPLE = "write one condition, such as price < 80 AND name LIKE '%tent%'"


def read_tree(text: str, parameters: Mapping[str, Any]) -> exp.Expression:
    """Return the tree of a condition with numbered placeholders. Raises `QkvError` if the text is
    not a single condition, is too long or too deep, or if placeholders and values do not match.
    """
    if len(text) > EXPRESSION.value:
        raise QkvError(f"it has {len(text):,} characters, and {EXPRESSION.value:,} are the most")
    _check_parentheses(text)
    try:
        # The parser takes an exception of a handler for one of the text.
        with held_interrupts(), _without_warnings():
            statements = parse(f"{BEFORE}{text}\n)", dialect="sqlite")
    except RecursionError:
        raise QkvError(TOO_DEEP) from None
    except SqlglotError as error:
        raise QkvError(f"it cannot be read{_place(error)}; {EXAMPLE}") from None
    tree = _condition(statements)
    _check_depth(tree)
    _check_placeholders(tree, parameters)
    return tree


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Leave out what the parser logs in this thread, until the end of the block.

    It warns of functions that it would write in another way, and nothing is written here.
    """
    logger, this_thread = logging.getLogger("sqlglot"), threading.get_ident()

    def is_loud(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR or threading.get_ident() != this_thread

    logger.addFilter(is_loud)
    try:
        yield
    finally:
        logger.removeFilter(is_loud)


def differ_in_case(used: Mapping[str, StoredColumn]) -> bool:
    """Return whether two columns of a condition have names that differ only in case."""
    columns: dict[str, StoredColumn] = {}
    return any(columns.setdefault(n.casefold(), column) != column for n, column in used.items())


def told_apart(
    text: str,
    tree: exp.Expression,
    used: Mapping[str, StoredColumn],
    ends: Sequence[tuple[exp.Expression, str]],
) -> tuple[str, dict[str, StoredColumn]]:
    """Return a condition and its columns under the names in the tables, which differ in more than
    case: SQLite would read `Price` and `price` as the same column.

    ends: the identifiers of uncertain dates of which one end is compared, with its function.
    """
    replaced = text
    end_of = {id(identifier): function for identifier, function in ends}
    identifiers = [column.this for column in tree.find_all(exp.Column)]
    # The last first, so that the places of the others remain.
    for identifier in sorted(identifiers, key=lambda node: -int(node.meta["start"])):
        start, end = (int(identifier.meta[key]) - len(BEFORE) for key in ("start", "end"))
        name = sql_name(used[identifier.name].stored)
        if function := end_of.get(id(identifier)):
            name = f"{function}({name}) COLLATE {SPANS}"
        replaced = replaced[:start] + name + replaced[end + 1 :]
    return replaced, {table_name(column.stored): column for column in used.values()}


def numbered(expression: str) -> str:
    """Number each `?`, and remove comments, which this parser nests and SQLite does not.

    >>> numbered("price < ? /* or '?' */ AND name = '?'")
    "price < :_1   AND name = '?'"
    """
    numbers = count(1)

    def replaced(match: re.Match[str]) -> str:
        text = match[0]
        if COMMENT.fullmatch(text):
            return " "
        return f":_{next(numbers)}" if text == "?" else text

    return re.sub(rf"{QUOTED.pattern}|\?", replaced, expression)


def without_quotes(text: str) -> str:
    """Return a condition with empty quotes for texts and quoted names, and without comments."""
    return QUOTED.sub(lambda match: '""' if match[0][0] in OPENING else " ", text)


def _check_parentheses(text: str) -> None:
    """Raise `QkvError` for parentheses that end early, a nested query, or an unknown function."""
    bare = without_quotes(text)
    depths = list(accumulate((char == "(") - (char == ")") for char in bare))
    if max(depths, default=0) > EXPRESSION_DEPTH.value:
        raise QkvError(TOO_DEEP)
    if min(depths, default=0) < 0 or re.search(r"(?i)\b(select|values)\b", bare):
        raise QkvError(f"{EXAMPLE}, without SELECT")
    for word in CALLED.findall(bare):
        if word.lower() not in PURE_FUNCTIONS | KEYWORDS:
            raise QkvError(no_such_function(f"{word}()"))


def _condition(statements: list[Any]) -> exp.Expression:
    """Return what is in the parentheses. Raises `QkvError` if there is anything else."""
    if len(statements) == 1 and isinstance(statements[0], exp.Select):
        given = {name for name, value in statements[0].args.items() if value}
        where: Any = statements[0].args.get("where")
        if given == {"expressions", "where"} and isinstance(where.this, exp.Paren):
            condition: exp.Expression = where.this
            return condition
    raise QkvError(EXAMPLE)


def _check_depth(tree: exp.Expression) -> None:
    """Raise `QkvError` for a tree that is too deep. This must not be recursive."""
    level, depth = [tree], 0
    while level:
        depth += 1
        level = [child for node in level for child in node.iter_expressions()]
    if depth > EXPRESSION_DEPTH.value:
        raise QkvError(TOO_DEEP)


def _check_placeholders(tree: exp.Expression, parameters: Mapping[str, Any]) -> None:
    """Raise `QkvError` for a placeholder without a value, or a value without a placeholder."""
    names = {str(node.this) for node in tree.find_all(exp.Placeholder)}
    if missing := sorted(names - parameters.keys()):
        raise QkvError(
            f"no value for {_places(missing)} ({len(parameters)} given): each has one, as in "
            "('price < ?', [80]) or ('price < :most', {'most': 80})"
        )
    if unused := sorted(parameters.keys() - names):
        raise QkvError(f"there is a value for {_places(unused)}, which it does not have")


def _places(names: list[str]) -> str:
    return ", ".join(
        f"? number {name[1:]}" if name.startswith("_") else f":{name}" for name in names
    )


def _place(error: SqlglotError) -> str:
    """Return where the parser stopped, for a message; empty if it does not say."""
    errors = getattr(error, "errors", None) or [{}]
    word = errors[0].get("highlight")
    return f" at {word!r}" if word and word.strip(") \n") else ""
