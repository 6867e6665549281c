"""Objects in which a key occurs twice, as JSON or as Python writes them: which of the values is
meant is not known, and a parser keeps the last one.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

from qkvsearch._utils.python_syntax import parsing_python
from qkvsearch.errors import DataError
from qkvsearch.tables.report import ReadReport
from qkvsearch.terminal import shorten

REASON = "with a key that occurs twice"


class RepeatedKey(dict[str, Any]):
    """An object that was written with the key `key` twice."""

    def __init__(self, fields: Any, key: str) -> None:
        super().__init__(fields)
        self.key = key


def object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON: the `object_pairs_hook` of `json`."""
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    counts = Counter(key for key, _ in pairs)
    return RepeatedKey(pairs, next(key for key, n in counts.items() if n > 1))


def python_value(text: str) -> Any:
    """Return a value as Python writes it, such as a list of objects.

    If an object in the text has a key twice, each object of the list is a `RepeatedKey`. Raises
    `ValueError` for a text that is no value.

    >>> python_value("[{'id': 1}]"), python_value("{'id': 1, 'id': 2}").key
    ([{'id': 1}], 'id')
    """
    try:
        with parsing_python:
            tree = ast.parse(text.strip(), mode="eval")
        value = ast.literal_eval(tree)
        key = _repeated_in_python(tree)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(str(error)) from None
    if key is None:
        return value
    if isinstance(value, list | tuple):
        return [RepeatedKey(entry, key) for entry in value if isinstance(entry, dict)]
    return RepeatedKey(value, key) if isinstance(value, dict) else value


def _repeated_in_python(tree: ast.AST) -> str | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            counts = Counter(ast.literal_eval(key) for key in node.keys if key is not None)
            for key, n in counts.items():
                if n > 1:
                    return str(key)
    return None


def repeated_key(value: Any) -> str | None:
    """Return a key that an object in a value, or the value itself, has twice; None for none."""
    nodes: list[Any] = [value]
    while nodes:
        node = nodes.pop()
        if isinstance(node, RepeatedKey):
            return node.key
        if isinstance(node, dict):
            nodes += node.values()
        elif isinstance(node, list | tuple):
            nodes += node
    return None


class RowsOfRepeatedKeys:
    """The rows of a file that are skipped because an object in them has a key twice."""

    def __init__(self, report: ReadReport) -> None:
        self.report = report
        self.first = ""  # the first of the rows, and its key
        self.n_rows = 0

    def add(self, row: int, key: str) -> None:
        """Count a row; the first one is a warning."""
        self.report.skip(REASON, [row])
        self.n_rows += 1
        if not self.first:
            where = f"{self.report.file}, row {self.report.where(row)}"
            self.first = f"{where}: the key {shorten(key)!r} occurs twice"
            self.report.warnings.append(f"{self.first}; such rows are skipped")

    def refuse_if_all(self, has_others: bool) -> None:
        """Raise `DataError` where rows were skipped and there are no others."""
        if self.first and not has_others:
            raise DataError(f"{self.first}, and no other row is left; write each key once")
