"""Evaluate text search by judged queries."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.errors import Count, DataError, listed_names
from qkvsearch.evaluation.match_grades import N_HITS, by_grade
from qkvsearch.evaluation.metrics import (
    Grades,
    Ranked,
    interval,
    ndcg,
    recall,
    reciprocal_rank,
    resampled_means,
)
from qkvsearch.evaluation.results import OURS, Evaluation
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
# The baseline of the same heads without the owner's rules.
WITHOUT_RULES = "no rules"


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
    figures: dict[str, dict[str, np.ndarray]] = {}
    rankings: dict[str, list[Any]] = {}
    for name, system in {OURS: search, **(baselines or {})}.items():
        rankings[name] = []
        for done, query in enumerate(judged, 1):
            ranked = system(queries[query], DEPTH)
            rankings[name].append([id_text(id_) for id_ in ranked])
            if progress is not None:
                progress(f"asking {name}", done, len(judged))
        figures[name] = figures_of(rankings[name], grades)
    facts: dict[str, Any] = {
        "queries": len(judged),
        "queries_without_hits": sum(not ranked for ranked in rankings[OURS]),
        "queries_without_judgements": [query for query in queries if query not in judgements],
        "items_not_in_catalog": _items_outside(catalog, grades),
    }
    metrics = {
        name: {metric: float(values.mean()) for metric, values in of_system.items()}
        for name, of_system in figures.items()
    }
    return Evaluation(
        PROTOCOL,
        metrics.pop(OURS),
        metrics,
        facts,
        intervals=_intervals(figures[OURS]),
        notes=_notes(facts),
    )


def _intervals(figures: Mapping[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Return the 95% interval of each metric, bootstrapped over queries."""
    samples = resampled_means(np.column_stack([*figures.values()]))
    return {name: interval(of_metric) for name, of_metric in zip(figures, samples.T, strict=True)}


def _items_outside(catalog: Ids | None, judged: Sequence[Grades]) -> list[Any]:
    """Return the judged items that are not in the catalog, in order."""
    if catalog is None:
        return []
    items = {item for grades in judged for item in grades}
    return [item for item in sorted(items) if item not in catalog]


def _notes(facts: Mapping[str, Any]) -> list[str]:
    """Return sentences about what was left out, and what counts as missed."""
    notes = []
    queries = facts["queries_without_judgements"]
    if queries:
        n = Count(len(queries))
        notes.append(
            f"{n} {n:query|queries} without judgements left out: {listed_names(queries, MAX_NAMES)}"
        )
    items = facts["items_not_in_catalog"]
    if items:
        n = Count(len(items))
        notes.append(
            f"{n} {n:item not in catalog counts|items not in catalog count} as missed: "
            f"{listed_names(items, MAX_NAMES)}"
        )
    return notes


def evaluate_heads(
    search: Callable[..., Iterable[Hit]],
    queries: str | Path | Queries,
    qrels: str | Path | Judgements,
    heads: list[str] | None,
    catalog: Ids,
    progress: Progress | None = None,
    has_rules: bool = False,
) -> Evaluation:
    """Evaluate `Engine.search` with these heads (None: all), beside the lexical head alone, and
    how many hits of each match grade are right.

    queries, qrels: files, or what `evaluate_search` takes. has_rules: whether there are rules of
    the owner; then the same heads without them are one more baseline. Raises `QkvError`.
    """
    texts, judgements = judged_by(queries, qrels)
    first_hits: list[list[Hit]] = []

    def ours(text: str, k: int) -> list[Id]:
        hits = list(search(text, k=k, heads=heads))
        first_hits.append(hits[:N_HITS])
        return [hit.id for hit in hits]

    def baseline(text: str, k: int) -> list[Id]:
        return [hit.id for hit in search(text, k=k, heads=[BASELINE], rules=False)]

    def without_rules(text: str, k: int) -> list[Id]:
        return [hit.id for hit in search(text, k=k, heads=heads, rules=False)]

    baselines: dict[str, Search] = {}
    if heads is None or {*heads} != {BASELINE}:
        baselines[BASELINE] = baseline
    if has_rules:
        baselines[WITHOUT_RULES] = without_rules
    evaluation = evaluate_search(
        ours,
        texts,
        judgements,
        baselines=baselines,
        catalog=catalog,
        progress=progress,
    )
    judged = [judgements[query] for query in texts if query in judgements]
    return replace(evaluation, match_grades=by_grade(first_hits, judged))


def figures_of(rankings: Sequence[Ranked], judged: Sequence[Grades]) -> dict[str, np.ndarray]:
    """Return the value of each metric for each query, (n,)."""
    pairs = list(zip(rankings, judged, strict=True))
    return {
        "ndcg@10": np.array([ndcg(ranked, grades, 10) for ranked, grades in pairs]),
        "mrr@10": np.array([reciprocal_rank(ranked, grades, 10) for ranked, grades in pairs]),
        f"recall@{DEPTH}": np.array([recall(ranked, grades, DEPTH) for ranked, grades in pairs]),
    }
