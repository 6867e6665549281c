"""Term vectors from a catalog: truncated SVDs of tf-idf and of co-occurrence counts."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from qkvsearch._utils.threads import available_cores, one_blas_thread, run_in_threads
from qkvsearch._utils.validation import random_generator
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.labelled import NEGLIGIBLE, unit_rows
from qkvsearch.text.token_encoder import TokenEncoder

# Components computed beyond the requested ones, which makes the requested ones exact.
OVERSAMPLES = 10
# Pairs of terms that are counted at a time.
PAIRS_PER_BLOCK = 1 << 21
# A text of n terms has n² pairs of them. Where texts have more pairs in all than `MIN_PAIRS` and
# than `PAIRS_PER_TERM` for each of their terms, terms that few texts have get no vectors. Else long
# Chinese texts take minutes, as most pairs of characters are in one text alone. `MAX_PAIRS` are
# 2 GB.
PAIRS_PER_TERM, MIN_PAIRS, MAX_PAIRS = 16, 1 << 23, 1 << 28
# A sparse product takes about as long for a pair of terms of a text as a dense one for so many
# pairs, most of which a text does not have.
DENSE_SPEED = 64
# Columns that a thread multiplies at a time.
COLUMNS_PER_TASK = 32


def latent_semantic_encoder(
    texts: AnalyzedTexts, n_components: int = 128, seed: Any = 0
) -> TokenEncoder:
    """Compute term vectors by a truncated SVD of the tf-idf matrix (Deerwester et al. 1990).

    A term that occurs n times counts 1 + ln n; rows have length 1.
    """
    vocabulary, counts = texts.term_counts()
    n_texts = counts.shape[0]
    idf = _idf(counts)
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    lengths = np.sqrt(np.bincount(_rows(counts), counts.data**2, n_texts))
    counts.data = (counts.data / lengths[_rows(counts)]).astype(np.float32)
    n = min(n_components, *counts.shape)
    strengths, _, directions = truncated_svd(counts, n, 5, seed)
    # Equal texts leave directions that no text has, which are arbitrary.
    directions[strengths <= NEGLIGIBLE * strengths[0]] = 0
    vectors = np.ascontiguousarray(directions.T, dtype=np.float32)
    return TokenEncoder(vocabulary, vectors, idf.astype(np.float32), texts.runs.analyzer)


def cooccurrence_encoder(
    texts: AnalyzedTexts,
    n_components: int = 128,
    seed: Any = 0,
    smoothing: float = 0.75,
) -> TokenEncoder:
    """Compute term vectors by a truncated SVD of `positive_information`.

    The weights are the roots of the inverse document frequencies. Only `frequent_terms` get
    vectors; the others' are zero.
    """
    vocabulary, counts = texts.term_counts()
    terms = frequent_terms(counts)
    information = positive_information(counts[:, terms], smoothing)
    n = min(n_components, len(terms))
    strengths, left, _ = truncated_svd(information, n, 4, seed)
    vectors = np.zeros((len(vocabulary), n), np.float32)
    vectors[terms] = unit_rows((left * strengths).astype(np.float32))
    weights = np.sqrt(_idf(counts)).astype(np.float32)
    return TokenEncoder(vocabulary, vectors, weights, texts.runs.analyzer)


def frequent_terms(counts: csr_matrix) -> np.ndarray:
    """Return the columns of the terms that at least n texts have, for the least n with which the
    pairs of terms are few enough to be decomposed. On most catalogs, these are all terms.
    """
    n_with = np.bincount(counts.indices, minlength=counts.shape[1])
    limit = np.clip(PAIRS_PER_TERM * counts.nnz, MIN_PAIRS, MAX_PAIRS)
    texts = _rows(counts)

    def has_few_pairs(least: int) -> bool:
        is_kept = n_with >= least
        n_terms = np.bincount(texts[is_kept[counts.indices]]).astype(np.float64)
        return bool(min(n_terms @ n_terms, float(is_kept.sum()) ** 2) <= limit)

    least = bisect_left(range(int(n_with.max(initial=0)) + 1), True, key=has_few_pairs)
    return np.flatnonzero(n_with >= least)


def positive_information(counts: csr_matrix, smoothing: float) -> csr_matrix:
    """Return the positive pointwise mutual information of terms, float32 (n_terms, n_terms).

    It is max(0, ln p(t, c) / (p(t) p(c))) for each pair of terms that some text has: how much more
    often they occur in one text than if they were independent. A text counts 1/n for each pair of
    its n terms, so that long texts do not decide alone. Context frequencies are smoothed by a power
    (Levy, Goldberg & Dagan 2015, sections 2.1 and 3.1).
    """
    n_terms_of = np.maximum(np.diff(counts.indptr), 1)
    shares = np.repeat(1 / np.sqrt(n_terms_of), np.diff(counts.indptr)).astype(np.float32)
    shared = csr_matrix((shares, counts.indices, counts.indptr), shape=counts.shape)
    by_term = shared.T.tocsr()
    frequency = by_term @ (shared @ np.ones(shared.shape[1], np.float64))
    context = frequency**smoothing
    context /= max(context.sum(), 1e-9)
    # Nothing is divided by zero.
    frequency = np.maximum(frequency, 1e-30)
    context = np.maximum(context, 1e-30)
    blocks = []
    start = 0
    for pairs in _pairs(by_term, shared):
        end = start + pairs.shape[0]
        blocks.append(_positive(pairs, frequency[start:end], context))
        start = end
    return _stacked(blocks)


def _pairs(by_term: csr_matrix, by_text: csr_matrix) -> Iterator[csr_matrix]:
    """Yield blocks of rows of by_term @ by_text: of each term with all terms."""
    n_texts, n_terms = by_text.shape
    n_terms_of = np.diff(by_text.indptr).astype(np.float64)
    is_dense = n_terms_of @ n_terms_of * DENSE_SPEED > float(n_texts) * n_terms**2
    if is_dense:  # long texts have most of the terms
        dense = by_text.toarray()
        step = max(PAIRS_PER_BLOCK // n_terms, 1)
        for start in range(0, n_terms, step):
            yield csr_matrix(by_term[start : start + step].toarray() @ dense)
        return
    # An upper bound of the pairs of each term, added up.
    bound = np.cumsum(np.append(0, (by_term > 0) @ n_terms_of.astype(np.int64)))
    start = 0
    while start < n_terms:
        end = int(np.searchsorted(bound, bound[start] + PAIRS_PER_BLOCK, side="right")) - 1
        end = max(end, start + 1)
        yield by_term[start:end] @ by_text
        start = end


def _positive(pairs: csr_matrix, frequency: np.ndarray, context: np.ndarray) -> csr_matrix:
    """Return the logarithms of the ratios above 1 of counted to expected pairs."""
    ratio = pairs.data / (frequency[_rows(pairs)] * context[pairs.indices])
    is_positive = ratio > 1
    indptr = np.append(0, np.cumsum(is_positive))[pairs.indptr]
    data = np.log(ratio[is_positive]).astype(np.float32)
    information = csr_matrix((data, pairs.indices[is_positive], indptr), shape=pairs.shape)
    information.sort_indices()
    return information


def _stacked(blocks: list[csr_matrix]) -> csr_matrix:
    """Stack blocks of rows, and empty the list meanwhile, so that both do not fill the memory."""
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
    matrix: csr_matrix, n: int, n_iter: int, seed: Any = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the n largest singular values (n,) with their left vectors (n_rows, n) and right ones
    (n, n_columns), float32, in descending order.

    The method is subspace iteration: Halko, Martinsson and Tropp 2011 ("Finding structure with
    randomness"), algorithm 4.4. The largest number of a left vector is positive. The same seed
    gives the same bits for any number of threads.

    >>> truncated_svd(csr_matrix(np.diag([3.0, 1.0, 2.0])), 2, 2)[0].round(3)
    array([3., 2.], dtype=float32)
    """
    from scipy.linalg import lu, qr

    rng = random_generator(seed)
    width = min(n + OVERSAMPLES, *matrix.shape)
    basis = rng.normal(size=(matrix.shape[1], width)).astype(np.float32)
    # One BLAS thread, so that bits do not depend on their number; more are slower here, too.
    with one_blas_thread():
        for _ in range(n_iter):
            for side in (matrix, matrix.T):
                basis = lu(_product(side, basis), permute_l=True, check_finite=False)[0]
        range_, _ = qr(_product(matrix, basis), mode="economic", check_finite=False)
        # Few rows and many columns: their products are decomposed in double precision.
        projected = _product(matrix.T, range_).astype(np.float64)
        squares, axes = np.linalg.eigh(projected.T @ projected)
        # `eigh` sorts them in ascending order.
        values = np.sqrt(np.maximum(squares[::-1][:n], 0))
        axes = axes[:, ::-1][:, :n]
        left = range_ @ axes.astype(np.float32)
        right = (projected @ axes).T
        right /= np.where(values > 0, values, np.inf)[:, None]
    largest = np.abs(left).argmax(axis=0)
    signs = np.where(left[largest, np.arange(left.shape[1])] < 0, -1, 1)
    return (
        values.astype(np.float32),
        (left * signs).astype(np.float32),
        (right * signs[:, None]).astype(np.float32),
    )


def _product(matrix: csr_matrix | csc_matrix, columns: np.ndarray) -> np.ndarray:
    """Return matrix @ columns; each thread multiplies some columns at a time."""
    product = np.empty((matrix.shape[0], columns.shape[1]), np.float32)

    def multiply(start: int) -> None:
        block = slice(start, start + COLUMNS_PER_TASK)
        product[:, block] = matrix @ np.ascontiguousarray(columns[:, block])

    starts = range(0, columns.shape[1], COLUMNS_PER_TASK)
    run_in_threads(lambda: multiply, starts, available_cores())
    return product


def _rows(matrix: csr_matrix) -> np.ndarray:
    """Return the row of each entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _idf(counts: csr_matrix) -> np.ndarray:
    """Return ln((1 + N) / (1 + n)) + 1 for each term that n of N texts have."""
    n_texts_with = np.bincount(counts.indices, minlength=counts.shape[1])
    return np.log((1 + counts.shape[0]) / (1 + n_texts_with)) + 1
