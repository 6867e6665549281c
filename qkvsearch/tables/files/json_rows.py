"""JSON to frames, batch by batch: an object a line, or an array of objects.

A row in which an object has a key twice is skipped and counted: which of the values is meant is not
known.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from qkvsearch._utils.limits import CELL_BYTES, JSON_DEPTH, check_unpacked
from qkvsearch.errors import DataError
from qkvsearch.tables.files.file_format import TextFormat, TextOptions
from qkvsearch.tables.files.frames import Piece, batched, check_names, distinct, text_of_rows
from qkvsearch.tables.files.repeated_keys import SkippedRows, object_of_pairs, repeated_key
from qkvsearch.tables.files.unpacking import TableFile
from qkvsearch.tables.report import ReadReport

SUFFIXES = (".jsonl", ".ndjson", ".json")
# About the bytes that a list or an object takes in memory, and a value behind a comma.
NESTED_BYTES, VALUE_BYTES = 64, 32


class _NotJson(DataError):
    """A text that is not JSON."""


def looks_like_json(text: io.TextIOBase) -> bool:
    """Return whether the first line is an object with a key, or begins an array of objects."""
    start = next((line for line in text if line.strip()), "").strip()
    text.seek(0)
    return bool(re.match(r'\[\s*($|\{)|\{\s*".*\}$', start, re.DOTALL))


def read_json_rows(file: TableFile, text: io.TextIOBase) -> Iterator[Piece]:
    """Read at least one piece. Raises `DataError` that names the line."""
    report = ReadReport(file.name)
    skipped = SkippedRows(report)
    keys: dict[str, None] = {}

    def sized() -> Iterator[tuple[int, dict[str, Any], int]]:
        rows = _json_rows(file, text, report)
        for number, row, size in _without_repeated(rows, skipped):
            keys.update(dict.fromkeys(row))
            yield number, row, size + CELL_BYTES * len(keys)

    for numbers, rows in batched(sized()):
        names = distinct(keys)
        check_names(names, file.label)
        cells = [[row.get(key) for key in keys] for row in rows]
        report.read += len(rows)
        yield text_of_rows(cells, numbers, names, report), report
    skipped.refuse_if_all(has_others=bool(keys))


def _without_repeated(
    rows: Iterator[tuple[int, dict[str, Any], int]], skipped: SkippedRows
) -> Iterator[tuple[int, dict[str, Any], int]]:
    """Yield the rows without a repeated key; count the others."""
    for number, row, size in rows:
        key = repeated_key(row)
        if key is None:
            yield number, row, size
        else:
            skipped.report.read += 1
            skipped.add(number, key)


def _json_rows(
    file: TableFile, text: io.TextIOBase, report: ReadReport
) -> Iterator[tuple[int, dict[str, Any], int]]:
    """Yield each object with its line number, or its place in the array, and its size in bytes."""
    is_array = next((line for line in text if line.strip()), "").lstrip().startswith("[")
    text.seek(0)
    if not is_array:
        for number, line in enumerate(text, 1):
            if line.strip():
                try:
                    row, size = _parsed(file, number, line)
                except _NotJson:
                    if number == 1 or line.endswith(("\r", "\n")):
                        raise
                    report.read += 1
                    report.skip("that is cut off", [number])
                    return
                yield number, _checked(file.label, number, f"line {number}", row), size
        return
    rows, size = _parsed(file, 1, text.read())
    for number, row in enumerate(rows, 1):
        yield number, _checked(file.label, 1, f"entry {number}", row), size // len(rows)


def _parsed(file: TableFile, number: int, text: str) -> tuple[Any, int]:
    """Return what a text says, and about how many bytes that takes."""
    size = len(text) + NESTED_BYTES * (text.count("[") + text.count("{"))
    size += VALUE_BYTES * text.count(",")
    check_unpacked(size, file.size, file.label)
    try:
        return json.loads(text, object_pairs_hook=object_of_pairs), size
    except RecursionError:
        JSON_DEPTH.check(sys.maxsize, f"{file.label}, line {number}")
        raise
    except ValueError as error:
        raise _NotJson(f"{file.label}, line {number}: not JSON: {error}") from None


def _checked(label: str, number: int, where: str, row: Any) -> dict[str, Any]:
    JSON_DEPTH.check(_depth(row), f"{label}, line {number}")
    if not isinstance(row, dict):
        raise DataError(f'{label}, {where}: expected objects like {{"id": 7}}')
    return row


def _depth(value: Any) -> int:
    """Return how deep objects and arrays are nested, without recursion.

    >>> _depth({"id": 7, "tags": [["a"], []]}), _depth(7)
    (3, 0)
    """
    level, depth = [value], 0
    while level := [node for node in level if isinstance(node, dict | list)]:
        depth += 1
        level = [
            child for node in level for child in (node.values() if isinstance(node, dict) else node)
        ]
    return depth


def _is_json(file: TableFile, text: io.TextIOBase, options: TextOptions) -> bool:
    is_delimited = options.delimiter is not None or options.names is not None
    return file.suffix in SUFFIXES or (not is_delimited and looks_like_json(text))


JSON = TextFormat(
    name="JSON Lines",
    recognized_by="`.jsonl`, `.ndjson`, `.json`, or its first bytes",
    notes="one object per line, or one array of objects; lists become `a|b`",
    fits=_is_json,
    read=lambda file, text, options: read_json_rows(file, text),
)
