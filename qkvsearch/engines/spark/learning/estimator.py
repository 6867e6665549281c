"""`ImplicitALS` on Spark, for a matrix that this machine has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from qkvsearch.collaborative.als import AlternatingLeastSquares
from qkvsearch.engines.spark.histories import HISTORIES_SCHEMA
from qkvsearch.engines.spark.learning.als import DistributedALS
from qkvsearch.engines.spark.learning.blocks import LogBlocks, n_blocks_of
from qkvsearch.engines.spark.session import spark_session
from qkvsearch.engines.spark.tables import as_batch
from qkvsearch.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from scipy.sparse import csr_matrix


class GivenConfidences:
    """In the place of `Feedback`, where the weights of a log are confidences already."""

    def confidences(
        self, items: np.ndarray, ratings: Any, weights: np.ndarray | None
    ) -> np.ndarray:
        """As they were given; without any, 1 for each pair."""
        return np.ones(len(items), np.float32) if weights is None else weights


class SparkALS(AlternatingLeastSquares):
    """Learns as `ImplicitALS` does, by the executors of a Spark session, where the embeddings of
    users stay.
    """

    def __init__(self, spark: SparkSession, **parameters: Any) -> None:
        super().__init__(**parameters)
        self._spark = spark

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn from a sparse matrix (n_users, n_items) of confidences. Raises `DataError`."""
        self._check_parameters()
        observed = self._read(X)
        if not observed.data.all():
            observed = observed.copy()
            observed.eliminate_zeros()
        if not observed.nnz:
            raise DataError("there is nothing to learn from: no user has interacted with an item")
        found = DistributedALS(self._spark, self).fit(_blocks(self._spark, observed))
        self.factors_, self.item_embeddings_ = found, found.item_embeddings
        self.alpha0_, self.reg_ = found.alpha0, found.reg
        return self


def _blocks(spark: SparkSession, observed: csr_matrix) -> LogBlocks:
    """Rows of a matrix in blocks, sent to the executors."""
    n_blocks = n_blocks_of(observed.nnz, observed.shape[0], spark.sparkContext.defaultParallelism)
    wanted = np.linspace(0, observed.nnz, n_blocks + 1)[1:-1]
    inner = np.searchsorted(observed.indptr, wanted)
    cuts = np.unique([0, *inner, observed.shape[0]])
    alike = observed.data.min() == 1 == observed.data.max()
    rows = []
    for block, (start, stop) in enumerate(pairwise(cuts.tolist())):
        span = slice(observed.indptr[start], observed.indptr[stop])
        indptr = observed.indptr[start : stop + 1].astype(np.int64) - observed.indptr[start]
        rows.append(
            {
                "block": block,
                "n_users": int(stop - start),
                "n_pairs": int(indptr[-1]),
                "indptr": indptr.tobytes(),
                "items": observed.indices[span].astype(np.int32).tobytes(),
                "weights": None if alike else observed.data[span].astype(np.float32).tobytes(),
            }
        )
    table = pa.Table.from_batches([as_batch(rows, HISTORIES_SCHEMA)])
    frame = spark.createDataFrame(table).repartitionById(len(rows), "block").persist()
    return LogBlocks(
        frame=frame,
        n_partitions=len(rows),
        sizes={row["block"]: row["n_users"] for row in rows},
        feedback=GivenConfidences(),  # type: ignore[arg-type]
        item_counts=observed.getnnz(axis=0),
        n_active_users=int(np.count_nonzero(observed.getnnz(axis=1))),
        n_counting=observed.nnz,
        mean_confidence=float(observed.data.mean(dtype=np.float64)),
    )


@contextmanager
def learner_on(engine: str) -> Iterator[Callable[..., SparkALS]]:
    """What makes a `SparkALS` of its parameters, until the context ends. Raises `QkvError`."""
    with spark_session(engine) as spark:
        yield partial(SparkALS, spark)
