"""Evaluate text search by judged queries."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from qkvsearch._utils.callbacks import Progress
from qkvsearch.errors import Count, DataError, listed_names
from qkvsearch.evaluation.metrics import Grades, Ranked, ndcg, recall, reciprocal_rank
from qkvsearch.evaluation.results import Evaluation, Metrics
from qkvsearch.rank.ranking import Hit
from qkvsearch.tables.ids import Id, Ids, id_text
from qkvsearch.tables.judgements import (
    Judgements,
    Queries,
    check_queries,
    judged_by,
)

# From a query's text and the number of hits to the ids of the hits, best first.
Search = Callable[[str, int], Sequence[Id]]

DEPTH = 100
PROTOCOL = "judged queries"
BASELINE = "lexical"
# At most this many names are in a note; the facts have all of them.
MAX_NAMES = 3


def evaluate_search(
    search: Search,
    queries: Queries,
    judgements: Judgements,
    *,
    baselines: Mapping[str, Search] | None = None,
    catalog: Ids | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Compute nDCG@10, MRR@10 and Recall@100, averaged over the queries that have judgements.

    Items without a judgement count as not relevant, and a query without hits as 0, as in trec_eval.
    `baselines`: other searches to evaluate under the same protocol. `catalog`: the ids that can be
    found; judged items outside it are listed in the facts and count as missed. Raises `DataError`
    if a judgement names a query that does not exist, or no query has a judgement.

    >>> hits = {"red planet": ["mars", "venus"]}
    >>> evaluation = evaluate_search(lambda text, k: hits[text][:k],
    ...                              {"q1": "red planet"}, {"q1": {"venus": 1}})
    >>> evaluation.metrics["mrr@10"]
    0.5
    """
    check_queries(judgements, queries)
    judged = [query for query in queries if query in judgements]
    if not judged:
        raise DataError("none of the queries has a judgement: nothing to average over")
    grades = [judgements[query] for query in judged]
    figures: dict[str, Metrics] = {}
    rankings: dict[str, list[Any]] = {}
    for name, system in {"qkvsearch": search, **(baselines or {})}.items():
        ranked = rankings[name] = []
        for done, query in enumerate(judged, 1):
            ranked.append([id_text(id_) for id_ in system(queries[query], DEPTH)])
            if progress is not None:
                progress(f"asking {name}", done, len(judged))
        figures[name] = _figures(ranked, grades)
    items = sorted({item for judged_items in grades for item in judged_items})
    facts: dict[str, Any] = {
        "queries": len(judged),
        "queries_without_hits": sum(not ranked for ranked in rankings["qkvsearch"]),
        "queries_without_judgements": [query for query in queries if query not in judgements],
        "items_not_in_catalog": [
            item for item in items if catalog is not None and item not in catalog
        ],
    }
    consequences = {
        "queries_without_judgements": "{n} {n:query|queries} without judgements left out",
        "items_not_in_catalog": "{n} {n:item not in catalog counts|items not in catalog count} as "
        "missed",
    }
    notes = []
    for fact, consequence in consequences.items():
        if names := facts[fact]:
            sentence = consequence.format(n=Count(len(names)))
            notes.append(f"{sentence}: {listed_names(names, MAX_NAMES)}")
    return Evaluation(PROTOCOL, figures.pop("qkvsearch"), figures, facts, notes=notes)


def evaluate_heads(
    search: Callable[..., Iterable[Hit]],
    queries: str | Path | Queries,
    qrels: str | Path | Judgements,
    heads: list[str] | None,
    catalog: Ids,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate `Engine.search` with these heads (None: all), beside the lexical head alone.

    queries, qrels: files, or what `evaluate_search` takes. Raises `QkvError`.
    """
    judged = judged_by(queries, qrels)

    def with_heads(names: list[str] | None) -> Search:
        return lambda text, k: [hit.id for hit in search(text, k=k, heads=names)]

    baselines = {} if heads and {*heads} == {BASELINE} else {BASELINE: with_heads([BASELINE])}
    return evaluate_search(
        with_heads(heads), *judged, baselines=baselines, catalog=catalog, progress=progress
    )


def _figures(rankings: Sequence[Ranked], judged: Sequence[Grades]) -> Metrics:
    pairs = list(zip(rankings, judged, strict=True))
    return {
        "ndcg@10": fmean(ndcg(ranked, grades, 10) for ranked, grades in pairs),
        "mrr@10": fmean(reciprocal_rank(ranked, grades, 10) for ranked, grades in pairs),
        f"recall@{DEPTH}": fmean(recall(ranked, grades, DEPTH) for ranked, grades in pairs),
    }
