"""A log that Spark holds: read from files that never pass the driver, learned from in blocks."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch import __version__
from qkvsearch.collaborative.als import AlternatingLeastSquares
from qkvsearch.collaborative.confidences import Feedback, usual_by_sums
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.data.catalog import Catalog, catalog_from_frame, catalog_of_ids
from qkvsearch.data.columns import ColumnFacts, Columns, find_column
from qkvsearch.data.columns.names import named
from qkvsearch.data.ids import Ids
from qkvsearch.data.interactions import MergeCounts
from qkvsearch.data.ratings import Scale
from qkvsearch.data.readers import Dataset, Source, Table, load
from qkvsearch.data.report import ReadReport
from qkvsearch.engines.spark.folder import Folder, as_uri
from qkvsearch.engines.spark.histories import (
    HISTORIES,
    BlockHistory,
    LogShape,
    count_likes,
    count_pairs,
    find_likes,
    make_histories,
    place_users,
    unpack_ids,
    weigh_items,
)
from qkvsearch.engines.spark.learning.als import DistributedALS, added_up
from qkvsearch.engines.spark.learning.blocks import LogBlocks, n_blocks_of, runs_of
from qkvsearch.engines.spark.order import median_of
from qkvsearch.engines.spark.rows import SparkRows, read_log_rows
from qkvsearch.engines.spark.session import check_engine, spark_session
from qkvsearch.engines.spark.source import TextTable, kept, open_table
from qkvsearch.engines.spark.tables import array_of
from qkvsearch.errors import DataError
from qkvsearch.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Bytes of blocks that pass through the driver at a time.
AT_ONCE = 1 << 27
TABLE, FACTS = "histories", "log.json"


@dataclass(frozen=True)
class LogFacts:
    """What is known of a log once its rows are blocks. sizes: by block, how many users, pairs."""

    sizes: dict[int, tuple[int, int]]
    n_partitions: int
    integer: bool
    has: dict[str, bool]
    times_comparable: bool
    scale: Scale
    fold: bool


class SparkIds:
    """The ids of users in the order of their numbers, which only pass by."""

    def __init__(self, log: SparkLog) -> None:
        self._log = log
        self.integer, self.fold = log.facts.integer, log.facts.fold

    def __len__(self) -> int:
        return self._log.n_users

    def __iter__(self) -> Iterator[Any]:
        for row in self._log.rows(lambda frame: frame.select("ids"), a_user=40):
            yield from unpack_ids(row["ids"]).to_pylist()


class SparkLog:
    """As `stored.distributed.DistributedLog` says. frame: `histories.HISTORIES`, a block each."""

    def __init__(
        self,
        spark: SparkSession,
        frame: DataFrame,
        facts: LogFacts,
        item_ids: Ids,
        folder: Folder | None,
    ) -> None:
        self.spark, self.frame, self.facts, self.item_ids = spark, frame, facts, item_ids
        self.folder = folder

    @property
    def n_users(self) -> int:
        return sum(n for n, _ in self.facts.sizes.values())

    def __len__(self) -> int:
        return sum(n for _, n in self.facts.sizes.values())

    @property
    def user_ids(self) -> SparkIds:
        return SparkIds(self)

    @property
    def times_comparable(self) -> bool:
        return self.facts.times_comparable

    @property
    def arrays(self) -> list[str]:
        """Names of what there is beside users and items."""
        return [name for name, there in self.facts.has.items() if there]

    @cached_property
    def feedback(self) -> Feedback:
        if not self.facts.has["weights"]:
            return Feedback(self.facts.scale)
        weights = self.frame.select("items", "weights")
        median = median_of(weights, len(self.facts.sizes))
        n_items = len(self.item_ids)
        sums = added_up(weights.mapInArrow(weigh_items(n_items), "part binary"), self._n_blocks)
        return Feedback(self.facts.scale, *usual_by_sums(median, *sums.reshape(2, n_items)))

    @property
    def _n_blocks(self) -> int:
        return len(self.facts.sizes)

    @cached_property
    def _counted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of each item, those that count, and the three numbers of `count_pairs`."""
        n_items = len(self.item_ids)
        parts = self.frame.mapInArrow(count_pairs(self.feedback, n_items), "part binary")
        found = added_up(parts, self._n_blocks)
        return found[:n_items], found[n_items:-3], found[-3:]

    @property
    def item_counts(self) -> np.ndarray:
        return self._counted[0].astype(np.int32)

    @property
    def n_liking(self) -> np.ndarray:
        return self._counted[1].astype(np.int32)

    def histories(self) -> Iterator[BlockHistory]:
        """Block by block, in the order of the users."""
        for row in self.rows(lambda frame: frame, a_user=50, a_pair=20):
            yield BlockHistory.of(row)

    def rows(
        self, look: Callable[[DataFrame], DataFrame], a_user: int, a_pair: int = 0
    ) -> Iterator[dict[str, Any]]:
        """What `look` makes of the blocks, a row each, in their order, some at a time: about so
        many bytes for each of their users and pairs. Of what `toLocalIterator` gives, the driver's
        Java keeps everything.
        """
        from pyspark.sql import functions as F

        sizes = self.facts.sizes
        n_bytes = {block: a_user * n + a_pair * m for block, (n, m) in sorted(sizes.items())}
        for some in runs_of(n_bytes, AT_ONCE):
            table = look(self.frame.filter(F.col("block").between(some[0], some[-1]))).toArrow()
            for batch in table.to_batches():
                yield from batch.to_pylist()

    def learn(self, settings: Mapping[str, Any], progress: Progress) -> ImplicitFactors:
        """Preferences of this log, as `ImplicitALS` learns them."""

        def told(done: int, total: int) -> None:
            progress("learning preferences", done, total)

        model = AlternatingLeastSquares(**settings, random_state=0, callback=told)
        _, likes, (n_users, n_likes, confidence) = self._counted
        blocks = LogBlocks(
            frame=self.frame,
            n_partitions=self.facts.n_partitions,
            sizes={block: n for block, (n, _) in self.facts.sizes.items()},
            feedback=self.feedback,
            item_counts=likes.astype(np.int64),
            n_active_users=int(n_users),
            n_counting=int(n_likes),
            mean_confidence=float(confidence / max(n_likes, 1)),
        )
        checkpoint = None
        if self.folder is not None:
            key = hashlib.sha256(json.dumps(dict(settings), sort_keys=True).encode()).hexdigest()
            checkpoint = Folder(self.spark, self.folder.file(f"learned-{key[:12]}"))
        return DistributedALS(self.spark, model, checkpoint).fit(blocks)

    def likes_at(self, drawn: np.ndarray) -> np.ndarray:
        """The items (n,) of the likes at these places, of all likes in the order of the users."""
        counted = self.frame.mapInArrow(count_likes(self.feedback), "block int, n bigint").collect()
        counts = {row.block: row.n for row in counted}
        blocks = sorted(counts)
        ends = np.cumsum([counts[block] for block in blocks])
        at = np.searchsorted(ends, drawn, side="right")
        wanted = {
            blocks[place]: (drawn[at == place] - (ends[place] - counts[blocks[place]])).tolist()
            for place in np.unique(at).tolist()
        }
        found = self.frame.mapInArrow(find_likes(self.feedback, wanted), "block int, items binary")
        items = {row.block: array_of(row["items"], np.int32) for row in found.collect()}
        return np.concatenate([items[block] for block in sorted(items)])

    def directions(self, factors: ImplicitFactors) -> Iterator[np.ndarray]:
        """Users' embeddings (n, d) at length 1, block by block."""
        sent = self.spark.sparkContext.broadcast(factors)
        place, d = place_users(lambda: sent.value, self.feedback), factors.item_embeddings.shape[1]
        for row in self.rows(lambda frame: frame.mapInArrow(place, "part binary"), a_user=4 * d):
            yield array_of(row["part"], np.float32).reshape(-1, d)
        sent.destroy()

    def close(self) -> None:
        """Everything was learned: nothing is left of what an interrupted run would go on from."""
        self.frame.unpersist()
        if self.folder is not None:
            self.folder.remove()
            self.folder.parent.remove_if_empty()


@contextmanager
def read_on_spark(
    engine: str,
    items: Source | None,
    interactions: Source | None,
    columns: Columns | None = None,
    checkpoint: str | Path | None = None,
) -> Iterator[Dataset]:
    """A dataset whose log Spark holds, until the context ends. checkpoint: a folder that driver and
    executors share, in which an interrupted run is kept; None keeps none. Raises `QkvError`.
    """
    columns = columns or Columns()
    if interactions is None:
        raise DataError(
            "`engine` learns from `interactions`: name the file or folder that has them"
        )
    if (
        not isinstance(interactions, str | Path)
        or str(interactions) == "-"
        or "#" in str(interactions)
    ):
        raise DataError(
            "`engine` reads `interactions` from a file or folder of its own, by its path"
        )
    check_engine(engine)
    table = None if items is None else load(items, "items")
    with spark_session(engine) as spark:
        dataset = _LogReading(spark, table, str(interactions), columns, checkpoint).dataset()
        yield dataset
        dataset.interactions.close()  # type: ignore[union-attr]


@dataclass(frozen=True)
class _LogReading:
    spark: SparkSession
    items: Table | None
    path: str
    columns: Columns
    checkpoint: str | Path | None

    def dataset(self) -> Dataset:
        """Of an interrupted run the log is there already."""
        table = open_table(self.spark, self.path)
        sketch, counts, n_rows = table.sketch()
        reports, catalog = [], None
        if self.items is not None:
            frame, report = self.items
            catalog = catalog_from_frame(frame, self.columns, report, sketch)
            reports.append(report)
        else:
            self.columns.refuse(("id",), "items")
            self._refuse_titles(table.names)
        known = catalog.ids if catalog else None
        folder = self._folder(known)
        told = None if folder is None else folder.read_json(FACTS)
        if folder is None or told is None:
            rows = read_log_rows(table, self.columns, known, sketch, counts, n_rows)
            facts, frame = self._blocks(rows, table, n_rows)
            item_ids, report = rows.item_ids, table.report
            if folder is not None:
                folder.write_table(TABLE, frame)
                folder.write_json(FACTS, _stored(facts, report, [] if known else item_ids.texts))
        else:
            facts, report, texts = _restored(told)
            report.notes.append("the rows were read by the run that this one goes on with")
            item_ids = known or Ids(texts, self.columns.fold_ids)
        if folder is not None:
            table.drop()
            frame = kept(folder.read_table(TABLE).repartitionById(facts.n_partitions, "block"))
        log = SparkLog(self.spark, frame, facts, item_ids, folder)
        return self._concluded(catalog, log, [*reports, report])

    def _concluded(
        self, catalog: Catalog | None, log: SparkLog, reports: list[ReadReport]
    ) -> Dataset:
        for report in reports:
            report.conclude(self.columns.strict)
        return Dataset(catalog or catalog_of_ids(log.item_ids), log, reports)  # type: ignore[arg-type]

    def _blocks(self, rows: SparkRows, table: TextTable, n_rows: int) -> tuple[LogFacts, DataFrame]:
        """The rows of each user together, blocks of users in the order of their ids."""
        from pyspark.sql import functions as F

        cores = self.spark.sparkContext.defaultParallelism
        n_users = rows.frame.agg(F.approx_count_distinct("user")).collect()[0][0]
        n_blocks = n_blocks_of(n_rows, n_users, cores)
        self.spark.conf.set("spark.sql.shuffle.partitions", max(2 * cores, n_blocks))
        usual = 1.0
        if rows.has_weights:
            positive = rows.frame.filter("weight > 0 AND NOT isnan(weight)")
            usual = positive.agg(F.percentile("weight", 0.5)).collect()[0][0] or 1.0
        shape = LogShape(
            len(rows.item_ids), rows.integer_users, rows.has_ratings, rows.has_weights,
            rows.has_times, usual,
        )  # fmt: skip
        parts = rows.frame.repartitionByRange(n_blocks, "user")
        frame = table.keep(parts.mapInArrow(make_histories(shape), HISTORIES))
        found = frame.select("block", "n_users", "n_pairs", "counts").collect()
        counted = sum((MergeCounts(**json.loads(row.counts)) for row in found), MergeCounts())
        counted.say(table.report)
        sizes = {row.block: (row.n_users, row.n_pairs) for row in found}
        has = {"ratings": rows.has_ratings, "times": rows.has_times, "weights": rows.has_weights}
        facts = LogFacts(
            sizes, n_blocks, rows.integer_users, has, rows.times_comparable, rows.scale,
            self.columns.fold_ids,
        )  # fmt: skip
        return facts, frame

    def _refuse_titles(self, names: list[str]) -> None:
        """Raise `DataError` where the log itself names its items: that takes a look at all rows."""
        item = find_column("item", self.columns.item, names, self.path)
        titles = [self.columns.title] if self.columns.title else named("title", names)
        for title in titles:
            if title != item:
                raise DataError(
                    f"{self.path}: column {title!r} may name the items: with `engine`, give "
                    "`items` as a file of their own"
                )
        self.columns.refuse(("text",), "items")
        if self.columns.types:
            raise DataError("`types` is of the columns of `items`, which were not given")

    def _folder(self, known: Ids | None) -> Folder | None:
        """For this log, these options and this catalog."""
        if self.checkpoint is None:
            return None
        size_and_time = Folder(self.spark, self.path).size_and_time()
        said = [__version__, self.path, *size_and_time, repr(self.columns), known and known.texts]
        key = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
        return Folder(self.spark, f"{as_uri(self.checkpoint).rstrip('/')}/{key}")


def _stored(facts: LogFacts, report: ReadReport, items: list[str]) -> dict[str, Any]:
    sizes = [[block, *size] for block, size in facts.sizes.items()]
    # `asdict` would count the pairs of a Counter.
    said = {**asdict(replace(report, skipped=Counter())), "skipped": dict(report.skipped)}
    return {"facts": {**asdict(facts), "sizes": sizes}, "report": said, "items": items}


def _restored(told: Mapping[str, Any]) -> tuple[LogFacts, ReadReport, list[str]]:
    facts = dict(told["facts"])
    facts["sizes"] = {block: (users, pairs) for block, users, pairs in facts["sizes"]}
    facts["scale"] = facts["scale"] and tuple(facts["scale"])
    report = dict(told["report"])
    report["columns"] = [ColumnFacts(**column) for column in report["columns"]]
    report["skipped"] = Counter(report["skipped"])
    return LogFacts(**facts), ReadReport(**report), told["items"]
