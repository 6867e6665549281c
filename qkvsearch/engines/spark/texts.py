"""Texts to embeddings by the executors, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from qkvsearch.engines.spark.session import spark_session
from qkvsearch.engines.spark.tables import Rows, array_of, arrow_schema, as_batch
from qkvsearch.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Encode = Callable[[list[str]], np.ndarray]
# Texts that a task encodes, tasks of a core at a time, and the most at a time: of what
# `toLocalIterator` gives, the driver's Java keeps everything.
TEXTS_A_BLOCK, BLOCKS_A_CORE, MOST_BLOCKS = 2048, 4, 64
ENCODED = "block int, vectors binary"


def encode_on(engine: str, texts: Sequence[str], encode: Encode, progress: Progress) -> np.ndarray:
    """Vectors (n, d), float32, in the order of the texts. `encode` is sent to the executors. Raises
    `QkvError`.
    """
    found: list[np.ndarray] = []
    with spark_session(engine) as spark:
        n_blocks = min(MOST_BLOCKS, BLOCKS_A_CORE * spark.sparkContext.defaultParallelism)
        for start in range(0, len(texts), n_blocks * TEXTS_A_BLOCK):
            some = texts[start : start + n_blocks * TEXTS_A_BLOCK]
            found += _encoded(spark, some, encode)
            progress("encoding", start + len(some), len(texts))
    return np.concatenate(found)


def _encoded(spark: SparkSession, texts: Sequence[str], encode: Encode) -> Iterator[np.ndarray]:
    """The vectors of each block of some texts, in their order."""
    blocks = [
        list(texts[start : start + TEXTS_A_BLOCK]) for start in range(0, len(texts), TEXTS_A_BLOCK)
    ]
    numbers = pa.array(range(len(blocks)), pa.int32())
    table = pa.table({"block": numbers, "texts": pa.array(blocks, pa.list_(pa.string()))})
    frame = spark.createDataFrame(table).repartitionById(len(blocks), "block")
    encoded = frame.mapInArrow(_encode(encode), ENCODED).toArrow().sort_by("block")
    for texts_of, vectors in zip(blocks, encoded["vectors"], strict=True):
        yield array_of(vectors.as_py(), np.float32).reshape(len(texts_of), -1)


def _encode(encode: Encode) -> Callable[[Rows], Rows]:
    schema = arrow_schema(ENCODED)

    def run(batches: Rows) -> Rows:
        for batch in batches:
            for row in batch.to_pylist():
                vectors = np.ascontiguousarray(encode(row["texts"]), dtype=np.float32)
                encoded = {"block": row["block"], "vectors": vectors.tobytes()}
                yield as_batch([encoded], schema)

    return run
