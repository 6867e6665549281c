"""Connect to Spark: check first what it needs, and turn its errors into one line."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkvsearch._utils.version import __version__
from qkvsearch.errors import DataError, QkvError, need
from qkvsearch.imports import ignoring_warnings, leaving_no_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "spark"
ADDRESS = re.compile(r"spark://(?P<masters>[^/\s]+)")
# Seconds that a master may take to accept a connection.
TIMEOUT = 3.0
# What executors need, and what imports it. numba by itself would read settings from the current
# folder.
NEEDED = {
    "numpy": "numpy",
    "pyarrow": "pyarrow",
    "scipy": "scipy",
    "qkvsearch": "qkvsearch",
    "numba": "qkvsearch._utils.compiled",
}
# spark-submit sets this variable, and says itself which cluster it is.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
LOG4J = Path(__file__).with_name("log4j2.properties")
# The last line of a traceback in an executor's Python.
RAISED = re.compile(r"^(?:[\w.]+\.)?(?P<kind>\w*(?:Error|Exception)): (?P<text>.+)$", re.MULTILINE)
OURS = ("DataError", "QkvError", "UnknownIdError", "WorkspaceError", "DamagedError")

SETTINGS: dict[str, Any] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # Spark does not count the memory of cells on their way to Python.
    "spark.memory.fraction": "0.4",
    # Embeddings do not become smaller by it.
    "spark.broadcast.compress": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # The items' embeddings may be more than the 1 GB that Spark allows by default.
    "spark.driver.maxResultSize": "0",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    # Executors import nothing from the folder that they run in.
    "spark.executorEnv.PYTHONSAFEPATH": "1",
}
# What decides how cells are read and how blocks are made, in a session that was there before too.
READING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # A partition is a block, and should not be joined with others. Besides, an adaptive plan has
    # each plan in it twice, and so doubles with each iteration of ALS until no memory is left.
    "spark.sql.adaptive.enabled": "false",
}


OF_PANDAS_3 = "PySpark does not yet fully support pandas"


def check_engine(engine: str) -> None:
    """Raise `QkvError` where Spark cannot be reached: address, Java, pyspark or master."""
    masters = _masters(engine)
    need("pyspark", "spark", f"`engine` {engine}")
    if SUBMITTED not in os.environ and not _has_java():
        raise QkvError(
            f"`engine` {engine} needs Java 17 or later: install it, or set JAVA_HOME to its folder"
        )
    if masters and not any(_listens(*master) for master in masters):
        names = ", ".join(f"{host}:{port}" for host, port in masters)
        raise QkvError(
            f"no Spark master answers at {names}: start one there, or write `engine` spark to use "
            "the cores of this machine"
        )


def _masters(engine: str) -> list[tuple[str, int]]:
    """Return the hosts and ports of `spark://HOST:PORT,…`; none for `spark`."""
    if engine == LOCAL:
        return []
    address = ADDRESS.fullmatch(engine)
    masters = []
    for master in address["masters"].split(",") if address else [""]:
        host, _, port = master.rpartition(":")
        if not (host and port.isdecimal() and 0 < int(port) < 65536):
            raise QkvError(f"`engine` is spark or spark://HOST:PORT, not {engine!r}")
        masters.append((host.strip("[]"), int(port)))
    return masters


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return bool(shutil.which("java") or (home and shutil.which("java", path=f"{home}/bin")))


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), TIMEOUT):
            return True
    except OSError:
        return False


@contextmanager
def spark_session(engine: str) -> Iterator[SparkSession]:
    """Connect to an engine for a block; errors of Spark become one line. Raise `QkvError`."""
    check_engine(engine)
    # pyspark warns of pandas 3 in general; the Arrow tables that are used here are tested with it.
    with ignoring_warnings(OF_PANDAS_3, FutureWarning), _errors_in_one_line(engine):
        from pyspark.sql import SparkSession

        active = SparkSession.getActiveSession()
        spark = active or _started(engine)
        # Blocks decide how many tasks there are; most of Spark's 200 would be empty.
        partitions = str(2 * spark.sparkContext.defaultParallelism)
        settings = {**READING, "spark.sql.shuffle.partitions": partitions}
        before = {name: str(spark.conf.get(name)) for name in settings}
        try:
            for name, value in settings.items():
                spark.conf.set(name, value)
            _check_executors(spark, engine)
            yield spark
        finally:
            with suppress(Exception):  # a session that died has said why
                for name, value in before.items():
                    spark.conf.set(name, value)
                if active is None:
                    spark.stop()


def _started(engine: str) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("qkvsearch").config(map=SETTINGS)
    if SUBMITTED not in os.environ:
        builder = builder.master("local[*]" if engine == LOCAL else engine)
        log4j = f"-Dlog4j2.configurationFile={LOG4J}"
        builder = builder.config("spark.driver.extraJavaOptions", log4j)
    hosts = {host for host, _ in _masters(engine)}
    if engine == LOCAL or hosts <= {"127.0.0.1", "localhost", "::1"}:
        for name in ("spark.driver.host", "spark.driver.bindAddress"):
            builder = builder.config(name, "127.0.0.1")
    if path := os.environ.get("PYTHONPATH"):
        builder = builder.config("spark.executorEnv.PYTHONPATH", path)
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    with leaving_no_trace(variables={"PYSPARK_PYTHON": python}), _stderr_to_file():
        return builder.getOrCreate()


@contextmanager
def _stderr_to_file() -> Iterator[None]:
    """Have the Java machine that starts in this context write its stderr to a temporary file."""
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with tempfile.TemporaryFile(prefix="qkvsearch-spark-") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


@contextmanager
def _errors_in_one_line(engine: str) -> Iterator[None]:
    """Raise errors of Spark as `QkvError`; a `DataError` of an executor as `DataError`."""
    try:
        yield
    except QkvError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        ours = _ours(str(error))
        kind = DataError if ours and ours["kind"] == "DataError" else QkvError
        raise kind(reason_of(error, engine)) from error


def _ours(text: str) -> re.Match[str] | None:
    """Return the first of our errors in what Spark raised."""
    return next((match for match in RAISED.finditer(text) if match["kind"] in OURS), None)


def reason_of(error: Exception, engine: str) -> str:
    """Return the innermost reason in what Spark raised, as one line."""
    text = str(error)
    if ours := _ours(text):
        return ours["text"].strip()
    if "PYTHON_VERSION_MISMATCH" in text:
        return (
            f"`engine` {engine}: the executors run another version of Python: set PYSPARK_PYTHON "
            "to one of this version"
        )
    if "All masters are unresponsive" in text or "SparkContext was shut down" in text:
        return f"`engine` {engine}: the cluster does not answer any more; is it up, with workers?"
    wrappers = ("SparkException", "Py4JJavaError")
    inner = (match[0] for match in RAISED.finditer(text) if match["kind"] not in wrappers)
    reason = next(inner, text.strip().partition("\n")[0])
    return f"`engine` {engine}: Spark failed: {reason.strip()[:400]}"


def _check_executors(spark: SparkSession, engine: str) -> None:
    """Raise `QkvError` where an executor lacks what it needs."""
    n = spark.sparkContext.defaultParallelism
    inventory = spark.range(0, n, 1, n).mapInArrow(
        _inventory(NEEDED), "host string, missing string, version string"
    )
    for host, missing, version in sorted({tuple(row) for row in inventory.collect()}):
        if missing:
            raise QkvError(
                f"`engine` {engine}: the executor on {host} is without {missing}: run pip install "
                "'qkvsearch[spark]' there, or set PYSPARK_PYTHON to a Python that has it"
            )
        if version != __version__:
            raise QkvError(
                f"`engine` {engine}: the executor on {host} has qkvsearch {version}, and this is "
                f"{__version__}: install the same version on both"
            )


def _inventory(needed: dict[str, str]) -> Callable[..., Any]:
    """Look what an executor has. The function is sent whole: our package may be missing there."""

    def look(batches: Any) -> Any:
        import importlib
        import socket

        import pyarrow as pa

        for _ in batches:
            pass
        missing, version = [], ""
        for name, imported_by in needed.items():
            try:
                module = importlib.import_module(imported_by)
            except ImportError:
                missing.append(name)
            else:
                version = getattr(module, "__version__", "") if name == "qkvsearch" else version
        row = {"host": socket.gethostname(), "missing": ", ".join(missing), "version": version}
        yield pa.RecordBatch.from_pylist([row])

    return look
