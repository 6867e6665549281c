"""Rows to CSV, JSON Lines and Parquet."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qkvsearch.errors import need
from qkvsearch.terminal import printable

# What a spreadsheet takes for the beginning of a formula; a plain negative number is none.
FORMULA = re.compile(r"[=+\-@\t\r]")
PLAIN_NUMBER = re.compile(r"-(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


class CsvLines:
    """A writer of rows as lines of CSV.

    A text that a spreadsheet would run as a formula gets an apostrophe before it, unless `raw`;
    `guarded` counts those by column.

    >>> lines = CsvLines(["id", "title"])
    >>> lines.text([["7", "=1+1"]]), lines.guarded
    ("7,'=1+1\\n", Counter({'title': 1}))
    """

    def __init__(self, names: Sequence[str], raw: bool = False) -> None:
        self.names, self.raw = list(names), raw
        self.guarded: Counter[str] = Counter()

    def heading(self) -> str:
        """Return the line with the names of the columns."""
        return self.text([self.names])

    def text(self, rows: Iterable[Sequence[Any]]) -> str:
        """Return one line a row; a cell with a line end of any kind is in quotes."""
        # The csv module quotes the signs that end its lines.
        writer = csv.writer(_Line(), lineterminator="\r\n")
        return "".join(writer.writerow(self._cells(row)) for row in rows)

    def _cells(self, row: Sequence[Any]) -> list[Any]:
        return [self._cell(name, cell) for name, cell in zip(self.names, row, strict=True)]

    def _cell(self, name: str, value: Any) -> Any:
        cell = one_cell(value)
        if self.raw or not isinstance(cell, str) or not FORMULA.match(cell):
            return cell
        if PLAIN_NUMBER.fullmatch(cell):
            return cell
        self.guarded[name] += 1
        return f"'{cell}"


class _Line:
    """A file whose `write` returns the text, with the line end of other texts."""

    def write(self, text: str) -> str:
        return text.removesuffix("\r\n") + "\n"


def said_of_guarded(guarded: Mapping[str, int]) -> str:
    """Return a note on cells that got an apostrophe, or "".

    >>> said_of_guarded({"id": 1, "title": 2})
    '3 cells that a spreadsheet would run as a formula got an apostrophe before them (in id, title)'
    """
    count = sum(guarded.values())
    if not count:
        return ""
    cells, them = ("cell", "it") if count == 1 else ("cells", "them")
    return (
        f"{count:,} {cells} that a spreadsheet would run as a formula got an apostrophe before "
        f"{them} (in {', '.join(guarded)})"
    )


def to_jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return one JSON object a line."""
    return "".join(printable(json.dumps(row, ensure_ascii=False)) + "\n" for row in rows)


def require_pyarrow(path: Path | None) -> None:
    """Raise `QkvError` if Parquet cannot be written."""
    need("pyarrow.parquet", "parquet", f"{path}: writing Parquet")


def one_cell(value: Any) -> Any:
    """Return a list or a dict as a readable text of one line, anything else as it is.

    A dict becomes "name: value; …", a list its entries with "; " between them. A reason becomes
    "title [id] (contribution)", a component of a score "head: query ~ key (value)", and one in
    plain words "text (value)". A list of these ends in its sum, the score.

    >>> one_cell({"lexical": 1.5, "lsa": -0.25})
    'lexical: 1.5; lsa: -0.25'
    >>> one_cell([{"id": 7, "title": "Heat", "contribution": 0.125}])
    'Heat [7] (+0.125); = 0.125'
    """
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_entry(entry)}" for name, entry in value.items())
    if not isinstance(value, list):
        return value
    entries = list(map(_entry, value))
    addends = [addend for addend in map(_addend, value) if addend is not None]
    if addends:
        entries.append(f"= {sum(addends):.6g}")
    return "; ".join(entries)


def _addend(entry: Any) -> float | None:
    """Return what an entry of a cell adds to a score; None for one that is no reason."""
    if not isinstance(entry, dict):
        return None
    if "contribution" in entry:
        return float(entry["contribution"])
    if entry.keys() >= {"text", "value"} or entry.keys() >= {"head", "query", "key", "value"}:
        return float(entry["value"])
    return None


def _entry(value: Any) -> str:
    """Return one of several values in a cell as text."""
    if isinstance(value, dict) and "contribution" in value:
        named = "" if value["id"] is None else f" [{value['id']}]"
        return f"{value['title']}{named} ({value['contribution']:+.6g})"
    if isinstance(value, dict) and value.keys() == {"text", "value"}:
        return f"{value['text']} ({value['value']:+.6g})"
    if isinstance(value, dict) and value.keys() >= {"head", "query", "key", "value"}:
        words = [str(value[name]) for name in ("query", "key") if value[name] is not None]
        named = f": {' ~ '.join(dict.fromkeys(words))}" if words else ""
        return f"{value['head']}{named} ({value['value']:+.6g})"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return ", ".join(map(_entry, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
