"""Rows to CSV, JSON Lines and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qkvsearch.errors import QkvError


def to_csv(rows: Iterable[Sequence[Any]]) -> str:
    """One line a row; a first row of names is a heading. Lists and dicts are written as JSON."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(flat_cell, row) for row in rows)
    return text.getvalue()


def to_jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def require_pyarrow(path: Path | None) -> None:
    """Raise `QkvError` where Parquet cannot be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise QkvError(
            f"{path}: writing Parquet needs pyarrow: pip install 'qkvsearch[parquet]'"
        ) from None


def flat_cell(value: Any) -> Any:
    """A list or a dict as JSON; anything else as it is."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
