"""The directions in which a catalog's words differ most: truncated SVDs of how they are counted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from qkvsearch._utils.threads import available_cores, one_blas_thread, run_in_threads
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.labelled import NEGLIGIBLE, unit_rows
from qkvsearch.text.token_encoder import TokenEncoder
from qkvsearch.text.vocabulary import Vocabulary

# What is found beside the components asked for, so that these are exact.
OVERSAMPLES = 10
# Pairs of terms that are counted at a time.
MOST_PAIRS = 1 << 22
# Columns that a thread multiplies at a time.
TOGETHER = 32


class Directions(NamedTuple):
    """vectors: (n_terms, k), the directions of an encoder's texts."""

    vocabulary: Vocabulary
    vectors: np.ndarray

    def of(self, vocabulary: Vocabulary) -> np.ndarray:
        """In another vocabulary, (n, k): zeros for what is not in this one."""
        rows = self.vocabulary.find(vocabulary.terms)
        return np.where(rows[:, None] >= 0, self.vectors[rows], np.float32(0))


def latent_semantic_encoder(
    texts: AnalyzedTexts,
    n_components: int = 128,
    seed: int | None = 0,
    near: Directions | None = None,
) -> tuple[TokenEncoder, Directions]:
    """Term vectors from a truncated SVD of the texts' tf-idf matrix (Deerwester et al. 1990), where
    a term that occurs n times counts 1 + ln n, and rows have length 1.

    near: the directions of nearly the same texts, from which the search for these begins.
    """
    vocabulary, counts = texts.term_counts()
    n_texts = counts.shape[0]
    idf = _idf(counts)
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    lengths = np.sqrt(np.bincount(_rows(counts), counts.data**2, n_texts))
    counts.data = (counts.data / lengths[_rows(counts)]).astype(np.float32)
    n = min(n_components, *counts.shape)
    start = None if near is None else near.of(vocabulary)
    strengths, _, directions = truncated_svd(counts, n, 5, seed, start)
    # Equal texts leave directions that none of them has, which are arbitrary.
    directions[strengths <= NEGLIGIBLE * strengths[0]] = 0
    vectors = np.ascontiguousarray(directions.T, dtype=np.float32)
    encoder = TokenEncoder(vocabulary, vectors, idf.astype(np.float32), texts.runs.analyzer)
    return encoder, Directions(vocabulary, vectors)


def cooccurrence_encoder(
    texts: AnalyzedTexts,
    n_components: int = 128,
    seed: int | None = 0,
    near: Directions | None = None,
    smoothing: float = 0.75,
) -> tuple[TokenEncoder, Directions]:
    """Term vectors from a truncated SVD of `positive_information`; weights are the roots of the
    inverse document frequencies. near: as in `latent_semantic_encoder`.
    """
    vocabulary, counts = texts.term_counts()
    information = positive_information(counts, smoothing)
    start = None if near is None else near.of(vocabulary)
    n = min(n_components, len(vocabulary))
    strengths, directions, _ = truncated_svd(information, n, 4, seed, start)
    vectors = unit_rows((directions * strengths).astype(np.float32))
    weights = np.sqrt(_idf(counts)).astype(np.float32)
    encoder = TokenEncoder(vocabulary, vectors, weights, texts.runs.analyzer)
    return encoder, Directions(vocabulary, directions)


def positive_information(counts: csr_matrix, smoothing: float) -> csr_matrix:
    """max(0, ln p(t, c) / (p(t) p(c))) for every pair of terms that some text has, float32
    (n_terms, n_terms): how much more often two stand in one text than if they were independent.

    A text counts 1/n for each pair of its n terms, so that long ones do not decide alone; context
    frequencies are smoothed by a power (Levy, Goldberg & Dagan 2015, sections 2.1 and 3.1).
    """
    n_terms_of = np.maximum(np.diff(counts.indptr), 1)
    shares = np.repeat(1 / np.sqrt(n_terms_of), np.diff(counts.indptr)).astype(np.float32)
    shared = csr_matrix((shares, counts.indices, counts.indptr), shape=counts.shape)
    by_term = shared.T.tocsr()
    frequency = by_term @ (shared @ np.ones(shared.shape[1], np.float64))
    context = frequency**smoothing
    context /= max(context.sum(), 1e-9)
    expected = np.maximum(frequency, 1e-30), np.maximum(context, 1e-30)
    # How many pairs each term has at the most.
    n_pairs = np.cumsum(np.append(0, (by_term > 0) @ np.diff(counts.indptr)))
    blocks, start = [], 0
    while start < by_term.shape[0]:
        end = int(np.searchsorted(n_pairs, n_pairs[start] + MOST_PAIRS, side="right")) - 1
        end = max(end, start + 1)
        blocks.append(_positive(by_term[start:end] @ shared, expected[0][start:end], expected[1]))
        start = end
    return _stacked(blocks)


def _positive(pairs: csr_matrix, frequency: np.ndarray, context: np.ndarray) -> csr_matrix:
    ratio = pairs.data / (frequency[_rows(pairs)] * context[pairs.indices])
    which = ratio > 1
    indptr = np.append(0, np.cumsum(which))[pairs.indptr]
    data = np.log(ratio[which]).astype(np.float32)
    found = csr_matrix((data, pairs.indices[which], indptr), shape=pairs.shape)
    found.sort_indices()
    return found


def _stacked(blocks: list[csr_matrix]) -> csr_matrix:
    """One below the other; emptied as it goes, for they are as large as all of it."""
    n_rows, n_columns = sum(block.shape[0] for block in blocks), blocks[0].shape[1]
    lengths = np.concatenate([np.diff(block.indptr) for block in blocks])
    indptr = np.append(0, np.cumsum(lengths, dtype=np.int64))
    data, indices = np.empty(indptr[-1], np.float32), np.empty(indptr[-1], np.int32)
    end = indptr[-1]
    while blocks:
        block = blocks.pop()
        data[end - block.nnz : end], indices[end - block.nnz : end] = block.data, block.indices
        end -= block.nnz
    return csr_matrix((data, indices, indptr), shape=(n_rows, n_columns))


# --- truncated SVD ---


def truncated_svd(
    matrix: csr_matrix, n: int, n_iter: int, seed: int | None = 0, start: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The n largest singular values (n,), their left vectors (n_rows, n), and the right ones (n,
    n_columns), float32, largest first, by subspace iteration: Halko, Martinsson and Tropp 2011
    ("Finding structure with randomness"), algorithm 4.4.

    start: vectors (n_columns, k) that nearly span the right ones: one iteration then does for the
    n_iter from random ones. The largest number of a left vector is positive. One seed gives the
    same bits, whatever the number of threads.

    >>> truncated_svd(csr_matrix(np.diag([3.0, 1.0, 2.0])), 2, 2)[0].round(3)
    array([3., 2.], dtype=float32)
    """
    from scipy.linalg import lu, qr

    rng, width = np.random.default_rng(seed), min(n + OVERSAMPLES, *matrix.shape)
    basis = rng.normal(size=(matrix.shape[1], width)).astype(np.float32)
    if start is not None:
        n_iter, k = 1, min(start.shape[1], width)
        basis[:, :k] = start[:, :k]
    # One BLAS thread: the bits must not depend on how many there are, and more are slower here.
    with one_blas_thread():
        for _ in range(n_iter):
            for side in (matrix, matrix.T):
                basis = lu(_product(side, basis), permute_l=True, check_finite=False)[0]
        range_, _ = qr(_product(matrix, basis), mode="economic", check_finite=False)
        # Few rows and many columns: their products are decomposed in double precision.
        within = _product(matrix.T, range_).astype(np.float64)
        squares, axes = np.linalg.eigh(within.T @ within)
        values, axes = np.sqrt(np.maximum(squares[::-1][:n], 0)), axes[:, ::-1][:, :n]
        left, right = range_ @ axes.astype(np.float32), (within @ axes).T
        right /= np.where(values > 0, values, np.inf)[:, None]
    largest = np.abs(left).argmax(axis=0)
    signs = np.where(left[largest, np.arange(left.shape[1])] < 0, -1, 1)
    found = values, left * signs, right * signs[:, None]
    return tuple(array.astype(np.float32) for array in found)


def _product(matrix: csr_matrix | csc_matrix, columns: np.ndarray) -> np.ndarray:
    """matrix @ columns, some columns at a time in each thread."""
    found = np.empty((matrix.shape[0], columns.shape[1]), np.float32)

    def multiply(start: int) -> None:
        some = slice(start, start + TOGETHER)
        found[:, some] = matrix @ np.ascontiguousarray(columns[:, some])

    starts = range(0, columns.shape[1], TOGETHER)
    run_in_threads(lambda: multiply, starts, available_cores())
    return found


def _rows(matrix: csr_matrix) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _idf(counts: csr_matrix) -> np.ndarray:
    """ln((1 + N) / (1 + n)) + 1 of terms that n of N texts have."""
    having = np.bincount(counts.indices, minlength=counts.shape[1])
    return np.log((1 + counts.shape[0]) / (1 + having)) + 1
