"""Tables made by the executors, block by block, as partitioned Parquet; a call goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from qkvsearch.engines.spark.folder import SUCCESS, Folder
from qkvsearch.engines.spark.session import spark_session
from qkvsearch.engines.spark.tables import Rows
from qkvsearch.errors import QkvError
from qkvsearch.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Beside the parts: what they depend on, and whether they are all there.
MARK = "_qkvsearch.json"
# Blocks that a core makes before the parts that are done are looked at again.
BLOCKS_A_CORE = 8
KINDS = {pa.int32(): "int", pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double"}


def write_blocks(
    engine: str,
    path: str | Path,
    n_blocks: int,
    make: Callable[[int], pa.Table],
    schema: pa.Schema,
    state: str,
    progress: Progress,
) -> int:
    """`make(number)` of each block, a table of this schema, into the folder at `path`, of any file
    system that Hadoop knows: `part=0/`, `part=1/` …, each with the blocks of one round. Returns how
    many blocks were there already, of an interrupted call with the same `state`.

    `make` is sent to the executors. Raises `QkvError`, also for a folder that is not ours.
    """
    digest = hashlib.sha256(f"{n_blocks} {state}".encode()).hexdigest()
    with spark_session(engine) as spark:
        size = max(1, BLOCKS_A_CORE * spark.sparkContext.defaultParallelism)
        folder, size = _ours(spark, path, digest, size)
        before = 0
        for part, start in enumerate(range(0, n_blocks, size)):
            stop = min(start + size, n_blocks)
            if folder.has(f"part={part}/{SUCCESS}"):
                before += stop - start
            else:
                made = spark.range(start, stop, 1, stop - start).mapInArrow(
                    _tables(make), _form(schema)
                )
                made.write.mode("overwrite").parquet(folder.file(f"part={part}"))
                if not folder.has(f"part={part}/{SUCCESS}"):
                    raise QkvError(f"{path}: the executors do not write where this machine reads")
            progress("recommending", stop, n_blocks)
        folder.write_json(MARK, {"state": digest, "blocks_a_part": size, "complete": True})
    return before


def _ours(spark: SparkSession, path: str | Path, digest: str, size: int) -> tuple[Folder, int]:
    """The folder, with what an interrupted call left of this state, and how many blocks a part has.
    One that is complete is made anew."""
    folder = Folder(spark, path)
    mark = folder.read_json(MARK)
    if mark is None and folder.has("") and (not folder.is_folder() or folder.names()):
        raise QkvError(f"{path}: in the way, and not ours; move it, or name another folder")
    if mark is not None and not mark["complete"]:
        if mark["state"] != digest:
            raise QkvError(
                f"{path}: the same folder holds part of a run with other options, or of another "
                "build: remove it, or name another folder"
            )
        return folder, int(mark["blocks_a_part"])
    if mark is not None:
        folder.remove()
    folder.write_json(MARK, {"state": digest, "blocks_a_part": size, "complete": False})
    return folder, size


def _tables(make: Callable[[int], pa.Table]) -> Callable[[Rows], Rows]:
    def run(batches: Rows) -> Rows:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from make(number).to_batches()

    return run


def _form(schema: pa.Schema) -> str:
    """The schema as Spark spells it."""
    return ", ".join(f"`{field.name}` {KINDS.get(field.type, 'string')}" for field in schema)
