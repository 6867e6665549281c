"""How much of the answers of an exact search another one finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from qkvsearch._utils.progress import Progress
from qkvsearch.errors import DataError
from qkvsearch.evaluation.results import Evaluation
from qkvsearch.retrieval import Hit

# A query's text and how many hits to the hits, best first.
Answer = Callable[[str, int], Sequence[Hit]]

PROTOCOL, DEPTH = "against local", 10
FOUND, APART, WEIGHTS = f"found@{DEPTH}", "score_difference", "weight_difference"


def against(
    answer: Answer, exact: Answer, queries: Sequence[str], progress: Progress | None = None
) -> Evaluation:
    """Over the queries that `exact` answers: the mean share of its ten best hits that `answer` has
    among its own ten; by how much the scores of these differ at most, and their weights, as a share
    of the exact one. Raises `DataError` where no query has an answer.

    >>> ten = lambda text, k: [Hit(1, text, text, 2.0, 0.5)]
    >>> against(ten, ten, ["sea"]).metrics
    {'found@10': 1.0, 'score_difference': 0.0, 'weight_difference': 0.0}
    """
    shares, apart, weights = [], 0.0, 0.0
    for done, query in enumerate(queries, 1):
        wanted = {hit.id: hit for hit in exact(query, DEPTH)}
        found = {hit.id: hit for hit in answer(query, DEPTH)}
        both = wanted.keys() & found.keys()
        if wanted:
            shares.append(len(both) / len(wanted))
        for id_ in both:
            apart = max(apart, abs(wanted[id_].score - found[id_].score))
            weights = max(weights, abs(found[id_].weight / wanted[id_].weight - 1))
        if progress is not None:
            progress("comparing answers", done, len(queries))
    if not shares:
        raise DataError("none of the queries has an answer: nothing to compare")
    figures = {FOUND: fmean(shares), APART: apart, WEIGHTS: weights}
    facts = {"queries": len(queries), "queries_without_hits": len(queries) - len(shares)}
    return Evaluation(PROTOCOL, figures, facts=facts)
