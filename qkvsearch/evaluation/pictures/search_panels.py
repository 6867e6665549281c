"""The pictures of an evaluation of a search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qkvsearch.evaluation.match_grades import have_grades
from qkvsearch.evaluation.pictures.panel import Panel, PanelShape, Series

if TYPE_CHECKING:
    from qkvsearch.evaluation.results import Evaluation

LABELS = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10", "recall@100": "Recall@100"}


def search_panels(evaluation: Evaluation) -> Iterator[Panel]:
    """Yield the panels for which there are figures."""
    yield _metrics(evaluation)
    if have_grades(evaluation.match_grades):
        yield _match_grades(evaluation)


def _metrics(evaluation: Evaluation) -> Panel:
    """Return a panel with the metrics of each system."""
    names = list(evaluation.metrics)
    series = [
        Series(system, [metrics.get(name) for name in names])
        for system, metrics in evaluation.systems().items()
    ]
    ours = series[0]
    intervals = [evaluation.intervals.get(name) for name in names]
    averaged = evaluation.averaged
    return Panel(
        f"Quality by {evaluation.facts[averaged]:,} {evaluation.protocol}",
        PanelShape.BARS,
        "",
        [LABELS.get(name, name) for name in names],
        f"mean of the {averaged}, from 0 to 1",
        [Series(ours.name, ours.values, intervals), *series[1:]],
    )


def _match_grades(evaluation: Evaluation) -> Panel:
    groups = {name: group for name, group in evaluation.match_grades.items() if group.hits}
    series = Series(
        "right",
        [group.right for group in groups.values()],
        [group.interval for group in groups.values()],
    )
    return Panel(
        "Right hits by match grade",
        PanelShape.BARS,
        "match grade of a hit",
        [*groups],
        "hits among the first ten that are right (%)",
        [series],
        is_share=True,
        counts=[group.hits for group in groups.values()],
        counted="hits",
        note="A hit that nobody judged counts as wrong.",
    )
