"""How good a text search is, by queries whose right answers are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from qkvsearch.data.ids import Id, Ids, id_text
from qkvsearch.data.judgements import Judgements, Queries
from qkvsearch.errors import DataError, suggest
from qkvsearch.evaluation.metrics import Grades, Ranked, ndcg, recall, reciprocal_rank
from qkvsearch.evaluation.report import Evaluation, Metrics
from qkvsearch.progress import Progress

# A query's text and how many hits to the ids of the hits, best first.
Search = Callable[[str, int], Sequence[Id]]

DEPTH = 100
PROTOCOL = "judged queries"


def evaluate_search(
    search: Search,
    queries: Queries,
    judgements: Judgements,
    *,
    baselines: Mapping[str, Search] | None = None,
    catalog: Ids | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """nDCG@10, MRR@10 and Recall@100, averaged over the queries that have judgements.

    Items without a judgement count as not relevant, and a query without hits as 0, as in trec_eval.
    `baselines`: other searches to judge beside this one. `catalog`: the ids that can be found;
    judged items that are not among them are listed, and still count as missed. Raises `DataError`
    where a judgement names a query that is not there, or no query has one.

    >>> found = {"red planet": ["mars", "venus"]}
    >>> judged = evaluate_search(lambda text, k: found[text][:k],
    ...                          {"q1": "red planet"}, {"q1": {"venus": 1}})
    >>> judged.metrics["mrr@10"]
    0.5
    """
    for query in judgements:
        if query not in queries:
            near = suggest(query, list(queries))
            raise DataError(f"judgements name query {query!r}, which has no text{near}")
    judged = [query for query in queries if query in judgements]
    if not judged:
        raise DataError("none of the queries has a judgement: nothing to average over")
    grades = [judgements[query] for query in judged]
    figures: dict[str, Metrics] = {}
    rankings: dict[str, list[Any]] = {}
    for name, system in {"qkvsearch": search, **(baselines or {})}.items():
        ranked = rankings[name] = []
        for done, query in enumerate(judged, 1):
            ranked.append([id_text(found) for found in system(queries[query], DEPTH)])
            if progress is not None:
                progress(f"asking {name}", done, len(judged))
        figures[name] = _figures(ranked, grades)
    items = sorted({item for judged_items in grades for item in judged_items})
    facts = {
        "queries": len(judged),
        "queries_without_hits": sum(not ranked for ranked in rankings["qkvsearch"]),
        "queries_without_judgements": [query for query in queries if query not in judgements],
        "items_not_in_catalog": [
            item for item in items if catalog is not None and item not in catalog
        ],
    }
    return Evaluation(PROTOCOL, figures.pop("qkvsearch"), figures, facts)


def _figures(rankings: Sequence[Ranked], judged: Sequence[Grades]) -> Metrics:
    pairs = list(zip(rankings, judged, strict=True))
    return {
        "ndcg@10": fmean(ndcg(ranked, grades, 10) for ranked, grades in pairs),
        "mrr@10": fmean(reciprocal_rank(ranked, grades, 10) for ranked, grades in pairs),
        f"recall@{DEPTH}": fmean(recall(ranked, grades, DEPTH) for ranked, grades in pairs),
    }
