"""JSON to a frame: an object a line, or an array of objects."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

from qkvsearch.data.files.frames import table_of
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError


def looks_like_json(text: io.TextIOBase) -> bool:
    """True where the first line is an object, or an array begins."""
    start = next((line for line in text if line.strip()), "").strip()
    text.seek(0)
    if start.startswith("["):
        return start == "[" or start[1:].lstrip().startswith("{")
    return start.startswith("{") and start.endswith("}")


def read_json_rows(label: str, name: str, text: io.TextIOBase) -> tuple[pd.DataFrame, ReadReport]:
    """Raises `DataError` that names the line."""
    numbers, rows = [], []
    for number, row in _json_rows(label, text):
        numbers.append(number)
        rows.append(row)
    frame, report = table_of(rows, None, label, name)
    return frame.set_axis(numbers), report


def _json_rows(label: str, text: io.TextIOBase) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object with the number of its line, or with its place in the array."""
    whole = next((line for line in text if line.strip()), "").lstrip().startswith("[")
    text.seek(0)
    for number, line in [(1, text.read())] if whole else enumerate(text, 1):
        if not line.strip():
            continue
        try:
            parsed = json.loads(line)
        except RecursionError:
            raise DataError(f"{label}, line {number}: nested too deeply") from None
        except ValueError as error:
            raise DataError(f"{label}, line {number}: not JSON: {error}") from None
        for place, row in enumerate(parsed if whole else [parsed], 1):
            if not isinstance(row, dict):
                where = f"entry {place}" if whole else f"line {number}"
                raise DataError(f'{label}, {where}: expected objects like {{"id": 7}}')
            yield place if whole else number, row
