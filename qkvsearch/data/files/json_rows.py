"""JSON to frames, piece by piece: an object a line, or an array of objects."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from qkvsearch._utils.limits import CELL_BYTES, JSON_DEPTH, check_unpacked
from qkvsearch.data.files.frames import Piece, batched, check_names, distinct, text_of_rows
from qkvsearch.data.files.unpacking import Place
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

# About the bytes of a list or an object in memory, and of what stands behind a comma.
NESTED_BYTES, VALUE_BYTES = 64, 32


def looks_like_json(text: io.TextIOBase) -> bool:
    """Return whether the first line is an object with a key, or begins an array of objects."""
    start = next((line for line in text if line.strip()), "").strip()
    text.seek(0)
    return bool(re.match(r'\[\s*($|\{)|\{\s*".*\}$', start, re.DOTALL))


def read_json_rows(place: Place, text: io.TextIOBase) -> Iterator[Piece]:
    """Read at least one piece. Raises `DataError` that names the line."""
    report = ReadReport(place.name)
    keys: dict[str, None] = {}

    def sized() -> Iterator[tuple[int, dict[str, Any], int]]:
        for number, row, size in _json_rows(place, text):
            keys.update(dict.fromkeys(row))
            yield number, row, size + CELL_BYTES * len(keys)

    for numbers, rows in batched(sized()):
        names = distinct(keys)
        check_names(names, place.label)
        cells = [[row.get(key) for key in keys] for row in rows]
        report.read += len(rows)
        yield text_of_rows(cells, numbers, names, report), report


def _json_rows(place: Place, text: io.TextIOBase) -> Iterator[tuple[int, dict[str, Any], int]]:
    """Each object with the number of its line, or with its place in the array, and its size."""
    is_array = next((line for line in text if line.strip()), "").lstrip().startswith("[")
    text.seek(0)
    if not is_array:
        for number, line in enumerate(text, 1):
            if line.strip():
                row, size = _parsed(place, number, line)
                yield number, _checked(place.label, number, f"line {number}", row), size
        return
    rows, size = _parsed(place, 1, text.read())
    for number, row in enumerate(rows, 1):
        yield number, _checked(place.label, 1, f"entry {number}", row), size // len(rows)


def _parsed(place: Place, number: int, text: str) -> tuple[Any, int]:
    """Return what a text says, and about how many bytes that takes."""
    size = len(text) + NESTED_BYTES * (text.count("[") + text.count("{"))
    size += VALUE_BYTES * text.count(",")
    check_unpacked(size, place.size, place.label)
    try:
        return json.loads(text), size
    except RecursionError:
        JSON_DEPTH.check(sys.maxsize, f"{place.label}, line {number}")
        raise
    except ValueError as error:
        raise DataError(f"{place.label}, line {number}: not JSON: {error}") from None


def _checked(label: str, number: int, where: str, row: Any) -> dict[str, Any]:
    JSON_DEPTH.check(_depth(row), f"{label}, line {number}")
    if not isinstance(row, dict):
        raise DataError(f'{label}, {where}: expected objects like {{"id": 7}}')
    return row


def _depth(value: Any) -> int:
    """How many objects and arrays stand in one another, without recursion.

    >>> _depth({"id": 7, "tags": [["a"], []]}), _depth(7)
    (3, 0)
    """
    level, depth = [value], 0
    while level := [one for one in level if isinstance(one, dict | list)]:
        depth += 1
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
    return depth
