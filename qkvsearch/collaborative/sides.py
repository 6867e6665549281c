"""The two sides of alternating least squares, users and items: histories and embeddings."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch.collaborative.solver import LANES, blocks
from qkvsearch.errors import DataError

CHUNKS_PER_THREAD = 8
# Rows rotated at a time: few, since each batch is copied.
ROTATED_AT_ONCE = 1024

# indptr (n_rows + 1,), columns (n_pairs,), confidences (n_pairs,) or (1,)
Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


def by_user_and_by_item(observed: csr_matrix) -> tuple[Pairs, Pairs]:
    """The observed pairs in compressed rows, one row a user and one row an item.

    The confidences are a single number where all are equal, which saves a third of the memory.
    """
    first = observed.data[:1]
    by_user = observed.indptr, observed.indices
    if observed.data.min() < observed.data.max():
        by_item = observed.T.tocsr()
        return (*by_user, observed.data), (by_item.indptr, by_item.indices, by_item.data)
    marks = np.ones(observed.nnz, np.bool_)
    by_item = csr_matrix((marks, *by_user[::-1]), shape=observed.shape).T.tocsr()
    return (*by_user, first), (by_item.indptr, by_item.indices, first)


@dataclass(frozen=True)
class Side:
    """Users or items: their histories in compressed rows, and the embeddings being solved.

    confidences: one for each pair, or a single one where all are equal. lengths (n,) of the
    histories. chunks: the rows that have a history, in parts for the threads. embeddings (n, d),
    d being n_components rounded up to what the solver needs; the added components stay zero.
    """

    indptr: np.ndarray
    columns: np.ndarray
    confidences: np.ndarray
    lengths: np.ndarray
    chunks: list[np.ndarray]
    embeddings: np.ndarray

    @classmethod
    def start(
        cls,
        indptr: np.ndarray,
        columns: np.ndarray,
        confidences: np.ndarray,
        n_components: int,
        scale: float,
        rng: np.random.Generator,
        n_threads: int,
    ) -> Side:
        """Random embeddings for the rows with a history, zero for the others."""
        lengths = np.diff(indptr)
        embeddings = rng.standard_normal((len(lengths), n_components), dtype=np.float32)
        embeddings *= np.float32(scale / np.sqrt(n_components))
        n_blocks, width = blocks(n_components)
        if padding := n_blocks * LANES * len(width) - n_components:
            embeddings = np.pad(embeddings, ((0, 0), (0, padding)))
        embeddings[lengths == 0] = 0
        # From the longest history to the shortest, one to each chunk in turn: all take as long.
        order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
        n_chunks = CHUNKS_PER_THREAD * n_threads
        return cls(
            # One integer type each, so that the kernel is compiled once.
            indptr=indptr.astype(np.int64),
            columns=columns.astype(np.int32, copy=False),
            confidences=confidences,
            lengths=lengths,
            chunks=[np.ascontiguousarray(order[first::n_chunks]) for first in range(n_chunks)],
            embeddings=embeddings,
        )

    @property
    def n_active(self) -> int:
        """The number of rows that have a history."""
        return sum(map(len, self.chunks))

    def rotate(self, by: np.ndarray, pool: Executor) -> None:
        """Multiply the embeddings in place by an orthogonal matrix, square in n_components."""
        by = by.astype(np.float32)

        def apply(rows: np.ndarray) -> None:
            rows[:] = rows @ by

        used = self.embeddings[:, : len(by)]
        list(pool.map(apply, np.array_split(used, -(-len(used) // ROTATED_AT_ONCE))))


def principal_axes(embeddings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues (d,), 0 or above, and the eigenvectors (d, d) of YᵀY, for Y (n, d).

    Raises `DataError` where YᵀY is not finite.
    """
    values, vectors = np.linalg.eigh(finite_gram(embeddings).astype(np.float64))
    return values.clip(min=0), vectors


def finite_gram(embeddings: np.ndarray) -> np.ndarray:
    """YᵀY (d, d) of Y (n, d). Raises `DataError` where it is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        gram: np.ndarray = embeddings.T @ embeddings
    require_finite(gram)
    return gram


def require_finite(numbers: np.ndarray) -> None:
    """Raise `DataError` for infinite numbers and NaNs."""
    if not np.isfinite(numbers).all():
        raise DataError(
            "the embeddings cannot be solved for in 32 bits: use smaller confidences, or less "
            "extreme settings of alpha0, reg, nu and init_scale"
        )
