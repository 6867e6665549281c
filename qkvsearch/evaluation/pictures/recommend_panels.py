"""The pictures of an evaluation of recommendations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qkvsearch.evaluation.groups import Interval
from qkvsearch.evaluation.pictures.palette import SERIES
from qkvsearch.evaluation.pictures.panel import Panel, PanelShape, Series, span

if TYPE_CHECKING:
    from qkvsearch.evaluation.results import Evaluation

# A panel of groups shows ours and the baselines; our heads alone are in its table.
MIN_GROUPS = 2


def recommend_panels(evaluation: Evaluation) -> Iterator[Panel]:
    """Yield the panels for which there are figures."""
    k = evaluation.facts["k"]
    yield _systems(evaluation, f"ndcg@{k}", f"Quality of the first {k}", f"nDCG@{k}, 1 is best")
    yield _systems(
        evaluation,
        f"coverage@{k}",
        "Coverage: what is recommended to anyone",
        "share of the items of the catalog (%)",
        is_share=True,
        note="More is not better in itself: random lists would cover everything.",
    )
    if len(evaluation.by_history) >= MIN_GROUPS:
        yield _by_history(evaluation, k)
    if len(evaluation.by_popularity) >= MIN_GROUPS:
        yield _by_popularity(evaluation, k)
        yield _recommended(evaluation)
    if "rmse" in evaluation.metrics:
        unit = "RMSE, in points of the rating, 0 is best"
        yield _systems(evaluation, "rmse", "Error of predicted ratings", unit)


def _systems(
    evaluation: Evaluation,
    metric: str,
    title: str,
    value_axis: str,
    is_share: bool = False,
    note: str = "",
) -> Panel:
    """Return a panel with a bar for each system that has a metric."""
    values = {
        name: metrics[metric] for name, metrics in evaluation.systems().items() if metric in metrics
    }
    ours, *others = values
    intervals = [evaluation.intervals.get(metric), *(None for _ in others)]
    return Panel(
        title,
        PanelShape.BARS,
        "",
        [ours, *others],
        value_axis,
        [Series(metric, [*values.values()], intervals)],
        ours_is_first=True,
        is_share=is_share,
        note=note,
    )


def _by_history(evaluation: Evaluation, k: int) -> Panel:
    groups = evaluation.by_history
    return Panel(
        "Quality by length of the user's history",
        PanelShape.LINES,
        "items in the user's history",
        [span(group.low, group.high) for group in groups],
        f"nDCG@{k}, mean of the users",
        _series(evaluation, [group.values for group in groups], [g.interval for g in groups]),
        counts=[group.users for group in groups],
        counted="users",
    )


def _by_popularity(evaluation: Evaluation, k: int) -> Panel:
    groups = evaluation.by_popularity
    return Panel(
        "Held-out items that are found, by popularity",
        PanelShape.LINES,
        "users who met the item",
        [span(group.low, group.high) for group in groups],
        f"held-out items among the first {k} (%)",
        _series(evaluation, [group.values for group in groups], [g.interval for g in groups]),
        is_share=True,
        counts=[group.held_out for group in groups],
        counted="held out",
    )


def _recommended(evaluation: Evaluation) -> Panel:
    groups = evaluation.by_popularity
    series = _series(evaluation, [group.recommended for group in groups], n_more=1)
    log = Series("the log itself", [group.interactions for group in groups])
    return Panel(
        "Popularity of what is recommended",
        PanelShape.LINES,
        "users who met the item",
        [span(group.low, group.high) for group in groups],
        "share of the recommendations (%)",
        [*series, log],
        is_share=True,
        counts=[group.items for group in groups],
        counted="items",
        note="Above the log itself: items of this popularity are recommended more often than "
        "people met them.",
    )


def _series(
    evaluation: Evaluation,
    values: list[dict[str, float]],
    intervals: list[Interval | None] | list[Interval] | None = None,
    n_more: int = 0,
) -> list[Series]:
    """Return a series of the values of each system, without our heads alone. Where a picture has
    fewer colours than systems, those with the lowest nDCG are left out. n_more: how many series the
    picture has beside these.
    """
    ours, *others = (name for name in evaluation.systems() if name not in evaluation.heads)
    ranked = [name for name in others if any(name in group for group in values)]
    metric = f"ndcg@{evaluation.facts['k']}"
    best = sorted(ranked, key=lambda name: -evaluation.baselines[name][metric])
    shown = best[: len(SERIES) - 1 - n_more]
    first = Series(ours, [group.get(ours) for group in values], intervals or ())
    drawn = [name for name in ranked if name in shown]
    return [first, *(Series(name, [group.get(name) for group in values]) for name in drawn)]
