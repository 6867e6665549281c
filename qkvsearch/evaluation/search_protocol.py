"""How good a text search is, by queries whose right answers are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from qkvsearch._utils.progress import Progress
from qkvsearch.data.ids import Id, Ids, id_text
from qkvsearch.data.judgements import (
    LEARNED_FROM,
    Judgements,
    Queries,
    among,
    check_queries,
    judged_by,
)
from qkvsearch.errors import DataError, listed_names
from qkvsearch.evaluation.metrics import Grades, Ranked, ndcg, recall, reciprocal_rank
from qkvsearch.evaluation.results import Evaluation, Metrics
from qkvsearch.retrieval import Hit

# A query's text and how many hits to the ids of the hits, best first.
Search = Callable[[str, int], Sequence[Id]]

DEPTH = 100
PROTOCOL = "judged queries"
BASELINE = "lexical"
# Names in a note; the facts have all of them.
SHOWN_NAMES = 3


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
            ranked.append([id_text(found) for found in system(queries[query], DEPTH)])
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
    left_out = {"queries_without_judgements": "left out", "items_not_in_catalog": "count as missed"}
    notes = [
        _counted(facts[fact], fact.replace("_", " "), fate)
        for fact, fate in left_out.items()
        if facts[fact]
    ]
    return Evaluation(PROTOCOL, figures.pop("qkvsearch"), figures, facts, notes=notes)


def _counted(names: Sequence[str], what: str, fate: str) -> str:
    return f"{len(names):,} {what} {fate}: {listed_names(names, SHOWN_NAMES)}"


def evaluate_heads(
    search: Callable[..., Iterable[Hit]],
    queries: str | Path | Queries,
    qrels: str | Path | Judgements,
    heads: list[str] | None,
    catalog: Ids,
    progress: Progress | None = None,
    learned_from: str = "",
) -> Evaluation:
    """`Engine.search` by some of its heads, None for all, beside the lexical head alone.

    queries, qrels: files, or what `evaluate_search` takes. learned_from: the fingerprints of the
    queries that the heads' weights were learned from; "learned_from" among the facts is how many
    of the judged ones these are. Raises `QkvError`.
    """
    judged = judged_by(queries, qrels)
    if judged is None:
        raise DataError("give queries, and qrels that answer them")

    def searching(by: list[str] | None) -> Search:
        return lambda text, k: [hit.id for hit in search(text, k=k, heads=by)]

    baselines = {} if heads and {*heads} == {BASELINE} else {BASELINE: searching([BASELINE])}
    found = evaluate_search(
        searching(heads), *judged, baselines=baselines, catalog=catalog, progress=progress
    )
    asked = [text for query, text in judged[0].items() if query in judged[1]]
    n = among(asked, learned_from)
    said = _training_scores(n, len(asked))
    facts = {**found.facts, LEARNED_FROM: n}
    return replace(found, facts=facts, notes=[*said, *found.notes])


def _training_scores(n: int, n_judged: int) -> list[str]:
    """What figures are worth where the weights were learned from `n` of the judged queries."""
    if not n:
        return []
    share = f"all {n_judged:,}" if n == n_judged else f"{n:,} of the {n_judged:,}"
    return [
        f"Training scores: the weights of this build were learned from {share} judged queries; for "
        "figures that hold for others, judge by others, or build without these."
    ]


def _figures(rankings: Sequence[Ranked], judged: Sequence[Grades]) -> Metrics:
    pairs = list(zip(rankings, judged, strict=True))
    return {
        "ndcg@10": fmean(ndcg(ranked, grades, 10) for ranked, grades in pairs),
        "mrr@10": fmean(reciprocal_rank(ranked, grades, 10) for ranked, grades in pairs),
        f"recall@{DEPTH}": fmean(recall(ranked, grades, DEPTH) for ranked, grades in pairs),
    }
