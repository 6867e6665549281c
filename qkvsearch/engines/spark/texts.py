"""Texts to embeddings by the executors, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from qkvsearch.engines.spark.session import spark_session
from qkvsearch.engines.spark.tables import Rows, array_of, arrow_schema, as_batch
from qkvsearch.progress import Progress

Encode = Callable[[list[str]], np.ndarray]
# Texts that a task encodes.
TEXTS_A_BLOCK = 2048
ENCODED = "block int, n int, vectors binary"


def encode_on(engine: str, texts: Sequence[str], encode: Encode, progress: Progress) -> np.ndarray:
    """Vectors (n, d), float32, in the order of the texts. `encode` is sent to the executors. Raises
    `QkvError`.
    """
    starts = range(0, len(texts), TEXTS_A_BLOCK)
    blocks = [list(texts[start : start + TEXTS_A_BLOCK]) for start in starts]
    table = pa.table(
        {
            "block": pa.array(range(len(blocks)), pa.int32()),
            "texts": pa.array(blocks, pa.list_(pa.string())),
        }
    )
    with spark_session(engine) as spark:
        frame = spark.createDataFrame(table).repartitionById(len(blocks), "block")
        found, done = [], 0
        for row in frame.mapInArrow(_encode(encode), ENCODED).toLocalIterator(True):
            found.append(array_of(row.vectors, np.float32).reshape(row.n, -1))
            done += row.n
            progress("encoding", done, len(texts))
    return np.concatenate(found)


def _encode(encode: Encode) -> Callable[[Rows], Rows]:
    schema = arrow_schema(ENCODED)

    def run(batches: Rows) -> Rows:
        for batch in batches:
            for row in batch.to_pylist():
                vectors = np.ascontiguousarray(encode(row["texts"]), dtype=np.float32)
                encoded = {"block": row["block"], "n": len(vectors), "vectors": vectors.tobytes()}
                yield as_batch([encoded], schema)

    return run
