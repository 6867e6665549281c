"""Rows to CSV, JSON Lines and Parquet."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qkvsearch._utils.shown_sums import adding_up, reasons_adding_up
from qkvsearch.errors import need
from qkvsearch.terminal import printable

# What a spreadsheet takes for the beginning of a formula; a plain negative number is none.
FORMULA = re.compile(r"[=+\-@\t\r]")
PLAIN_NUMBER = re.compile(r"-(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
# Decimals of what a score is made of.
DECIMALS = 6


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


def with_shown_sums(row: Mapping[str, Any], decimals: int = DECIMALS) -> dict[str, Any]:
    """Return a row for `one_cell`: what a score is made of is rounded so that the numbers in the
    cell add up to the score with these decimals. The score itself stays as it is.

    >>> reasons = [{"text": word, "value": 0.4} for word in "abc"]
    >>> row = with_shown_sums({"score": 1.2, "reasons": reasons, "heads": {"lsa": 1.2}}, decimals=0)
    >>> one_cell(row["reasons"]), row["heads"]
    ('a (+1); b (+0); c (+0); = 1', {'lsa': '1'})
    """
    score = row.get("score")
    shown = dict(row)
    if not isinstance(score, float):
        return shown
    for name, value in row.items():
        if isinstance(value, list):
            shown[name] = _rounded_reasons(value, score, decimals)
    heads = row.get("heads")
    if isinstance(heads, dict):
        rounded = adding_up(list(heads.values()), score, decimals)
        shown["heads"] = dict(zip(heads, map(_number, rounded), strict=True))
    return shown


def _rounded_reasons(entries: list[Any], score: float, decimals: int) -> list[Any]:
    """Return the reasons of a score with rounded values; any other list as it is."""
    addends = [_addend(entry) for entry in entries]
    values = [addend for addend in addends if addend is not None]
    if not entries or len(values) < len(entries):
        return entries
    texts = [entry.get("text", "") for entry in entries]
    rounded = reasons_adding_up(list(zip(texts, values, strict=True)), score, decimals)
    return [
        {**entry, _addend_name(entry): value} for entry, value in zip(entries, rounded, strict=True)
    ]


def one_cell(value: Any) -> Any:
    """Return a list or a dict as a readable text of one line, anything else as it is.

    A dict becomes "name: value; …", a list its entries with "; " between them. A reason becomes
    "title [id] (contribution)", a component of a score "head: query ~ key (value)", and one in
    plain words "text (value)". A list of these ends in the sum of the numbers before, the score.

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
        # As they are printed, so that a reader who adds them up gets the same.
        total = sum(round(addend, DECIMALS) for addend in addends)
        entries.append(f"= {_number(total)}")
    return "; ".join(entries)


def _addend_name(entry: Any) -> str:
    """Return which field of an entry adds to a score; "" for one that is no reason."""
    if not isinstance(entry, dict):
        return ""
    if "contribution" in entry:
        return "contribution"
    is_reason = entry.keys() >= {"text", "value"}
    is_component = entry.keys() >= {"head", "query", "key", "value"}
    return "value" if is_reason or is_component else ""


def _addend(entry: Any) -> float | None:
    """Return what an entry of a cell adds to a score; None for one that is no reason."""
    name = _addend_name(entry)
    return float(entry[name]) if name else None


def _number(value: float) -> str:
    """Return a number in full with at most `DECIMALS` decimals, without zeros at its end.

    >>> _number(6.7431896), _number(-0.25), _number(1234567.0), _number(-1e-9)
    ('6.74319', '-0.25', '1234567', '0')
    """
    rounded = round(value, DECIMALS) + 0.0  # no −0
    return f"{rounded:.{DECIMALS}f}".rstrip("0").rstrip(".")


def _signed(value: float) -> str:
    """Return a number with its sign, in the decimals of `_number`."""
    number = _number(value)
    return number if number.startswith("-") else f"+{number}"


def _entry(value: Any) -> str:
    """Return one of several values in a cell as text."""
    if isinstance(value, dict) and "contribution" in value:
        named = "" if value["id"] is None else f" [{value['id']}]"
        return f"{value['title']}{named} ({_signed(value['contribution'])})"
    if isinstance(value, dict) and value.keys() == {"text", "value"}:
        return f"{value['text']} ({_signed(value['value'])})"
    if isinstance(value, dict) and value.keys() >= {"head", "query", "key", "value"}:
        words = [str(value[name]) for name in ("query", "key") if value[name] is not None]
        named = f": {' ~ '.join(dict.fromkeys(words))}" if words else ""
        return f"{value['head']}{named} ({_signed(value['value'])})"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return ", ".join(map(_entry, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
