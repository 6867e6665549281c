"""Qualities by the metrics of `qkvsearch.evaluation`, of rankings by scores and of searches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch import Engine
from qkvsearch.evaluation.metrics import ndcg
from qkvsearch.scores.topk import top_k
from qkvsearch.tables.ids import Id, id_text
from qkvsearch.tables.judgements import Judgements

# Rows of the training matrix to scores (n, n_items).
Score = Callable[[slice], np.ndarray]
USERS_AT_ONCE = 1024


# --- recommending ---


def ndcg_of(score: Score, train: csr_matrix, test: csr_matrix, k: int = 20) -> float:
    """NDCG@k over all items not in `train`; users without test items are left out."""
    return mean_ndcg(rankings(score, train, k), test, k)


def mean_ndcg(ranked: Iterable[list[int]], test: csr_matrix, k: int) -> float:
    """Of each row's ranking, by the row's entries in `test`, all of grade 1."""
    entries = np.split(test.indices, test.indptr[1:-1])
    pairs = zip(ranked, entries, strict=True)
    return fmean(
        ndcg(found, dict.fromkeys(relevant.tolist(), 1), k)
        for found, relevant in pairs
        if len(relevant)
    )


def rankings(score: Score, train: csr_matrix, k: int) -> Iterator[list[int]]:
    """Each user's k best items that are not in `train`."""
    for start in range(0, train.shape[0], USERS_AT_ONCE):
        block = slice(start, start + USERS_AT_ONCE)
        scores = score(block)
        scores[train[block].nonzero()] = -np.inf
        yield from (top_k(of_user, k).tolist() for of_user in scores)


# --- searching ---


def ask(
    engine: Engine,
    heads: Sequence[str] | None,
    k: int,
    texts: Iterable[str],
    *,
    anyway: bool = False,
) -> list[list[Id]]:
    """The ids of the first k hits of each query, one query after another, as a person asks."""
    found = (engine.search(text, k=k, heads=heads, anyway=anyway) for text in texts)
    return [[id_text(hit.id) for hit in ranking] for ranking in found]


def mean_over(
    metric: Callable[..., float], k: int, queries: Iterable[str], judgements: Judgements
) -> Callable[[list[Any]], float]:
    """A judge of what `ask` gave: the metric at k, averaged over the queries."""
    grades: list[Mapping[str, int]] = [judgements[query] for query in queries]
    return lambda made: fmean(map(lambda ids, of: metric(ids, of, k), made[-1], grades))
