"""A table that Spark reads, as numbered rows of text: what `data.files` makes of it, in parts."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pandas as pd

from qkvsearch.data.columns.choice import LOOKED_AT
from qkvsearch.data.files.delimited import head_of
from qkvsearch.data.files.encoded import EncodedTable
from qkvsearch.data.files.encoding import encoded
from qkvsearch.data.files.frames import check_width, distinct
from qkvsearch.data.files.json_rows import looks_like_json
from qkvsearch.data.files.tables import JSON_SUFFIXES, NO_TABLES, TAB_SUFFIXES, wide_encoding
from qkvsearch.data.files.unpacking import PACKERS, ZIP, ZSTANDARD
from qkvsearch.data.report import ReadReport
from qkvsearch.engines.spark.cells import (
    FILE,
    PART,
    ROW,
    SKIP,
    TOO_LONG,
    TOO_WIDE,
    Delimited,
    Numbering,
    cells_form,
    json_names,
    line_facts,
    pick_cells,
    read_delimited_cells,
    read_json_cells,
    read_parquet_cells,
)
from qkvsearch.engines.spark.folder import Folder, as_uri
from qkvsearch.errors import DataError
from qkvsearch.limits import CELL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Of a text so many bytes tell what it is; more than its delimiter is guessed by.
HEAD = 400_000
PARQUET_MARK = b"PAR1"
SKIPPED = {
    TOO_WIDE: "with too many columns",
    TOO_LONG: f"with a cell of more than {CELL.most:,} characters",
}


@dataclass(frozen=True)
class TextTable:
    """names: of the columns. `cells` gives rows (`_row`, `_skip`, then c0, c1 …) of those that are
    asked for. report: what is known of it before its rows are looked at. kept: what executors keep.
    """

    spark: SparkSession
    names: list[str]
    report: ReadReport
    read: Callable[[list[str]], DataFrame]
    kept: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: DataFrame) -> DataFrame:
        """Kept by the executors until `drop`: what is made of it is made more than once."""
        found = kept(frame)
        self.kept.append(found)
        return found

    def drop(self) -> None:
        """Let go of what was kept."""
        while self.kept:
            self.kept.pop().unpersist()

    def cells(self, names: list[str]) -> DataFrame:
        """Columns c0, c1 … are those of these names."""
        return self.read(names)

    def sketch(self) -> tuple[EncodedTable, dict[str, int], int]:
        """The cells by which columns are chosen, in a table by row number that has gaps for all
        others; how many cells of each column there are; and how many rows.
        """
        from pyspark.sql import functions as F

        frame = self.cells(self.names).filter(F.col(SKIP) == 0)
        columns = [f"c{at}" for at in range(len(self.names))]
        counted = [F.count(name).alias(name) for name in columns]
        counts = frame.groupBy(F.spark_partition_id().alias("_at")).agg(
            F.min(ROW).alias(ROW), F.count(F.lit(1)).alias("_n"), *counted
        )
        of_parts = sorted(counts.collect(), key=lambda row: row[ROW])
        total = dict.fromkeys(columns, 0)
        before = {}
        for row in of_parts:
            before[row["_at"]] = dict(total)
            total = {name: total[name] + row[name] for name in columns}
        steps = {name: max(1, n // LOOKED_AT) for name, n in total.items()}
        picked = frame.mapInArrow(pick_cells(steps, before), "name string, row bigint, cell string")
        found = picked.toArrow().to_pandas()
        rows = sorted(found["row"].unique())
        shown = pd.DataFrame(index=pd.Index(rows, dtype="int64"))
        for name, own in zip(columns, self.names, strict=True):
            of_column = found[found["name"] == name]
            cells = pd.Series(
                of_column["cell"].to_numpy(object), index=of_column["row"], dtype=object
            )
            shown[own] = cells.reindex(rows).astype("str")
        by_name = dict(zip(self.names, total.values(), strict=True))
        return encoded(shown), by_name, sum(row["_n"] for row in of_parts)


def open_table(spark: SparkSession, path: str) -> TextTable:
    """A file of CSV, TSV, JSON Lines or Parquet, or a folder of Parquet files, wherever Spark
    reads. Raises `DataError`.
    """
    folder = Folder(spark, as_uri(path))
    name = PurePosixPath(path.rstrip("/")).name
    if not folder.has(""):
        raise DataError(f"{path}: there is no such file")
    if folder.is_folder():
        if not any(one.endswith(".parquet") for one in folder.names()):
            raise DataError(
                f"{path}: a folder without .parquet files: name one file, or such a folder"
            )
        return _parquet(spark, path, name)
    start = folder.start("", HEAD)
    if not start:
        raise DataError(f"{path}: the file is empty")
    for mark, what in NO_TABLES.items():
        if start.startswith(mark):
            raise DataError(f"{path}: {what}")
    if start.startswith(PARQUET_MARK):
        return _parquet(spark, path, name)
    packed = start.startswith((*PACKERS, ZIP, ZSTANDARD))
    if packed or wide_encoding(start) is not None or b"\0" in start[:1000]:
        raise DataError(
            f"{path}: `engine` reads Parquet, and CSV, TSV and JSON Lines in UTF-8 that are not "
            "packed; unpack it, or write it as one of these"
        )
    text = io.StringIO(_decoded(start), newline="")
    if name.endswith(JSON_SUFFIXES) or looks_like_json(text):
        return _json(spark, path, name, text)
    return _delimited(spark, path, name, text)


def _parquet(spark: SparkSession, path: str, name: str) -> TextTable:
    frame = spark.read.parquet(as_uri(path))
    check_width(len(frame.columns), path)
    numbering = _numbering(frame)
    names = distinct(frame.columns)
    as_stored = dict(zip(names, frame.columns, strict=True))

    def read(wanted: list[str]) -> DataFrame:
        from pyspark.sql import functions as F

        chosen = [F.col(f"`{as_stored[one]}`").alias(f"c{at}") for at, one in enumerate(wanted)]
        rows = frame.select(*_place(), *chosen)
        return rows.mapInArrow(read_parquet_cells(wanted, numbering), cells_form(len(wanted)))

    return TextTable(spark, names, ReadReport(name), read)


def _delimited(spark: SparkSession, path: str, name: str, text: io.StringIO) -> TextTable:
    head = head_of(path, text, "\t" if name.endswith(TAB_SUFFIXES) else None)
    lines, numbering = _lines(spark, path)
    facts = _facts(lines, line_facts(numbering, head.delimiter))
    widths = {width for fact in facts for width in fact["widths"]}
    is_text = head.delimiter == "\t" and len(widths) == 1 and any(fact["opened"] for fact in facts)
    how = Delimited(path, head.delimiter, not is_text, len(head.names), head.n_lines)
    cells = lines.mapInArrow(read_delimited_cells(how, numbering), cells_form(len(head.names)))
    report = ReadReport(name, repaired=sum(fact["repaired"] for fact in facts))
    head.note(report)
    cells = kept(cells)
    return TextTable(spark, head.names, report, _chosen(cells, head.names), [cells])


def _json(spark: SparkSession, path: str, name: str, text: io.StringIO) -> TextTable:
    first = next((line for line in text if line.strip()), "").lstrip()
    if first.startswith("["):
        raise DataError(
            f"{path}: one array of objects: `engine` reads JSON Lines, an object a line, or Parquet"
        )
    lines, numbering = _lines(spark, path)
    places: dict[str, tuple[int, int]] = {}
    for fact in _facts(lines, json_names(numbering)):
        for key, place in fact.items():
            places[key] = min(tuple(place), places.get(key, tuple(place)))
    keys = sorted(places, key=lambda key: places[key])
    check_width(len(keys), path)
    cells = lines.mapInArrow(read_json_cells(path, keys, numbering), cells_form(len(keys)))
    names, cells = distinct(keys), kept(cells)
    return TextTable(spark, names, ReadReport(name), _chosen(cells, names), [cells])


def _chosen(cells: DataFrame, names: list[str]) -> Callable[[list[str]], DataFrame]:
    def read(wanted: list[str]) -> DataFrame:
        from pyspark.sql import functions as F

        columns = [F.col(f"c{names.index(name)}").alias(f"c{at}") for at, name in enumerate(wanted)]
        return cells.select(ROW, SKIP, *columns)

    return read


def kept(frame: DataFrame) -> DataFrame:
    """Kept by the executors, in memory as far as there is any; made again where one is lost."""
    from pyspark import StorageLevel

    return frame.persist(StorageLevel.MEMORY_AND_DISK)


def _lines(spark: SparkSession, path: str) -> tuple[DataFrame, Numbering]:
    from pyspark.sql import functions as F

    lines = spark.read.option("lineSep", "\n").text(as_uri(path))
    numbering = _numbering(lines)
    return lines.select(*_place(), F.col("value").cast("binary").alias("value")), numbering


def _place() -> list[Any]:
    from pyspark.sql import functions as F

    return [
        F.xxhash64("_metadata.file_path").alias(FILE),
        F.col("_metadata.file_block_start").alias(PART),
    ]


def _numbering(frame: DataFrame) -> Numbering:
    """Files by their paths, and in each its parts from the beginning on."""
    from pyspark.sql import functions as F

    path = F.col("_metadata.file_path").alias("path")
    counted = frame.select(path, *_place()).groupBy("path", FILE, PART).count().collect()
    before, n = {}, 0
    for row in sorted(counted, key=lambda row: (row["path"], row[PART])):
        before[row[FILE], row[PART]] = n
        n += row["count"]
    return Numbering(before)


def _facts(frame: DataFrame, look: Callable[..., Any]) -> list[Any]:
    """What each partition says, as JSON."""
    return [json.loads(row.facts) for row in frame.mapInArrow(look, "facts string").collect()]


facts_of = _facts


def _decoded(start: bytes) -> str:
    """The beginning of a text, without a line that may not be whole."""
    if len(start) == HEAD and b"\n" in start:
        start = start[: start.rindex(b"\n") + 1]
    lines = []
    for place, line in enumerate(start.split(b"\n")):
        try:
            lines.append(line.decode("utf-8-sig" if not place else "utf-8"))
        except UnicodeDecodeError:
            lines.append(line.decode("cp1252", errors="replace"))
    return "\n".join(lines)
