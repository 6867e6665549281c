"""`ImplicitALS` on Spark, of a matrix that this machine has."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from qkvsearch.engines.spark.als import LogBlocks, fit
from qkvsearch.engines.spark.blocks import HISTORIES_SCHEMA, as_batch, n_blocks_of, persisted
from qkvsearch.models.implicit_als import AlternatingLeastSquares

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from scipy.sparse import csr_matrix


class GivenConfidences:
    """Stands for `Feedback` where the weights of a log are confidences already."""

    def confidences(
        self, items: np.ndarray, ratings: Any, weights: np.ndarray | None
    ) -> np.ndarray:
        """Return them, or 1 for each pair where there are none."""
        return np.ones(len(items), np.float32) if weights is None else weights


class SparkALS(AlternatingLeastSquares):
    """`ImplicitALS` by the executors of a Spark session, where the users' embeddings stay."""

    def __init__(self, spark: SparkSession, **parameters: Any) -> None:
        super().__init__(**parameters)
        self._spark = spark

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn from a sparse matrix (n_users, n_items) of confidences. Raise `DataError`."""
        blocks = _blocks_of(self._spark, self._read(X))
        try:
            self.factors_ = fit(self._spark, self, blocks)
        finally:
            blocks.frame.unpersist()
        self.item_embeddings_ = self.factors_.item_embeddings
        self.alpha0_, self.reg_ = self.factors_.alpha0, self.factors_.reg
        return self


def _blocks_of(spark: SparkSession, observed: csr_matrix) -> LogBlocks:
    """Send the rows of a matrix to the executors, in blocks of about as many pairs."""
    n_blocks = n_blocks_of(observed.nnz, observed.shape[0], spark.sparkContext.defaultParallelism)
    inner = np.searchsorted(observed.indptr, np.linspace(0, observed.nnz, n_blocks + 1)[1:-1])
    cuts = np.unique([0, *inner, observed.shape[0]])
    equal = bool((observed.data == 1).all())
    rows = []
    for block, (start, stop) in enumerate(pairwise(cuts.tolist())):
        indptr = observed.indptr[start : stop + 1].astype(np.int64)
        pairs = slice(indptr[0], indptr[-1])
        rows.append(
            {
                "block": block,
                "n_users": stop - start,
                "n_pairs": int(indptr[-1] - indptr[0]),
                "indptr": indptr - indptr[0],
                "items": observed.indices[pairs].astype(np.int32),
                "weights": None if equal else observed.data[pairs].astype(np.float32),
            }
        )
    table = pa.Table.from_batches([as_batch(rows, HISTORIES_SCHEMA)])
    frame = persisted(spark.createDataFrame(table).repartitionById(len(rows), "block"))
    sizes = {row["block"]: row["n_users"] for row in rows}
    return LogBlocks(frame, sizes, GivenConfidences(), observed.shape[1])  # type: ignore[arg-type]
