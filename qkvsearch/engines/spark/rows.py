"""Rows of a log on Spark, by the rules of `data.log`: what is skipped, counted and read how."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from qkvsearch.data.columns import Columns
from qkvsearch.data.columns.choice import LogChoice, choose_log_columns
from qkvsearch.data.columns.times import MISSING, WITHOUT_TIME, note_units, seconds_of
from qkvsearch.data.columns.types import typed_distinct
from qkvsearch.data.files.encoded import EncodedTable
from qkvsearch.data.ids import Ids, case_note, identified
from qkvsearch.data.log import LARGEST, check_scale, decided_feedback, mismatch
from qkvsearch.data.ratings import Scale
from qkvsearch.engines.spark.cells import ROW, SKIP
from qkvsearch.engines.spark.reading import (
    FIRST_REASON,
    OF_NUMBERS,
    ROWS,
    SPELLINGS,
    TIMED,
    RowReading,
    alone,
    fold_users,
    look_at_ids,
    look_at_numbers,
    look_at_times,
    read_rows,
    read_times,
)
from qkvsearch.engines.spark.source import SKIPPED, TextTable, facts_of
from qkvsearch.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Different cells that the driver looks at, of a column in which only all together tell how they are
# read.
MOST_DISTINCT = 1_000_000
# Items by which a log of none that is known is told from its catalog.
MOST_SHOWN = 100_000
WHOLE = r"^(0|-?[1-9][0-9]{0,18})\z"
WHOLE_OR_POINT = r"^(0|-?[1-9][0-9]{0,18})(\.0+)?\z"


@dataclass(frozen=True)
class SparkRows:
    """Usable rows: `row` bigint, `user` string or bigint, `item` int, `rating`, `weight` double,
    `time` bigint.
    """

    frame: DataFrame
    item_ids: Ids
    integer_users: bool
    has_ratings: bool
    has_weights: bool
    has_times: bool
    times_comparable: bool
    scale: Scale


def read_log_rows(
    table: TextTable, columns: Columns, item_ids: Ids | None, sketch: EncodedTable,
    counts: dict[str, int], n_rows: int,
) -> SparkRows:  # fmt: skip
    """The rows of a log, as `data.log.rows_from_frame` reads them; the report of the table says
    what became of each. Raises `DataError`.
    """
    report = table.report
    report.read = n_rows
    report.require_rows()
    roles = choose_log_columns(sketch, columns, report, item_ids)
    n_fitting = max(n_rows, 1)
    report.columns = [
        replace(facts, empty=round(1 - counts[facts.name] / n_fitting, 4))
        for facts in report.columns
    ]
    if columns.rating_scale is not None:
        check_scale(columns.rating_scale, roles, report.file)
    return _RowsReader(table, columns, roles, item_ids).rows()


class _RowsReader:
    """Reads the columns of one log, step by step."""

    def __init__(
        self, table: TextTable, columns: Columns, roles: LogChoice, item_ids: Ids | None
    ) -> None:
        self.table, self.columns, self.roles, self.item_ids = table, columns, roles, item_ids
        self.report = table.report
        self.of_items: list[str] = []
        self.named = {
            role: name
            for role in ("user", "item", "rating", "weight", "time")
            if (name := getattr(roles, role)) is not None
        }
        self.cells = table.cells(list(self.named.values()))
        self.place = {role: f"c{at}" for at, role in enumerate(self.named)}

    def rows(self) -> SparkRows:
        from pyspark.sql import functions as F

        read = self.table.keep(self.cells.mapInArrow(read_rows(self._reading()), ROWS))
        self._count_skipped(read)
        usable = read.filter(F.col(SKIP) == 0)
        ratings, weights, scale = self._feedback(usable)
        usable = usable.select(
            F.col(ROW).alias("row"), "user", "item", "item_text",
            (F.col(ratings) if ratings else F.lit(None).cast("double")).alias("rating"),
            (F.col(weights) if weights else F.lit(None).cast("double")).alias("weight"),
            "time_text",
        )  # fmt: skip
        usable, has_times = self._with_times(usable)
        usable, ids = self._with_items(usable)
        usable, integer = self._with_users(usable)
        self.report.notes += self.of_items
        return SparkRows(
            usable.select("row", "user", "item", "rating", "weight", "time"),
            ids, integer, ratings is not None, weights is not None, has_times,
            self.roles.times_comparable, scale,
        )  # fmt: skip

    # --- cells to rows ---

    def _reading(self) -> RowReading:
        numbers = {role: self._numbers(role) for role in self.named if role in OF_NUMBERS}
        whole_items = False
        if self.item_ids is not None:
            facts = facts_of(self.cells.filter(f"{SKIP} = 0"), look_at_ids(self.place["item"]))
            pointed = any(fact["pointed"] for fact in facts)
            whole_items = pointed and all(fact["whole"] for fact in facts)
        return RowReading(
            places=self.place,
            numbers=numbers,
            item_ids=self.item_ids,
            whole_items=whole_items,
            rating_scale=self.columns.rating_scale,
        )

    def _numbers(self, role: str) -> dict[str, float] | None:
        """How the cells of a column are read, None where all are plain numbers."""
        place, name = self.place[role], self.named[role]
        there = self.cells.filter(f"{SKIP} = 0")
        if not any(fact["odd"] for fact in facts_of(there, look_at_numbers(place))):
            return None
        texts, counts, _ = self._distinct(there.select(ROW, there[place].alias("cell")), name)
        found = typed_distinct(texts, counts, "number")
        self.report.changed(name, found.changed)
        numbers = found.cells.astype(float).mask(found.unfit, np.inf)
        return dict(zip(texts, numbers.fillna(np.nan), strict=True))

    def _distinct(self, cells: DataFrame, name: str) -> tuple[pd.Series, np.ndarray, np.ndarray]:
        """The distinct cells of a column in the order of their first rows, how many of each there
        are, and those rows. Raises `DataError` for too many.
        """
        from pyspark.sql import functions as F

        found = (
            cells.filter("cell IS NOT NULL").groupBy("cell")
            .agg(F.count(F.lit(1)).alias("n"), F.min(ROW).alias("row"))
        )  # fmt: skip
        if found.count() > MOST_DISTINCT:
            raise DataError(
                f"{self.report.file}: column {name!r} has more than {MOST_DISTINCT:,} different "
                "cells that only all together tell how they are read; with `engine`, write plain "
                "numbers, and times in ISO 8601 or as seconds"
            )
        rows = found.toArrow().to_pandas().sort_values("row")
        texts = pd.Series(rows["cell"].to_numpy(object), dtype=object, name=name)
        return texts, rows["n"].to_numpy(np.int64), rows["row"].to_numpy(np.int64)

    def _count_skipped(self, read: DataFrame) -> None:
        """Raises `DataError` where no row is left."""
        from pyspark.sql import functions as F

        grouped = read.groupBy(SKIP).agg(F.count(F.lit(1)).alias("n"), F.min(ROW).alias("row"))
        found = {row[SKIP]: row for row in grouped.collect()}
        reasons = {**SKIPPED, **self._reasons()}
        for code in sorted(reasons.keys() & found.keys()):
            self.report.skip(reasons[code], int(found[code]["n"]))
            self.report.first_rows.setdefault(reasons[code], int(found[code]["row"]))
        self.report.read = sum(int(row["n"]) for row in found.values())
        if 0 not in found:
            said = mismatch(self._first_items(), self.item_ids)
            raise DataError(f"{self.report.file}: no usable rows; {self.report}{said}")

    def _first_items(self) -> np.ndarray:
        """Some different items of the log, objects, in the order of the rows."""
        place = self.place["item"]
        there = self.cells.filter(f"{SKIP} = 0 AND {place} IS NOT NULL").orderBy(ROW)
        found = there.limit(MOST_SHOWN).select(place).toArrow().to_pandas()
        return np.asarray(found[place].drop_duplicates(), dtype=object)

    def _reasons(self) -> dict[int, str]:
        found = {
            FIRST_REASON: "without a user",
            FIRST_REASON + 1: "without an item",
            FIRST_REASON + 2: "with an item that is not in the catalog",
        }
        for at, what in enumerate(("rating", "weight")):
            code = FIRST_REASON + 3 + 3 * at
            found[code] = f"with a {what} that is not a number"
            found[code + 1] = f"with a {what} beyond ±{LARGEST:g}"
            if what == "rating" and self.columns.rating_scale is not None:
                low, high = self.columns.rating_scale
                found[code + 2] = f"with a rating outside {low:g} to {high:g}"
        return found

    # --- what the numbers mean ---

    def _feedback(self, usable: DataFrame) -> tuple[str | None, str | None, Scale]:
        """Which column has the ratings, and which the weights; and the scale of the ratings."""
        from pyspark.sql import functions as F

        there = usable.agg(
            *(F.count(F.nanvl(role, F.lit(None))).alias(role) for role in ("rating", "weight"))
        )
        n = there.collect()[0]
        has_weights = n["weight"] > 0
        if not n["rating"]:
            return None, "weight" if has_weights else None, None
        known = usable.filter("rating IS NOT NULL AND NOT isnan(rating)").groupBy("rating").count()
        values = np.zeros(0)
        numbers = values
        if self.columns.rating_scale is None:
            if known.count() > MOST_DISTINCT:
                raise DataError(
                    f"{self.report.file}: more than {MOST_DISTINCT:,} different ratings: say on "
                    "which scale they are with `rating_scale`"
                )
            found = known.toArrow().to_pandas()
            values, numbers = found["rating"].to_numpy(float), found["count"].to_numpy(np.int64)
        kept, scale = decided_feedback(
            values, numbers, has_weights, self.roles, self.columns, self.report
        )
        if kept == "rating":
            return "rating", "weight" if has_weights else None, scale
        return None, "weight" if has_weights else "rating", None

    # --- times ---

    def _with_times(self, usable: DataFrame) -> tuple[DataFrame, bool]:
        from pyspark.sql import functions as F

        nothing = usable.withColumn("time", F.lit(None).cast("bigint")).drop("time_text")
        if "time" not in self.named:
            return nothing, False
        name = self.named["time"]
        facts = facts_of(usable.select("time_text"), look_at_times())
        if not any(fact["n"] for fact in facts):
            return nothing, False
        how, meaning = alone(facts), None
        if how == "numbers":
            units: Counter[str] = Counter()
            for fact in facts:
                units.update(fact["units"])
            note_units(units, sum(fact["n"] for fact in facts), name, self.report)
        elif not how:
            meaning = self._meaning_of_times(usable, name)
        timed = usable.mapInArrow(read_times(how, meaning), TIMED)
        found = timed.agg(F.min("time").alias("first"), F.count("time").alias("n")).collect()[0]
        if not found["n"]:
            return nothing, False
        self.report.note(timed.count() - found["n"], WITHOUT_TIME)
        filled = F.coalesce("time", F.lit(found["first"] - 1)).alias("time")
        return timed.select(*[one for one in timed.columns if one != "time"], filled), True

    def _meaning_of_times(self, usable: DataFrame, name: str) -> dict[str, int | None]:
        """Of cells that only all together tell how they are read."""
        from pyspark.sql import functions as F

        cells = usable.select(F.col("row").alias(ROW), F.col("time_text").alias("cell"))
        texts, counts, rows = self._distinct(cells, name)
        seconds = seconds_of(texts.set_axis(rows), counts, self.report)
        return {
            text: None if second == MISSING else second
            for text, second in zip(texts, seconds.tolist(), strict=True)
        }

    # --- ids ---

    def _with_items(self, usable: DataFrame) -> tuple[DataFrame, Ids]:
        if self.item_ids is not None:
            return usable, self.item_ids
        from pyspark.sql import functions as F

        cells = usable.select(F.col("row").alias(ROW), F.col("item_text").alias("cell"))
        grouped = cells.groupBy("cell").agg(F.count(F.lit(1)).alias("n"), F.min(ROW).alias("row"))
        found = grouped.toArrow().to_pandas().sort_values("row")
        texts = pd.Series(found["cell"].to_numpy(object), dtype=object)
        if not self.columns.fold_ids and (note := case_note(texts.tolist(), "items")):
            self.of_items = [note]
        counts = found["n"].to_numpy(np.int64)
        codes, ids = identified(texts, counts, fold=self.columns.fold_ids)
        known = self.table.spark.createDataFrame(
            pa.table({"item_text": pa.array(texts.tolist()), "code": pa.array(codes, pa.int32())})
        )
        joined = (
            usable.join(F.broadcast(known), "item_text")
            .drop("item")
            .withColumnRenamed("code", "item")
        )
        return joined, ids

    def _with_users(self, usable: DataFrame) -> tuple[DataFrame, bool]:
        """Users in the one spelling of their ids, as numbers where all are whole."""
        from pyspark.sql import functions as F

        fits = F.col("user").rlike(WHOLE_OR_POINT)
        bare = F.regexp_replace("user", r"\.0+\z", "")
        fits &= F.expr(r"try_cast(regexp_replace(user, '\\.0+\\z', '') AS bigint)").isNotNull()
        facts = usable.agg(
            F.bool_and(fits).alias("whole"),
            F.bool_or(F.col("user").endswith(".0")).alias("pointed"),
            F.bool_and(fits & F.col("user").rlike(WHOLE)).alias("plain"),
        ).collect()[0]
        if facts["plain"] or (facts["pointed"] and facts["whole"]):
            return usable.withColumn("user", bare.cast("bigint")), True
        if self.columns.fold_ids:
            return self._folded(usable), False
        self._note_cases(usable)
        return usable, False

    def _spellings(self, usable: DataFrame) -> DataFrame:
        """Each spelling of a user's id (`user`, `key` without case), how often, and where first."""
        from pyspark.sql import functions as F

        found = usable.groupBy("user").agg(F.count(F.lit(1)).alias("n"), F.min("row").alias("row"))
        return found.mapInArrow(fold_users(), SPELLINGS)

    def _folded(self, usable: DataFrame) -> DataFrame:
        """Ids that differ in case alone as the most common of them, of equally common the first."""
        from pyspark.sql import functions as F

        found = self._spellings(usable)
        rank = F.struct(F.col("n"), (-F.col("row")).alias("row"), F.col("user"))
        best = found.groupBy("key").agg(F.max(rank).alias("best"))
        chosen = found.join(best, "key").select("user", F.col("best.user").alias("chosen"))
        return usable.join(chosen, "user").drop("user").withColumnRenamed("chosen", "user")

    def _note_cases(self, usable: DataFrame) -> None:
        """How many ids would join if upper and lower case were equal."""
        from pyspark.sql import functions as F

        first = F.sort_array(F.collect_list(F.struct("row", "user"))).alias("all")
        alike = self._spellings(usable).groupBy("key").agg(first).filter(F.size("all") > 1)
        example = F.struct(
            F.col("all")[1]["row"].alias("row"),
            F.col("all")[0]["user"].alias("one"),
            F.col("all")[1]["user"].alias("other"),
        )
        n_joined = F.sum(F.size("all") - 1).alias("n")
        counted = alike.agg(n_joined, F.min(example).alias("example")).collect()[0]
        if counted["n"]:
            one, other = counted["example"]["one"], counted["example"]["other"]
            self.report.notes.append(case_note([one, other], "users", int(counted["n"])))
