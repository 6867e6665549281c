"""Batches for executors: recommendations for blocks of users, and vectors of blocks of texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from qkvsearch._utils.callbacks import Progress
from qkvsearch.engines.spark.blocks import Batches, array_of, arrow_schema, as_batch, each_row
from qkvsearch.engines.spark.folder import SUCCESS, Folder
from qkvsearch.engines.spark.session import spark_session
from qkvsearch.errors import QkvError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A file beside the parts: what they depend on, and whether all of them are there.
STATE = "_qkvsearch.json"
# Blocks that a core makes before it is looked which parts are there.
BLOCKS_PER_CORE = 8
SPARK_TYPES = {
    pa.int32(): "int", pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double",
}  # fmt: skip
# A task encodes so many texts. The driver's Java keeps all that comes back from one job, so that a
# job has few tasks.
TEXTS_PER_BLOCK, TEXT_BLOCKS_PER_CORE, MAX_TEXT_BLOCKS = 2048, 4, 64
ENCODED = "block int, vectors binary"
ENCODED_SCHEMA = arrow_schema(ENCODED)


def write_blocks(
    engine: str,
    path: str | Path,
    n_blocks: int,
    make: Callable[[int], pa.Table],
    schema: pa.Schema,
    state: str,
    progress: Progress,
) -> int:
    """Write `make(number)` of each block, a table of this schema, to the folder at `path`, in any
    file system that Hadoop knows: `part=0/`, `part=1/` …, each with some blocks. Return how many
    blocks an interrupted call of the same `state` had written.

    `make` is sent to the executors. Raise `QkvError`, also for a folder that is not ours.
    """
    digest = hashlib.sha256(f"{n_blocks} {state}".encode()).hexdigest()
    fields = (f"`{field.name}` {SPARK_TYPES.get(field.type, 'string')}" for field in schema)
    spark_schema = ", ".join(fields)

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from make(number).to_batches()

    with spark_session(engine) as spark:
        size = max(1, BLOCKS_PER_CORE * spark.sparkContext.defaultParallelism)
        folder, size = _started(spark, path, digest, size)
        n_before = 0
        for part, start in enumerate(range(0, n_blocks, size)):
            stop = min(start + size, n_blocks)
            if folder.exists(f"part={part}/{SUCCESS}"):
                n_before += stop - start
            else:
                tables = spark.range(start, stop, 1, stop - start).mapInArrow(run, spark_schema)
                tables.write.mode("overwrite").parquet(folder.uri_of(f"part={part}"))
                if not folder.exists(f"part={part}/{SUCCESS}"):
                    raise QkvError(
                        f"{path}: the executors write somewhere else: name a folder that this "
                        "machine and all executors share"
                    )
            progress("recommending", stop, n_blocks)
        folder.write_json(STATE, {"state": digest, "blocks_per_part": size, "complete": True})
    return n_before


def _started(spark: SparkSession, path: str | Path, digest: str, size: int) -> tuple[Folder, int]:
    """Return the folder with what an interrupted call left, and the blocks of a part."""
    folder = Folder(spark, path)
    state = folder.read_json(STATE)
    if state is None and folder.exists() and (not folder.is_folder() or folder.names()):
        raise QkvError(
            f"{path}: there is something else, which stays: move it, or name another folder"
        )
    if state is not None and not state["complete"]:
        if state["state"] != digest:
            raise QkvError(
                f"{path}: an interrupted run with other options, or of another build, left its "
                "parts there: remove the folder, or name another one"
            )
        return folder, int(state["blocks_per_part"])
    if state is not None:
        folder.remove()
    folder.write_json(STATE, {"state": digest, "blocks_per_part": size, "complete": False})
    return folder, size


def encode_on(
    engine: str,
    texts: Sequence[str],
    encode: Callable[[list[str]], np.ndarray],
    progress: Progress,
) -> np.ndarray:
    """Return vectors (n, d), float32, of texts, by `encode` on executors. Raise `QkvError`."""

    def run(batches: Batches) -> Batches:
        for row in each_row(batches):
            vectors = np.ascontiguousarray(encode(row["texts"]), dtype=np.float32)
            yield as_batch([{"block": row["block"], "vectors": vectors}], ENCODED_SCHEMA)

    vectors: list[np.ndarray] = []
    with spark_session(engine) as spark:
        cores = spark.sparkContext.defaultParallelism
        n_texts = TEXTS_PER_BLOCK * min(MAX_TEXT_BLOCKS, TEXT_BLOCKS_PER_CORE * cores)
        for start in range(0, len(texts), n_texts):
            batch = list(texts[start : start + n_texts])
            blocks = [
                batch[at : at + TEXTS_PER_BLOCK] for at in range(0, len(batch), TEXTS_PER_BLOCK)
            ]
            table = pa.table(
                {
                    "block": pa.array(range(len(blocks)), pa.int32()),
                    "texts": pa.array(blocks, pa.list_(pa.string())),
                }
            )
            frame = spark.createDataFrame(table).repartitionById(len(blocks), "block")
            encoded = frame.mapInArrow(run, ENCODED).toArrow().sort_by("block")
            for block, cell in zip(blocks, encoded["vectors"], strict=True):
                vectors.append(array_of(cell.as_py(), np.float32).reshape(len(block), -1))
            progress("encoding", start + len(batch), len(texts))
    return np.concatenate(vectors)
