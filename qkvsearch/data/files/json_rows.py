"""JSON to frames, piece by piece: an object a line, or an array of objects."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

from qkvsearch.data.files import scratch
from qkvsearch.data.files.frames import Piece, table_of
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError
from qkvsearch.limits import JSON_DEPTH


def looks_like_json(text: io.TextIOBase) -> bool:
    """Return whether the first line is an object with a key, or begins an array of objects."""
    start = next((line for line in text if line.strip()), "").strip()
    text.seek(0)
    return bool(re.match(r'\[\s*($|\{)|\{\s*".*\}$', start, re.DOTALL))


def read_json_rows(label: str, name: str, text: io.TextIOBase) -> Iterator[Piece]:
    """At least one piece. Raises `DataError` that names the line."""
    rows, report = _json_rows(label, text), ReadReport(name)
    while True:
        piece = list(islice(rows, scratch.ROWS_AT_ONCE))
        if report.read and not piece:
            return
        frame, _ = table_of([row for _, row in piece], None, label, name)
        report.read += len(piece)
        yield frame.set_axis([number for number, _ in piece]), report
        if not piece:
            return


def _json_rows(label: str, text: io.TextIOBase) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object with the number of its line, or with its place in the array."""
    whole = next((line for line in text if line.strip()), "").lstrip().startswith("[")
    text.seek(0)
    if not whole:
        for number, line in enumerate(text, 1):
            if (found := parse_line(label, number, line)) is not None:
                yield number, found
        return
    for place, row in enumerate(_parsed(label, 1, text.read()), 1):
        yield place, _checked(label, 1, f"entry {place}", row)


def parse_line(label: str, number: int, line: str) -> dict[str, Any] | None:
    """The object in a line of JSON Lines; None for a blank one. Raises `DataError`."""
    if not line.strip():
        return None
    return _checked(label, number, f"line {number}", _parsed(label, number, line))


def _parsed(label: str, number: int, text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        JSON_DEPTH.check(sys.maxsize, f"{label}, line {number}")
        raise
    except ValueError as error:
        raise DataError(f"{label}, line {number}: not JSON: {error}") from None


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
