"""JSON to frames, batch by batch: an object a line, or a document (`json_documents`).

A row in which an object has a key twice is skipped and counted: which of the values is meant is not
known.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any

from qkvsearch._utils.limits import CELL_BYTES, JSON_DEPTH, check_unpacked
from qkvsearch.errors import DataError
from qkvsearch.tables.files.file_format import TextFormat, TextOptions
from qkvsearch.tables.files.graphql import HAS_MORE, may_have_edges, without_edges
from qkvsearch.tables.files.json_documents import (
    is_action,
    rows_of_bulk,
    rows_of_document,
    unwrapped_hit,
)
from qkvsearch.tables.files.repeated_keys import RowsOfRepeatedKeys, object_of_pairs, repeated_key
from qkvsearch.tables.files.unpacking import TableFile
from qkvsearch.tables.frames import Piece, batched, check_names, distinct, text_of_rows
from qkvsearch.tables.report import ReadReport

SUFFIXES = (".jsonl", ".ndjson", ".json")
# About the bytes that a list or an object takes in memory, and a value behind a comma.
NESTED_BYTES, VALUE_BYTES = 64, 32


class _NotJson(DataError):
    """A text that is not JSON."""


def looks_like_json(text: io.TextIOBase) -> bool:
    """Return whether the first line is an object with a key, or begins an object or an array of
    objects.
    """
    start = next((line for line in text if line.strip()), "").strip()
    text.seek(0)
    return bool(re.match(r'\[\s*($|\{)|\{\s*$|\{\s*".*\}$', start, re.DOTALL))


def read_json_rows(file: TableFile, text: io.TextIOBase) -> Iterator[Piece]:
    """Read at least one piece. Raises `DataError` that names the line."""
    report = ReadReport(file.name)
    skipped = RowsOfRepeatedKeys(report)
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
    rows: Iterator[tuple[int, dict[str, Any], int]], skipped: RowsOfRepeatedKeys
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
    """Yield each object with its line number, or its place in the document, and its size in
    bytes.
    """
    if _is_one_document(text):
        yield from _rows_of_one(file, text, report)
        return
    lines = _parsed_lines(file, text, report)
    first = next(lines, None)
    if first is None:
        return
    all_lines = chain([first], lines)
    if not is_action(first[1]):
        for number, row, size in all_lines:
            row = unwrapped_hit(row)
            yield number, _checked(file.label, number, f"line {number}", row), size
        return
    n_documents = 0
    for each in rows_of_bulk(all_lines):
        if each.is_deletion:
            report.read += 1
            report.skip("that deletes an item", [each.number])
        else:
            n_documents += 1
            where = f"line {each.number}"
            yield each.number, _checked(file.label, each.number, where, each.row), each.size
    report.notes.append(f"lines for Elasticsearch's bulk interface: {n_documents:,} documents")


def _is_one_document(text: io.TextIOBase) -> bool:
    """Return whether a text is one array or one object, and not an object a line."""
    lines = (line.strip() for line in text if line.strip())
    first = next(lines, "")
    is_over_lines = not first.endswith("}")
    is_one = first.startswith("[") or is_over_lines or next(lines, None) is None
    text.seek(0)
    return is_one


def _rows_of_one(
    file: TableFile, text: io.TextIOBase, report: ReadReport
) -> Iterator[tuple[int, dict[str, Any], int]]:
    """Yield the rows of a text that is one document."""
    first = 1
    for line in text:
        if line.strip():
            break
        first += 1
    text.seek(0)
    content = text.read()
    document, size = _parsed(file, 1, content)
    JSON_DEPTH.check(_depth(document), f"{file.label}, line {first}")
    found = rows_of_document(document, file.label)
    if found.note:
        report.notes.append(found.note)
    if HAS_MORE.search(content):
        report.warnings.append(f"{file.name}: it says that there are more pages (hasNextPage)")
    is_line = isinstance(document, dict) and len(found.rows) == 1
    for number, row in enumerate(found.rows, first if is_line else 1):
        row = unwrapped_hit(row)
        yield number, _checked(file.label, 1, f"entry {number}", row), size // len(found.rows)


def _parsed_lines(
    file: TableFile, text: io.TextIOBase, report: ReadReport
) -> Iterator[tuple[int, Any, int]]:
    """Yield what each line says that is not blank; count a last one that is cut off."""
    for number, line in enumerate(text, 1):
        if not line.strip():
            continue
        try:
            row, size = _parsed(file, number, line)
        except _NotJson:
            if number == 1 or line.endswith(("\r", "\n")):
                raise
            report.read += 1
            report.skip("that is cut off", [number])
            return
        yield number, row, size


def _parsed(file: TableFile, number: int, text: str) -> tuple[Any, int]:
    """Return what a text says, and about how many bytes that takes."""
    size = len(text) + NESTED_BYTES * (text.count("[") + text.count("{"))
    size += VALUE_BYTES * text.count(",")
    check_unpacked(size, file.size, file.label)
    try:
        value = json.loads(text, object_pairs_hook=object_of_pairs)
        return without_edges(value) if may_have_edges(text) else value, size
    except RecursionError:
        JSON_DEPTH.check(sys.maxsize, f"{file.label}, line {number}")
        raise
    except ValueError as error:
        line = number + getattr(error, "lineno", 1) - 1
        raise _NotJson(f"{file.label}, line {line}: not JSON: {error}") from None


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
    notes="one object per line, an array of objects, or [one object that holds them](#json); "
    "fields of an object become columns, `dimensions.height`; lists become `a|b`",
    fits=_is_json,
    read=lambda file, text, options: read_json_rows(file, text),
)
