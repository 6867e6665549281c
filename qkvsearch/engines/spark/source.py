"""A log that Spark reads: its files, its columns, and the casts of its cells.

docs/scale.md says what a log may look like. Nothing is repaired: Spark casts the cells, and those
that it cannot cast are counted and refused with the name of their column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from qkvsearch.engines.spark.blocks import persisted
from qkvsearch.errors import Count, DataError, quantity
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.columns.dates import SERIAL_DAYS, UNITS, WITHOUT_TIME, note_units
from qkvsearch.tables.columns.events import event_weights
from qkvsearch.tables.columns.rating_cells import DISLIKES, LIKES
from qkvsearch.tables.frames import as_text, check_width, distinct
from qkvsearch.tables.ids import (
    BLANK,
    UNUSABLE,
    UNUSABLE_REASON,
    WHOLE_NUMBER,
    WITH_POINT,
    Ids,
    case_note,
)
from qkvsearch.tables.log import check_scale, decided_scale, mismatch
from qkvsearch.tables.ratings import LARGEST, Scale
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.role_choice import choose_log_columns
from qkvsearch.tables.table import table_of
from qkvsearch.tables.times import UNKNOWN_TIME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# Without pyspark, `session.check_engine` says that it is missing.
F: Any = import_module("pyspark.sql.functions") if find_spec("pyspark") else None

# Where a row is: its file and where in it Spark began to read, then a number that grows.
PART, ROW, MAX_FILE_BYTES = "part", "row", 1 << 44

TEXT, INTEGERS = "string", ("tinyint", "smallint", "int", "bigint")
FRACTIONS, MOMENTS = ("float", "double", "decimal"), ("timestamp", "timestamp_ntz", "date")
NUMBER, ISO_DATE = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\z", r"^\d{4}-\d{1,2}-\d{1,2}"
SECONDS, ANSWERS = "seconds since 1970", "yes or no"
# More different ratings and events than the driver looks at, and as many items as it looks at.
MAX_RATINGS, MAX_EVENTS, SAMPLE = 1_000_000, 1_000, 1_000
ONE_MACHINE = "leave out `engine` to build on one machine"


# --- files ---


@dataclass(frozen=True)
class LogFile:
    """A log as Spark reads it. names: its columns, in `frame` c0, c1 … beside PART and ROW."""

    path: str
    names: list[str]
    frame: DataFrame


def open_log(spark: SparkSession, path: str) -> LogFile:
    """Open a Parquet file, or a folder of them. Raise `DataError`."""
    # A path without a scheme is on this machine.
    uri = path if "://" in path else f"file://{Path(path).absolute().as_posix()}"
    files, is_partitioned = _files(spark, uri, path)
    if not files or not all(file.lower().endswith(".parquet") for file in files):
        raise DataError(
            f"{path}: `engine` reads a file that ends in .parquet, or a folder of such files: "
            f"convert the log to Parquet, or {ONE_MACHINE}"
        )
    uri = re.sub(r"([][{}*?\\])", r"\\\1", uri)  # a name, not a pattern of names
    # Without the option, Spark skips subfolders; with it, `day=1` does not become a column.
    table = spark.read.option("recursiveFileLookup", not is_partitioned).parquet(uri)
    if not table.columns:
        raise DataError(f"{path}: there is no column in it; is it empty?")
    check_width(len(table.columns), path)
    return LogFile(path, distinct(table.columns), _with_places(spark, table, files))


def _files(spark: SparkSession, uri: str, path: str) -> tuple[list[str], bool]:
    """Return the URIs of the files that Spark reads, as `_metadata` has them, sorted; and whether
    they are in subfolders such as `day=1`. Raise `DataError` if only some are.
    """
    jvm: Any = spark._jvm
    root = jvm.org.apache.hadoop.fs.Path(uri)
    system = root.getFileSystem(spark._jsc.hadoopConfiguration())
    if not system.exists(root):
        raise DataError(f"{path}: there is no such file")
    start, listing = len(root.toUri().getPath()), system.listFiles(root, True)
    files, n_partitioned = [], 0
    while listing.hasNext():
        file = listing.next().getPath().toUri()
        names = str(file.getPath())[start:].split("/")
        if not any(name.startswith((".", "_")) for name in names):
            files.append(str(file.toString()).replace("file:///", "file:/", 1))
            n_partitioned += any("=" in name for name in names[:-1])
    if 0 < n_partitioned < len(files):
        raise DataError(
            f"{path}: some files are in subfolders such as day=1, and others are not: move them, "
            "since Spark would not read the others"
        )
    return sorted(files), n_partitioned > 0


def _with_places(spark: SparkSession, table: DataFrame, files: list[str]) -> DataFrame:
    """Return the columns as c0, c1 …, and the place of each row; files are sorted by name."""
    columns = ["`{}`".format(name.replace("`", "``")) for name in table.columns]
    frame = table.select(
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("start"),
        F.monotonically_increasing_id().alias(ROW),
        *(F.col(column).alias(f"c{at}") for at, column in enumerate(columns)),
    )
    numbers = spark.createDataFrame(pa.table({"file": files, "number": range(len(files))}))
    part = F.coalesce("number", F.lit(len(files))) * MAX_FILE_BYTES + F.col("start")
    frame = frame.join(F.broadcast(numbers), "file", "left").withColumn(PART, part)
    return frame.drop("file", "start", "number")


# --- casts: what the cells of a role become, by what they are then; null where they cannot ---


def id_casts(cells: Column, type_: str) -> dict[str, Column]:
    if type_ == TEXT or type_ in INTEGERS:
        return {"an id": cells.cast("string")}
    if type_ in FRACTIONS:
        whole = cells.try_cast("decimal(38, 0)")
        return {"a whole number": F.when(whole == cells, whole.cast("string"))}
    return {}


def number_casts(cells: Column, type_: str) -> dict[str, Column]:
    number = _numbers(cells, type_)
    return {} if number is None else {"a number": F.when(F.abs(number) <= LARGEST, number)}


def rating_casts(cells: Column, type_: str) -> dict[str, Column]:
    casts = number_casts(cells, type_)
    if type_ == TEXT:
        word = F.lower(cells)
        casts[ANSWERS] = F.when(word.isin(*LIKES), 1.0).when(word.isin(*DISLIKES - {"-"}), 0.0)
    if type_ == "boolean":
        casts[ANSWERS] = cells.cast("int").cast("double")
    return casts


def time_casts(cells: Column, type_: str) -> dict[str, Column]:
    """Cast to whole seconds since 1970. The size of a number tells its unit."""
    casts, number = {}, _numbers(cells, type_)
    if number is not None:
        seconds = number
        for low, high, in_a_second in UNITS.values():
            is_finer = (number >= low) & (number < high)
            seconds = F.when(is_finer, number / in_a_second).otherwise(seconds)
        casts[SECONDS] = F.floor(seconds).try_cast("bigint")
    if type_ in MOMENTS:
        casts["a date"] = F.unix_seconds(cells.cast("timestamp"))
    if type_ == TEXT:
        moment = F.unix_seconds(cells.try_cast("timestamp"))
        casts["a date in ISO 8601"] = F.when(cells.rlike(ISO_DATE), moment)
    return casts


def _numbers(cells: Column, type_: str) -> Column | None:
    """Return cells as numbers; None for a type that has none."""
    if type_ == TEXT:
        return F.when(cells.rlike(NUMBER), cells.try_cast("double"))
    return cells.cast("double") if type_ in (*INTEGERS, *FRACTIONS) else None


CASTS = {
    "user": id_casts,
    "item": id_casts,
    "rating": rating_casts,
    "weight": number_casts,
    "event": id_casts,
    "time": time_casts,
}


# --- rows ---


@dataclass(frozen=True)
class SparkLogRows:
    """The usable rows of a log. frame: part, row bigint; user string or bigint; item int; and where
    there are any, rating, weight double, time bigint. cache: what the executors keep for it.
    """

    frame: DataFrame
    cache: DataFrame
    item_ids: Ids
    n_rows: int
    n_users: int
    times_comparable: bool
    scale: Scale


class RowReader:
    """Casts the columns of a log, and counts in `report` what becomes of its rows.

    names, types, cells, casts: of each role. counts: what is known of all cells.
    """

    def __init__(self, log: LogFile, columns: Columns, report: ReadReport) -> None:
        self.log, self.columns, self.report = log, columns, report
        # A table without rows: options and names alone decide.
        table = table_of(pd.DataFrame(columns=log.names))
        self.roles = choose_log_columns(table, columns, report, None)
        if columns.rating_scale is not None:
            check_scale(columns.rating_scale, self.roles, log.path)
        self.names = {role: name for role in CASTS if (name := getattr(self.roles, role))}
        self.types: dict[str, str] = {}
        self.cells: dict[str, Column] = {}
        self.casts: dict[str, dict[str, Column]] = {}
        for role, name in self.names.items():
            at = log.names.index(name)
            type_ = self.types[role] = dict(log.frame.dtypes)[f"c{at}"].partition("(")[0]
            self.cells[role] = cells = _cells(F.col(f"c{at}"), type_)
            self.casts[role] = CASTS[role](cells, type_)
            if not self.casts[role]:
                raise DataError(
                    f"{log.path}: column {name!r} is of type {type_} and cannot be the {role}: "
                    f"name another one with `{role}_column`"
                )
        self.counts: dict[Any, Any] = {}

    def some_items(self) -> pd.DataFrame:
        """Return some items of the log, by which a catalog with several ids chooses one."""
        items = self.log.frame.select(self.cells["item"].cast("string").alias("item"))
        texts = as_text(items.dropna().limit(SAMPLE).toPandas())
        return texts.set_axis([self.names["item"]], axis=1)

    def rows(self, item_ids: Ids | None) -> SparkLogRows:
        """Read the rows; item_ids: of the catalog, None for all that occur. Raise `DataError`."""
        self._count()
        types = {"user": "bigint" if self._are_whole("user") else "string", "item": "string"}
        types |= {"rating": "double", "weight": "double", "event": "string", "time": "bigint"}
        self._are_whole("item")
        columns = [self._cast(role).cast(types[role]).alias(role) for role in self.names]
        rows = self.log.frame.select(PART, ROW, *columns).withColumnRenamed("item", "item_text")
        rows, item_ids = self._with_items(rows, item_ids)
        if "event" in self.names:
            rows = self._with_event_weights(rows)
        cache, counts = self._usable(rows, item_ids)
        usable = cache.filter("skip IS NULL").drop("skip", "item_text")
        usable = usable.drop("event", *(role for role in self.names if not counts[role]))
        scale = self._scale(usable) if "rating" in usable.columns else None
        if "time" in usable.columns:
            n_filled, name = self.counts["time", "filled"][0], self.names["time"]
            in_units = {unit: self.counts.get(unit, 0) for unit in UNITS}
            note_units(in_units, n_filled, name, self.report)
            self.report.note(counts["rows"] - counts["time"], WITHOUT_TIME)
            usable = usable.fillna(UNKNOWN_TIME, ["time"])
        return SparkLogRows(
            usable,
            cache,
            item_ids,
            counts["rows"],
            counts["users"],
            self.roles.times_comparable,
            scale,
        )

    # --- cells ---

    def _count(self) -> None:
        """Count cells. Raise `DataError` where there is no row."""
        counted: dict[Any, Column] = {"rows": F.count(F.lit(1))}
        for role, cells in self.cells.items():
            texts = cells.cast("string")
            counted[role, "filled"] = _tally(texts)
            for kind, cast in self.casts[role].items():
                counted[role, kind] = _tally(F.when(cast.isNull(), texts))
        for role in ("user", "item"):
            [ids] = self.casts[role].values()
            whole = ids.rlike(rf"^({WHOLE_NUMBER.pattern})\z") & ids.try_cast("bigint").isNotNull()
            counted[role, "whole"] = _tally(F.when(whole, ids))
            counted[role, "pointed"] = _tally(F.when(ids.rlike(rf"^({WITH_POINT.pattern})\z"), ids))
        if SECONDS in self.casts.get("time", {}):
            number: Any = _numbers(self.cells["time"], self.types["time"])
            counted |= {"first time": F.min(number), "last time": F.max(number)}
            for unit, (low, high, _) in UNITS.items():
                counted[unit] = F.count_if((number >= low) & (number < high))
        row = self.log.frame.agg(*counted.values()).collect()[0]
        self.counts = dict(zip(counted, row, strict=True))
        self.report.read = self.counts["rows"]
        self.report.require_rows()
        filled = {self.names[role]: self.counts[role, "filled"] for role in self.names}
        self.report.columns = [
            facts.of(filled[facts.name][0], self.report.read, filled[facts.name][1] or "")
            for facts in self.report.columns
        ]

    def _kind(self, role: str) -> str:
        """Return what the cells of a role are cast to. Raise `DataError` where some cannot be."""
        kind = min(self.casts[role], key=lambda kind: self.counts[role, kind][0])
        self._refuse(role, kind, f"cannot be cast to {' or '.join(self.casts[role])}")
        if kind == SECONDS and self.counts["time", "filled"][0]:
            first, last = self.counts["first time"], self.counts["last time"]
            eight_digits = 10**7, 10**8  # 20240301
            if any(low <= first <= last < high for low, high in (SERIAL_DAYS, eight_digits)):
                self._refuse(
                    role, "filled", "may be dates, and {n:is|are} no seconds of this century"
                )
        return kind

    def _are_whole(self, role: str) -> bool:
        """Return whether all ids are whole numbers. Raise `DataError` for 7.0 beside 7."""
        filled, whole, pointed = (
            self.counts[role, what][0] for what in ("filled", "whole", "pointed")
        )
        if whole + pointed == filled:
            self._refuse(role, "pointed", "{n:is a whole number|are whole numbers} with a point")
        return bool(whole == filled)

    def _refuse(self, role: str, what: str, why: str) -> None:
        """Raise `DataError` if there are such cells. why: what they are, a format of `n`."""
        n_cells, example = self.counts[role, what]
        if n_cells:
            cells = quantity(self.counts[role, "filled"][0], "cell")
            why = why.format(n=Count(n_cells))
            raise DataError(
                f"{self.log.path}: column {self.names[role]!r} ({role}): {n_cells:,} of "
                f"{cells} {why}, such as {example!r}: clean the "
                f"column, name another one with `{role}_column`, or {ONE_MACHINE}"
            )

    def _cast(self, role: str) -> Column:
        """Return the cells of a role, cast; yes and no are the ends of a declared scale."""
        kind, scale = self._kind(role), self.columns.rating_scale
        cells = self.casts[role][kind]
        return (
            cells if kind != ANSWERS or scale is None else cells * (scale[1] - scale[0]) + scale[0]
        )

    # --- rows ---

    def _with_event_weights(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the weight of each event times the row's own, null without one."""
        counted = rows.dropna(subset=["user", "item", "event"]).groupBy("event").count()
        table = counted.limit(MAX_EVENTS).toArrow()
        texts, counts = table["event"].to_pylist(), table["count"].to_numpy()
        weights = event_weights(texts, counts, self.names["event"], self.columns, self.report)
        event: Any = F.lit(None).cast("double")
        for text, weight in zip(texts, weights.tolist(), strict=True):
            event = F.when(F.col("event") == text, weight).otherwise(event)
        own = F.coalesce("weight", F.lit(1.0)) if "weight" in self.names else F.lit(1.0)
        sign = F.when((event < 0) | (own < 0), -1.0).otherwise(1.0)
        rows = rows.withColumn("event_weight", event)
        return rows.withColumn("weight", F.abs(event * own) * sign)

    def _with_items(self, rows: DataFrame, item_ids: Ids | None) -> tuple[DataFrame, Ids]:
        """Return the rows with the number of each item, null where the catalog does not have it."""
        if item_ids is None:
            items = rows.select("item_text").distinct().filter(~_is_unusable("item_text"))
            texts = items.toArrow()["item_text"].drop_null()
            item_ids = Ids.sorted(texts.to_pylist())
            self.report.notes += filter(None, [case_note(item_ids.texts, "items")])
        item = np.arange(len(item_ids), dtype=np.int32)
        numbers = pa.table({"item_text": pa.array(item_ids.texts, pa.string()), "item": item})
        numbers = F.broadcast(rows.sparkSession.createDataFrame(numbers))
        return rows.join(numbers, "item_text", "left"), item_ids

    def _usable(self, rows: DataFrame, item_ids: Ids) -> tuple[DataFrame, dict[str, int]]:
        """Return the rows, kept by the executors, with the reason to skip each, null for usable
        ones; and counts of these. Raise `DataError` where there are none.
        """
        reasons = {
            "without a user": F.col("user").isNull(),
            "without an item": F.col("item_text").isNull(),
            UNUSABLE_REASON: _is_unusable("user") | _is_unusable("item_text"),
            "with an item that is not in the catalog": F.col("item").isNull(),
        }
        if self.columns.rating_scale is not None:
            low, high = self.columns.rating_scale
            outside = ~F.col("rating").between(low, high)
            reasons[f"with a rating outside {low:g} to {high:g}"] = outside
        if "event" in self.names:
            reasons["without an event"] = F.col("event").isNull()
            reasons["with an event of weight 0"] = F.col("event_weight") == 0
        skip = F.coalesce(*(F.when(is_so, reason) for reason, is_so in reasons.items()))
        rows = persisted(rows.withColumn("skip", skip).drop("event_weight"))
        counted = {"rows": F.count(F.lit(1)), "users": F.approx_count_distinct("user")}
        counted |= {role: F.count(role if role != "item" else "item_text") for role in self.names}
        aggregates = [column.alias(name) for name, column in counted.items()]
        grouped = rows.groupBy("skip").agg(*aggregates).collect()
        counts = {row["skip"]: row.asDict() for row in grouped}
        for reason in reasons:
            self.report.skip(reason, counts.get(reason, {"rows": 0})["rows"])
        self.report.intended = self.report.skipped["with an event of weight 0"]
        if None not in counts:
            items = rows.select("item_text").dropna().limit(SAMPLE).toArrow()["item_text"]
            shown = mismatch(np.array(items.unique().to_pylist(), dtype=object), item_ids)
            raise DataError(f"{self.log.path}: no usable rows; {self.report}{shown}")
        return rows, counts[None]

    def _scale(self, usable: DataFrame) -> Scale:
        """Return the scale of the ratings. Raise `DataError` where they may be no ratings."""
        values, numbers = np.zeros(0), np.zeros(0, np.int64)
        if self.columns.rating_scale is None:
            ratings = usable.dropna(subset=["rating"]).groupBy("rating").count()
            table = ratings.limit(MAX_RATINGS + 1).toArrow().sort_by("rating")
            if len(table) > MAX_RATINGS:
                raise DataError(
                    f"{self.log.path}: more than {MAX_RATINGS:,} different ratings: say on which "
                    "scale they are with `rating_scale`"
                )
            values, numbers = (table[name].to_numpy() for name in ("rating", "count"))
        stated = (0.0, 1.0) if self._kind("rating") == ANSWERS else None
        return decided_scale(values, numbers, self.roles, self.columns, self.report, stated)


def _cells(cells: Column, type_: str) -> Column:
    """Return cells, null where they are empty; texts without blanks around them."""
    if type_ in ("float", "double"):
        return F.nanvl(cells, F.lit(None)).cast("string").cast("double")  # 0.1 as it is written
    if type_ == TEXT:
        cells = F.btrim(cells, F.lit(BLANK))
        return F.when(cells != "", cells)
    return cells


def _is_unusable(name: str) -> Column:
    """Return whether an id is one that `is_usable_id` refuses."""
    return F.col(name).cast("string").rlike(UNUSABLE.pattern)


def _tally(cells: Column) -> Column:
    """Count cells, and take the least one as an example."""
    return F.struct(F.count(cells), F.min(cells))
