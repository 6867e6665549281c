"""A connection to Spark: what it needs is looked for before anything starts."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkvsearch import __version__
from qkvsearch.errors import DataError, QkvError, need

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "spark"
ADDRESS = re.compile(r"spark://(?P<masters>[^/\s]+)")
# How long a master may take to accept a connection, in seconds.
PATIENCE = 3.0
# What is imported where a block is solved, and how it is installed.
NEEDED = ("numpy", "pyarrow", "scipy", "numba", "qkvsearch")
# Set by spark-submit, which says itself which cluster it is.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
LOG4J = Path(__file__).with_name("log4j2.properties")
# An executor's Python says what is the matter in the last line of its traceback.
RAISED = re.compile(r"^(?:[\w.]+\.)?(?P<kind>\w*(?:Error|Exception)): (?P<said>.+)$", re.MULTILINE)
OURS = ("DataError", "QkvError", "UnknownIdError", "WorkspaceError", "DamagedError")


def check_engine(engine: str) -> None:
    """Raise `QkvError` where `engine` is no Spark that can be reached, before anything is read: no
    address, no Java, no pyspark, nobody who listens.
    """
    masters = _masters(engine)
    need("pyspark", "spark", f"`engine` {engine}")
    if SUBMITTED not in os.environ and not _has_java():
        raise QkvError(
            f"`engine` {engine} needs Java 17 or later, and there is none: install it, or say in "
            "JAVA_HOME where it is"
        )
    if masters and not any(_listens(*master) for master in masters):
        named = ", ".join(f"{host}:{port}" for host, port in masters)
        raise QkvError(
            f"no Spark master answers at {named}: start one there, or write `engine` spark to use "
            "the cores of this machine"
        )


def _masters(engine: str) -> list[tuple[str, int]]:
    """Hosts and ports of `spark://HOST:PORT,…`; none for `spark`."""
    if engine == LOCAL:
        return []
    found = ADDRESS.fullmatch(engine)
    masters = []
    for master in found["masters"].split(",") if found else []:
        host, _, port = master.rpartition(":")
        if host and port.isdecimal() and 0 < int(port) < 65536:
            masters.append((host.strip("[]"), int(port)))
        else:
            masters = []
            break
    if not masters:
        raise QkvError(f"`engine` is spark or spark://HOST:PORT, not {engine!r}")
    return masters


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return bool(shutil.which("java") or (home and shutil.which("java", path=f"{home}/bin")))


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), PATIENCE):
            return True
    except OSError:
        return False


@contextmanager
def spark_session(engine: str) -> Iterator[SparkSession]:
    """A session on the engine, ended with the context unless it was there before. What Spark raises
    in it becomes one line. Raises `QkvError`.
    """
    check_engine(engine)
    # Of pandas 3 in general; what is used here, Arrow tables, is tested with it.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    with _said_in_one_line(engine):
        spark = found or _started(engine)
        try:
            # Blocks decide how many tasks there are; Spark's 200 would mostly be empty ones.
            spark.conf.set(
                "spark.sql.shuffle.partitions", 2 * spark.sparkContext.defaultParallelism
            )
            _check_executors(spark, engine)
            yield spark
        finally:
            if found is None:
                with suppress(Exception):  # one that died has said why
                    spark.stop()


def _started(engine: str) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("qkvsearch")
    if SUBMITTED not in os.environ:
        builder = builder.master("local[*]" if engine == LOCAL else engine)
        builder = builder.config(
            "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={LOG4J}"
        )
    hosts = {host for host, _ in _masters(engine)}
    if engine == LOCAL or hosts <= {"127.0.0.1", "localhost", "::1"}:
        for name in ("spark.driver.host", "spark.driver.bindAddress"):
            builder = builder.config(name, "127.0.0.1")
    if path := os.environ.get("PYTHONPATH"):
        builder = builder.config("spark.executorEnv.PYTHONPATH", path)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with _stderr_to_file():
        return builder.getOrCreate()


SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # A partition is a block: joining two of them would double what one task holds.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # Cells on their way, which Spark does not count, need memory beside what it keeps.
    "spark.memory.fraction": "0.4",
    # Embeddings do not become smaller by it.
    "spark.broadcast.compress": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # The items' embeddings, which may be more than the 1 GB that Spark allows by default.
    "spark.driver.maxResultSize": "0",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
    "spark.cleaner.referenceTracking.cleanCheckpoints": "false",
}


@contextmanager
def _stderr_to_file() -> Iterator[None]:
    """What the Java machine that starts meanwhile writes to stderr goes to a file, as long as it
    lives.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with tempfile.TemporaryFile(prefix="qkvsearch-spark-") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _said_in_one_line(engine: str) -> Iterator[None]:
    """Errors of Spark as `QkvError`; a `DataError` that was raised in an executor as one."""
    try:
        yield
    except QkvError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        ours = _ours(str(error))
        kind = DataError if ours and ours["kind"] == "DataError" else QkvError
        raise kind(in_words(error, engine)) from error


def _ours(text: str) -> re.Match[str] | None:
    """The first of our errors in what Spark raised."""
    return next((found for found in RAISED.finditer(text) if found["kind"] in OURS), None)


def in_words(error: Exception, engine: str) -> str:
    """The reason that stands deepest in what Spark raised."""
    text = str(error)
    if ours := _ours(text):
        return ours["said"].strip()
    if "PYTHON_VERSION_MISMATCH" in text:
        return (
            f"`engine` {engine}: its executors run another Python than this one: say in "
            "PYSPARK_PYTHON where theirs is, of the same version"
        )
    if "All masters are unresponsive" in text or "SparkContext was shut down" in text:
        return f"`engine` {engine}: the cluster does not answer any more; is it up, with workers?"
    python = [
        found
        for found in RAISED.finditer(text)
        if found["kind"] not in ("SparkException", "Py4JJavaError")
    ]
    why = python[0][0] if python else text.strip().partition("\n")[0]
    return f"`engine` {engine}: Spark failed: {why.strip()[:400]}"


def _check_executors(spark: SparkSession, engine: str) -> None:
    """Raise `QkvError` where an executor lacks what a block is solved with."""
    n = spark.sparkContext.defaultParallelism
    found = spark.range(0, n, 1, n).mapInArrow(_inventory(NEEDED), "said string").collect()
    for host, missing, version in sorted({tuple(row.said.split("\t")) for row in found}):
        if missing:
            raise QkvError(
                f"`engine` {engine}: the executor on {host} is without {missing}: run pip install "
                "'qkvsearch[spark]' there, or say in PYSPARK_PYTHON which Python has it"
            )
        if version != __version__:
            raise QkvError(
                f"`engine` {engine}: the executor on {host} has qkvsearch {version}, and this is "
                f"{__version__}: install the same one on both"
            )


def _inventory(needed: tuple[str, ...]) -> Callable[..., Any]:
    """What an executor has. It is sent as a whole, for it must run where this package is not."""

    def look(batches: Any) -> Any:
        import importlib
        import socket

        import pyarrow as pa

        for _ in batches:
            pass
        missing, version = [], ""
        for name in needed:
            try:
                module = importlib.import_module(name)
            except ImportError:
                missing.append(name)
            else:
                version = getattr(module, "__version__", "") if name == "qkvsearch" else version
        said = "\t".join([socket.gethostname(), ", ".join(missing), version])
        yield pa.RecordBatch.from_pydict({"said": [said]})

    return look
