"""What an executor does with what Spark reads of a table: cells of text, as `data.files` has them,
and the number of each row.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from qkvsearch.data.files.delimited import parse_rows
from qkvsearch.data.files.frames import as_text
from qkvsearch.data.files.json_rows import parse_line
from qkvsearch.engines.spark.tables import Rows
from qkvsearch.errors import DataError
from qkvsearch.limits import CELL

# Of what is read: which file it is of, as a hash of its path, and where in it the part begins that
# a task reads.
FILE, PART = "_file", "_part"
# The number of a row, and why it cannot be used, 0 where it can.
ROW, SKIP = "_row", "_skip"
TOO_WIDE, TOO_LONG = 1, 2
Place = tuple[int, int]


@dataclass(frozen=True)
class Numbering:
    """Before each part of a file so many rows, or lines, come."""

    before: Mapping[Place, int]

    def parts(self, batches: Rows) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Pieces of one part each, with the number of rows before them."""
        seen: dict[Place, int] = {}
        for batch in batches:
            files, parts = (batch.column(name).to_numpy() for name in (FILE, PART))
            ends = np.flatnonzero((np.diff(files) != 0) | (np.diff(parts) != 0)) + 1
            for start, end in zip([0, *ends], [*ends, batch.num_rows], strict=True):
                if start == end:
                    continue
                place = (int(files[start]), int(parts[start]))
                before = seen.get(place, 0)
                seen[place] = before + int(end - start)
                yield self.before[place] + before, batch.slice(start, end - start)


def text_cells(cells: pa.Array) -> pa.Array:
    """A column of any kind as text, blanks missing, as `as_text` has it."""
    kind = cells.type
    if pa.types.is_dictionary(kind):
        return text_cells(cells.dictionary_decode())
    if pa.types.is_integer(kind):
        return pc.cast(cells, pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = pc.cast(cells, pa.string())
        return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    frame = as_text(pd.DataFrame({"cells": cells.to_pandas()}))
    return pa.array(frame["cells"], pa.string(), from_pandas=True)


def read_parquet_cells(names: Sequence[str], numbering: Numbering) -> Callable[[Rows], Rows]:
    """Rows of any types to rows of text."""

    def read(batches: Rows) -> Rows:
        for before, batch in numbering.parts(batches):
            rows = pa.array(np.arange(before + 1, before + 1 + batch.num_rows, dtype=np.int64))
            cells = [text_cells(batch.column(f"c{at}")) for at in range(len(names))]
            skip = pa.array(np.zeros(batch.num_rows, np.int32))
            yield pa.RecordBatch.from_arrays([rows, skip, *cells], schema=cells_schema(len(names)))

    return read


def cells_schema(n_columns: int) -> pa.Schema:
    fields = [(ROW, pa.int64()), (SKIP, pa.int32())]
    return pa.schema([*fields, *((f"c{at}", pa.string()) for at in range(n_columns))])


def cells_form(n_columns: int) -> str:
    return ", ".join(
        [f"{ROW} bigint", f"{SKIP} int", *(f"c{at} string" for at in range(n_columns))]
    )


@dataclass(frozen=True)
class Delimited:
    """How the lines of a file are read: as `data.files.delimited` found by its beginning. `above`
    lines come before the table, its header among them."""

    label: str
    delimiter: str
    quoted: bool
    width: int
    above: int


def read_delimited_cells(how: Delimited, numbering: Numbering) -> Callable[[Rows], Rows]:
    """Lines as bytes to rows of text; blank ones are none."""

    def read(batches: Rows) -> Rows:
        for before, batch in numbering.parts(batches):
            lines = _lines(batch, before)
            skipped = max(0, how.above - before)
            if skipped >= len(lines):
                continue
            before, lines = before + skipped, lines[skipped:]
            yield _table_of_lines(lines, before, how)

    return read


def _table_of_lines(lines: list[str], before: int, how: Delimited) -> pa.RecordBatch:
    text = io.StringIO("\n".join(lines) + "\n", newline="")
    pieces = list(parse_rows(how.label, text, how.delimiter, how.quoted, how.width))
    frame = pd.concat([piece for piece, _ in pieces])
    too_long = np.concatenate([left_out for _, left_out in pieces])
    if len(frame) + len(too_long) != len(lines):
        raise DataError(
            f"{how.label}: a cell with a line break in it, behind line {before}: `engine` reads a "
            "file line by line; write it as Parquet, or build without `engine`"
        )
    frame = frame.dropna(how="all")
    wide = frame[how.width].notna().to_numpy(bool)
    long = np.zeros(len(frame), bool)
    for name in frame:
        long |= (frame[name].str.len() > CELL.most).to_numpy(bool)
    skip = np.where(wide, TOO_WIDE, np.where(long, TOO_LONG, 0)).astype(np.int32)
    rows = np.concatenate([frame.index.to_numpy(np.int64), too_long]) + before
    skip = np.concatenate([skip, np.full(len(too_long), TOO_WIDE, np.int32)])
    gaps = pa.nulls(len(too_long), pa.string())
    cells = [
        pa.concat_arrays([pa.array(frame[at], pa.string(), from_pandas=True), gaps])
        for at in range(how.width)
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array(rows, pa.int64()), pa.array(skip), *cells], schema=cells_schema(how.width)
    )


def _lines(batch: pa.RecordBatch, before: int) -> list[str]:
    """Each decoded as `data.files.tables` does."""
    lines = []
    for place, line in enumerate(batch.column("value").to_pylist()):
        coding = "utf-8-sig" if before + place == 0 else "utf-8"
        try:
            lines.append(line.decode(coding))
        except UnicodeDecodeError:
            lines.append(line.decode("cp1252", errors="replace"))
    return lines


def line_facts(numbering: Numbering, delimiter: str) -> Callable[[Rows], Rows]:
    """Of the lines of a partition, as JSON: how many are not UTF-8, the least and the most cells of
    a row, and whether a cell opens a quote that is not closed in its line."""

    def look(batches: Rows) -> Rows:
        repaired, widths, opened = 0, set(), False
        for before, batch in numbering.parts(batches):
            for line in batch.column("value").to_pylist():
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    repaired += 1
            if delimiter == "\t":
                rows = [
                    line.rstrip("\r").split("\t") for line in _lines(batch, before) if line.strip()
                ]
                widths |= {len(row) for row in rows}
                opened |= any(
                    len(cell) == 1 or not cell.endswith('"')
                    for row in rows for cell in row if cell.startswith('"')
                )  # fmt: skip
        yield facts_batch({"repaired": repaired, "widths": sorted(widths)[:2], "opened": opened})

    return look


def facts_batch(facts: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"facts": [json.dumps(facts)]})


def json_names(numbering: Numbering) -> Callable[[Rows], Rows]:
    """The names in a partition's objects, each with where it comes first: row, then place."""

    def look(batches: Rows) -> Rows:
        found: dict[str, tuple[int, int]] = {}
        for before, batch in numbering.parts(batches):
            for number, line in enumerate(_lines(batch, before), before + 1):
                for place, name in enumerate(parse_line("", number, line) or ()):
                    found.setdefault(name, (number, place))
        yield facts_batch(found)

    return look


def read_json_cells(
    label: str, names: Sequence[str], numbering: Numbering
) -> Callable[[Rows], Rows]:
    """Lines of JSON as bytes to rows of text."""

    def read(batches: Rows) -> Rows:
        for before, batch in numbering.parts(batches):
            numbered = [
                (number, row)
                for number, line in enumerate(_lines(batch, before), before + 1)
                if (row := parse_line(label, number, line)) is not None
            ]
            frame = pd.DataFrame([row for _, row in numbered], columns=list(names), dtype=object)
            texts = as_text(frame)
            cells = [
                pa.array(texts.iloc[:, at], pa.string(), from_pandas=True)
                for at in range(len(names))
            ]
            rows = pa.array([number for number, _ in numbered], pa.int64())
            skip = pa.array(np.zeros(len(numbered), np.int32))
            yield pa.RecordBatch.from_arrays([rows, skip, *cells], schema=cells_schema(len(names)))

    return read


def pick_cells(
    steps: Mapping[str, int], before: Mapping[int, Mapping[str, int]]
) -> Callable[[Rows], Rows]:
    """Of each column every so-manieth cell that is there. before: by partition, how many cells of
    each column come in others."""

    def pick(batches: Rows) -> Rows:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        seen = dict(before.get(context.partitionId(), {}))
        for batch in batches:
            rows = batch.column(ROW)
            for name, step in steps.items():
                cells = batch.column(name)
                there = np.flatnonzero(cells.is_valid().to_numpy(zero_copy_only=False))
                rank = seen[name] + np.arange(len(there))
                seen[name] += len(there)
                chosen = pa.array(there[rank % step == 0])
                if len(chosen):
                    names = pa.array([name] * len(chosen), pa.string())
                    yield pa.RecordBatch.from_arrays(
                        [names, rows.take(chosen), cells.take(chosen)],
                        names=["name", "row", "cell"],
                    )

    return pick
