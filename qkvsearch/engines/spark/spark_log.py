"""A log that Spark holds: what a build reads from it and learns from it.

Its rows never pass through the driver. Its blocks do, some at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress
from qkvsearch.engines.spark.als import LogBlocks, fit
from qkvsearch.engines.spark.blocks import (
    HISTORIES,
    BlockHistory,
    make_histories,
    n_blocks_of,
    persisted,
    runs_of,
    usual_weights,
)
from qkvsearch.engines.spark.session import check_engine, spark_session
from qkvsearch.engines.spark.source import LogFile, RowReader, SparkLogRows, open_log
from qkvsearch.errors import DataError
from qkvsearch.models.confidences import Feedback
from qkvsearch.models.implicit_als import AlternatingLeastSquares
from qkvsearch.models.user_vectors import ImplicitFactors
from qkvsearch.tables.catalog import catalog_of_ids
from qkvsearch.tables.columns import Columns, named
from qkvsearch.tables.dataset import Dataset, Source, catalog_of, load_items
from qkvsearch.tables.ids import Ids
from qkvsearch.tables.interactions import MergeCounts
from qkvsearch.tables.ratings import Scale
from qkvsearch.tables.report import ReadReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Bytes of blocks that pass through the driver at a time.
MAX_PASSING = 1 << 27


@dataclass(frozen=True)
class LogFacts:
    """What is known of a log whose rows are in blocks. sizes: by block, how many users and pairs.
    integer: user ids are whole numbers. arrays: of "ratings", "times" and "weights" those it has.
    """

    sizes: dict[int, tuple[int, int]]
    integer: bool
    arrays: list[str]
    times_comparable: bool
    scale: Scale


class SparkLog:
    """A log in blocks of users, of which nothing that grows with users is here.

    frame: rows of `blocks.HISTORIES`, a block each.
    """

    def __init__(
        self, spark: SparkSession, frame: DataFrame, facts: LogFacts, item_ids: Ids
    ) -> None:
        self.spark, self.frame, self.facts, self.item_ids = spark, frame, facts, item_ids

    @property
    def n_users(self) -> int:
        return sum(n for n, _ in self.facts.sizes.values())

    def __len__(self) -> int:
        return sum(n for _, n in self.facts.sizes.values())

    @property
    def user_ids(self) -> Any:
        return SparkIds(self)

    @cached_property
    def feedback(self) -> Feedback:
        usual: tuple[Any, ...] = ()
        if "weights" in self.facts.arrays:
            n_blocks = len(self.facts.sizes)
            usual = usual_weights(self.frame, n_blocks, len(self.item_ids))
        return Feedback(self.facts.scale, *usual)

    @cached_property
    def blocks(self) -> LogBlocks:
        sizes = {block: n for block, (n, _) in self.facts.sizes.items()}
        return LogBlocks(self.frame, sizes, self.feedback, len(self.item_ids))

    def histories(self) -> Iterator[BlockHistory]:
        """Iterate over the blocks, in the order of the users."""
        for row in self.rows(lambda frame: frame, bytes_per_user=50, bytes_per_pair=20):
            yield BlockHistory.of(row)

    def rows(
        self,
        select: Callable[[DataFrame], DataFrame],
        bytes_per_user: int,
        bytes_per_pair: int = 0,
    ) -> Iterator[dict[str, Any]]:
        """Iterate over what `select` makes of the blocks, a row each, in their order, some blocks
        at a time. (With `toLocalIterator` the driver's Java would keep all of them.)
        """
        n_bytes = {
            block: bytes_per_user * n_users + bytes_per_pair * n_pairs
            for block, (n_users, n_pairs) in sorted(self.facts.sizes.items())
        }
        for run in runs_of(n_bytes, MAX_PASSING):
            blocks = self.frame.filter(f"block BETWEEN {run[0]} AND {run[-1]}")
            for batch in select(blocks).toArrow().to_batches():
                yield from batch.to_pylist()

    def learn(self, settings: Mapping[str, Any], progress: Progress) -> ImplicitFactors:
        """Learn preferences as `ImplicitALS` does."""

        def callback(done: int, total: int) -> None:
            progress("learning preferences", done, total)

        model = AlternatingLeastSquares(**settings, random_state=0, callback=callback)
        return fit(self.spark, model, self.blocks)

    def close(self) -> None:
        """Let go of everything."""
        self.frame.unpersist()


class SparkIds:
    """The ids of a log's users, in the order of their numbers. They pass through the driver."""

    fold = False

    def __init__(self, log: SparkLog) -> None:
        self._log, self.integer = log, log.facts.integer

    def __len__(self) -> int:
        return self._log.n_users

    def __iter__(self) -> Iterator[int | str]:
        for row in self._log.rows(lambda frame: frame.select("ids"), bytes_per_user=40):
            yield from map(int, row["ids"]) if self.integer else row["ids"]


@contextmanager
def read_on_spark(
    engine: str,
    items: Source | None,
    interactions: Source | None,
    columns: Columns | None = None,
    join: Source | None = None,
) -> Iterator[Dataset]:
    """Read a dataset whose log Spark holds until the context ends. join: tables that add columns to
    the items. Raise `QkvError`.
    """
    columns = columns or Columns()
    if interactions is None:
        raise DataError("`engine` learns from `interactions`: name the file or folder of a log")
    if isinstance(interactions, list) and len(interactions) == 1:
        interactions = interactions[0]
    path = str(interactions)
    if not isinstance(interactions, str | Path) or path == "-" or "#" in path:
        raise DataError(
            "`engine` reads `interactions` from one file, or a folder of files: give its path"
        )
    if columns.fold_ids:
        raise DataError(
            "`fold_ids` is for one machine: write the ids in one case, or leave out `engine`"
        )
    if columns.layout not in (None, "rows"):
        raise DataError(
            "`engine` reads logs whose `layout` is rows: leave out `layout` or `engine`"
        )
    check_engine(engine)
    read, details = load_items(items, columns, join)
    with spark_session(engine) as spark:
        report = ReadReport(Path(path).name)
        reader = RowReader(open_log(spark, path), columns, report)
        catalog, reports = None, []
        if read is not None:
            catalog = catalog_of(read, details, columns, reader.some_items())
            reports += [read[1], *(each for _, each in details)]
        else:
            columns.refuse(("id",), "items")
            _refuse_titles(reader.log, reader.names["item"], columns)
        ids = catalog.ids if catalog else None
        rows = reader.rows(ids)
        facts, log_frame = _make_blocks(spark, rows, report)
        rows.cache.unpersist()
        spark_log = SparkLog(spark, log_frame, facts, rows.item_ids)
        reports.append(report)
        for report in reports:
            report.conclude(columns.strict)
        yield Dataset(catalog or catalog_of_ids(spark_log.item_ids), spark_log, reports)
        spark_log.close()


def _refuse_titles(log: LogFile, item: str, columns: Columns) -> None:
    """Raise `DataError` where the log names its items: all rows would have to be looked at."""
    titles = [columns.title] if columns.title else named("title", log.names)
    for title in titles:
        if title != item:
            raise DataError(
                f"{log.path}: column {title!r} may name the items: with `engine`, give `items` as "
                "a file of their own"
            )
    columns.refuse(("text",), "items")
    if columns.types:
        raise DataError("`types` is of the columns of `items`, which were not given")


def _make_blocks(
    spark: SparkSession, rows: SparkLogRows, report: ReadReport
) -> tuple[LogFacts, DataFrame]:
    """Bring the rows of each user together, in blocks in the order of the users' ids."""
    columns, n_items = dict(rows.frame.dtypes), len(rows.item_ids)
    usual = None
    if "weight" in columns:
        positive = rows.frame.filter("weight > 0")
        usual = positive.selectExpr("percentile(weight, 0.5)").collect()[0][0]
    cores = spark.sparkContext.defaultParallelism
    n_blocks = n_blocks_of(rows.n_rows, rows.n_users, cores)
    make = make_histories(n_items, usual or 1.0)
    parts = rows.frame.repartitionByRange(n_blocks, "user")
    frame = persisted(parts.mapInArrow(make, HISTORIES))
    blocks = frame.select("block", "n_users", "n_pairs", "counts").collect()
    sum((MergeCounts(**json.loads(row.counts)) for row in blocks), MergeCounts()).add_to(report)
    arrays = [f"{name}s" for name in ("rating", "time", "weight") if name in columns]
    sizes = {row.block: (row.n_users, row.n_pairs) for row in blocks}
    integer = columns["user"] == "bigint"
    return LogFacts(sizes, integer, arrays, rows.times_comparable, rows.scale), frame
