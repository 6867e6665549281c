"""Spark beside one machine: what distribution costs, and what it must not change.

A standalone cluster on the loopback address, two executors of one core and 3 GB each; one machine
has two threads. An iteration is the difference between fits of four iterations and of one, so that
neither reading nor starting is in it. MLlib's ALS learns in the same cluster from the same pairs,
at the same rank, as implicit feedback. The log of ten million pairs is made: popularity falls with
a power of the rank. Memory is the most that the driver's process has had; its Java machine is told
to keep to 1 GB, so that what grows there would end it.

QKVSEARCH_DATA=data python benchmarks --only spark_scale
(an hour; needs qkvsearch[spark] and Java; the part `driver` alone is half of it)
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix

from benchmarks.support.public_data import data_folder, read_positives
from benchmarks.support.quality import ndcg_of
from benchmarks.support.results import Row, read
from benchmarks.support.script import main
from benchmarks.support.spark_cluster import Cluster, cluster
from qkvsearch.engines.spark.als import BROADCAST_VARIABLE, MAX_BROADCAST
from qkvsearch.engines.spark.blocks import n_blocks_of
from qkvsearch.models.estimators import ImplicitALS

PAIRS, USERS, ITEMS, D = 10_000_000, 200_000, 20_000, 64
ML_1M_SHAPE = (6040, 3883)
TURNS, ITERATIONS = 3, 2
GIGABYTES = 3
SENT = "on Spark, users sent to the blocks that need them"
NO_LONGER = "share of one machine's scores within 1e-3"


@cache
def folder() -> Path:
    return Path(mkdtemp(prefix="spark-scale-"))


def write_log(n_pairs: int, n_users: int, n_items: int) -> Path:
    """A made log in Parquet, block by block."""
    path = folder() / f"log-{n_pairs}-{n_users}.parquet"
    rng, schema = np.random.default_rng(0), pa.schema([("user", pa.int32()), ("item", pa.int32())])
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, n_pairs, 1 << 20):
            n = min(1 << 20, n_pairs - start)
            users = n_users * rng.random(n) ** 1.3
            items = n_items * rng.random(n) ** 3
            columns = [pa.array(column.astype(np.int32)) for column in (users, items)]
            file.write_table(pa.Table.from_arrays(columns, schema=schema))
    items = pa.table({"id": range(n_items), "title": [f"thing {k}" for k in range(n_items)]})
    pq.write_table(items, folder() / f"items-{n_items}.parquet")
    return path


@contextmanager
def started() -> Iterator[Cluster]:
    logs = Path(mkdtemp(prefix="cluster-"))
    with cluster(logs, gigabytes=GIGABYTES) as found:
        for name in ("SPARK_LOCAL_IP", "PYTHONPATH", "PYSPARK_SUBMIT_ARGS"):
            os.environ[name] = found.environment[name]
        yield found


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def an_iteration(fit: Callable[[int], Any]) -> float:
    return (seconds(lambda: fit(4)) - seconds(lambda: fit(1))) / 3


# --- an iteration ---


def iterations() -> list[Row]:
    """One machine, Spark and MLlib, turn by turn."""
    from benchmarks.support.spark_als import SparkALS
    from qkvsearch.engines.spark.session import spark_session

    path = write_log(PAIRS, USERS, ITEMS)
    table = pq.read_table(path)
    pairs = [table.column(name).to_numpy() for name in ("user", "item")]
    matrix = csr_matrix((np.ones(len(table), np.float32), tuple(pairs)), shape=(USERS, ITEMS))
    matrix.data[:] = 1
    with started() as running, spark_session(running.master) as spark:
        log = spark.read.parquet(path.as_uri()).distinct().persist()
        log.count()

        def on_spark(n: int) -> Any:
            return SparkALS(spark, n_components=D, max_iter=n, random_state=0).fit(matrix)

        systems = {
            "on Spark, two executors": on_spark,
            SENT: lambda n: with_users_sent(lambda: on_spark(n)),
            "on one machine, two threads": lambda n: ImplicitALS(
                D, max_iter=n, n_threads=2, random_state=0
            ).fit(matrix),
            "MLlib's ALS, the same cluster": lambda n: mllib(log, D, n),
        }
        for fit in systems.values():
            fit(1)
        took = {name: [an_iteration(fit) for _ in range(TURNS)] for name, fit in systems.items()}
    medians = {name: float(np.median(turns)) for name, turns in took.items()}
    ours = medians["on Spark, two executors"]
    task = f"one iteration, {PAIRS // 10**6} million pairs, {D} components"
    return [
        Row(task, name, seconds=median, ratio=median / ours) for name, median in medians.items()
    ]


def with_users_sent(fit: Callable[[], Any]) -> None:
    """As where there are too many users for a broadcast."""
    os.environ[BROADCAST_VARIABLE] = "0"
    try:
        fit()
    finally:
        del os.environ[BROADCAST_VARIABLE]


def mllib(log: Any, rank: int, n_iterations: int, **more: Any) -> Any:
    from pyspark.ml.recommendation import ALS
    from pyspark.sql import functions as F

    learner = ALS(
        rank=rank, maxIter=n_iterations, implicitPrefs=True, userCol="user", itemCol="item",
        ratingCol="rating", seed=0, **more,
    )  # fmt: skip
    model = learner.fit(log.withColumn("rating", F.lit(1.0)))
    model.itemFactors.count()
    return model


# --- quality ---


def quality() -> list[Row]:
    """MovieLens-1M as positives: NDCG@20 of what each learned."""
    from benchmarks.support.spark_als import SparkALS
    from qkvsearch.engines.spark.session import spark_session

    files = data_folder() / "ml-1m-implicit"
    train, test = (
        read_positives(next(files.glob(f"*{p}*")), ML_1M_SHAPE) for p in ("train", "test")
    )
    task, metric = "MovieLens-1M as positives", "NDCG@20"

    def judged(model: Any) -> float:
        items = model.item_embeddings_.T

        def score(rows: slice) -> np.ndarray:
            embeddings = model.factors_.fold_in_many(train[rows]).astype(np.float32)
            return np.asarray(embeddings @ items)

        return ndcg_of(score, train, test)

    with started() as running, spark_session(running.master) as spark:
        there = SparkALS(spark, n_components=D, random_state=0).fit(train)
        users, items = train.nonzero()
        log = spark.createDataFrame(
            pa.table({"user": pa.array(users, pa.int32()), "item": pa.array(items, pa.int32())})
        )
        peer = mllib(log.persist(), D, 10)
        peer_items = factors(peer.itemFactors, ML_1M_SHAPE[1])
        peer_users = factors(peer.userFactors, ML_1M_SHAPE[0])
    here = ImplicitALS(D, random_state=0).fit(train)
    by_peer = ndcg_of(lambda rows: peer_users[rows] @ peer_items.T, train, test)
    return [
        Row(task, "on Spark", metric, judged(there)),
        Row(task, "on one machine", metric, judged(here)),
        Row(task, "MLlib's ALS by its defaults", metric, by_peer),
    ]


def factors(frame: Any, n: int) -> np.ndarray:
    """The embeddings (n, d) of MLlib, zeros for who is not there."""
    rows = frame.toArrow()
    found = np.zeros((n, D), np.float32)
    found[rows.column("id").to_numpy()] = np.array(rows.column("features").to_pylist(), np.float32)
    return found


# --- the driver ---


def driver() -> list[Row]:
    """The most memory of the driver's process in a build, of one and of ten million users; of
    ITERATIONS iterations, for these take the time, and no more memory.
    """
    rows = []
    with started() as running:
        for n_users in (1_000_000, 10_000_000):
            log = write_log(2 * n_users, n_users, ITEMS)
            peak = peak_of(
                running, "-w", folder() / f"ws-{n_users}", "build", "--items",
                folder() / f"items-{ITEMS}.parquet", "--interactions", log, "--encoder", "corpus",
                "--engine", running.master,
            )  # fmt: skip
            name = f"{n_users // 10**6} million users, {2 * n_users // 10**6} million pairs"
            rows.append(Row("memory of the driver", name, "MB", peak / 1e6))
    return rows


def peak_of(running: Cluster, *words: object) -> float:
    """Bytes: the most that a command of qkvsearch, without its Java machine, has had of its own."""
    program = (
        "import sys; from functools import partialmethod; from qkvsearch.cli import main\n"
        "from qkvsearch.models.implicit_als import AlternatingLeastSquares as ALS\n"
        f"ALS.__init__ = partialmethod(ALS.__init__, max_iter={ITERATIONS})\n"
        "try: main(sys.argv[1:])\n"
        "finally:\n"
        "  lines = open('/proc/self/status').read().splitlines()\n"
        "  print(next(l.split()[1] for l in lines if l.startswith('VmHWM')), file=sys.stdout)\n"
    )
    command = [sys.executable, "-c", program, "-q", *map(str, words)]
    done = subprocess.run(
        command, env=running.environment, check=True, capture_output=True, text=True
    )
    return 1024.0 * int(done.stdout.split()[-1])


# --- what is lost ---


def lost() -> list[Row]:
    """A worker is killed after the third of ten iterations: how far the scores then are from those
    of one machine.
    """
    from benchmarks.support.spark_als import SparkALS
    from qkvsearch.engines.spark.session import spark_session

    files = data_folder() / "ml-1m-implicit"
    train = read_positives(next(files.glob("*train*")), ML_1M_SHAPE)
    here = ImplicitALS(D, random_state=0).fit(train)
    with started() as running, spark_session(running.master) as spark:

        def kill(done: int, total: int) -> None:
            if done == 3:
                running.kill(running.workers[0])

        model = SparkALS(spark, n_components=D, random_state=0, callback=kill).fit(train)
    users = here.factors_.fold_in_many(train[:500])
    far = np.abs(users @ (model.item_embeddings_ - here.item_embeddings_).T)
    within = float(np.mean(far < 1e-3))
    return [Row("an executor killed after 3 of 10 iterations", "on Spark", NO_LONGER, within)]


# --- larger than this machine: computed, not measured ---

# Pairs, users, items; executors of four cores each.
LARGER = (
    (1_000_000_000, 20_000_000, 1_000_000, 32),
    (10_000_000_000, 200_000_000, 5_000_000, 256),
)
CORES, N_ITERATIONS = 4, 10


def model() -> list[Row]:
    """What a billion and ten billion pairs take, computed from the iteration of ten million pairs
    that the part `iterations` measured where rows are sent: seconds are in proportion to pairs over
    cores. Prices of machines are nobody's here: hours of a core are.
    """
    measured = [result.row for result in read("spark_scale") if result.part == "iterations"]
    of_spark = [row.seconds for row in measured if row.system == SENT]
    if not of_spark or of_spark[0] is None:
        return []
    a_pair = of_spark[0] * 2 / PAIRS  # on two cores
    rows = []
    for pairs, users, items, executors in LARGER:
        cores = CORES * executors
        blocks = n_blocks_of(pairs, users, cores)
        task = (
            f"computed: {pairs // 10**9} billion pairs, {users // 10**6} million users, "
            f"{items // 10**6} million items, {executors} executors of {CORES} cores"
        )
        hours = N_ITERATIONS * a_pair * pairs / cores / 3600
        sent = needed(pairs, users, blocks) + executors * items
        memory = (16 * pairs + 4 * D * users * 2) / executors
        rows += [
            Row(task, "ten iterations", "hours", hours),
            Row(task, "ten iterations", "hours of a core", hours * cores),
            Row(task, "embeddings sent, an iteration", "GB", 4 * D * sent / 1e9),
            Row(task, "blocks kept, an executor", "GB", memory / 1e9),
            Row(task, "the driver's item embeddings", "GB", 4 * D * items / 1e9),
        ]
    return rows


def needed(pairs: int, users: int, blocks: int) -> float:
    """Users that all blocks of items need, each user with as many pairs as the mean, which fall to
    any block; none where users are broadcast.
    """
    if 4 * D * users <= MAX_BROADCAST:
        return 0.0
    return users * blocks * -np.expm1(pairs / users * np.log1p(-1 / blocks))


PARTS = {
    "iterations": iterations,
    "quality": quality,
    "driver": driver,
    "lost": lost,
    "model": model,
}

if __name__ == "__main__":
    main(__file__, PARTS, peers=["pyspark"])
