"""The pictures of an evaluation by queries that a catalog makes of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from qkvsearch.evaluation.made_queries.query_kind import HEADS
from qkvsearch.evaluation.pictures.panel import Panel, PanelShape, Series, span
from qkvsearch.evaluation.results import OURS
from qkvsearch.heads.lexical_head import LEXICAL

if TYPE_CHECKING:
    from qkvsearch.evaluation.made_queries.popularity import FirstByPopularity
    from qkvsearch.evaluation.made_queries.report import KindFigures


# Fewer groups show no course.
MIN_GROUPS = 2


def made_panels(
    kinds: Mapping[str, KindFigures], by_popularity: Sequence[FirstByPopularity] = ()
) -> Iterator[Panel]:
    """Yield the panels of the figures by kind and by popularity of the item.

    kinds: by the name of the kind, in order.
    """
    yield _outcomes(kinds)
    yield _beside_lexical(kinds)
    if len(by_popularity) >= MIN_GROUPS:
        yield _by_popularity(by_popularity)
    found_by = Counter[str]()
    for figures in kinds.values():
        found_by.update(figures.found_by)
    if found_by:
        yield _found_by(kinds, found_by)


def _outcomes(kinds: Mapping[str, KindFigures]) -> Panel:
    """Return a panel of what became of the queries of each kind."""
    figures = list(kinds.values())
    first = Series("first", [each.first for each in figures], [each.interval for each in figures])
    later = Series("2 to 10", [each.among_ten - each.first for each in figures])
    missing = Series("missing", [each.missing for each in figures])
    return Panel(
        "Where the right item is, by kind of query",
        PanelShape.STACKED,
        "kind of query",
        [name.replace("_", " ") for name in kinds],
        "share of the queries (%)",
        [first, later, missing],
        is_share=True,
        counts=[each.queries for each in figures],
        counted="queries",
    )


def _beside_lexical(kinds: Mapping[str, KindFigures]) -> Panel:
    """Return a panel of how often the item is first, beside the lexical head alone."""
    figures = list(kinds.values())
    ours = Series(OURS, [each.first for each in figures], [each.interval for each in figures])
    lexical = Series(f"{LEXICAL.name} alone", [each.first_by_lexical for each in figures])
    return Panel(
        "Right item first, beside the lexical head",
        PanelShape.BARS,
        "kind of query",
        [name.replace("_", " ") for name in kinds],
        "queries whose item is first (%)",
        [ours, lexical],
        is_share=True,
        note=_which_compare(kinds),
    )


def _which_compare(kinds: Mapping[str, KindFigures]) -> str:
    """Return which kinds tell whether one head is better than others; empty if all do."""
    comparing = [name.replace("_", " ") for name, each in kinds.items() if HEADS in each.carries]
    if not comparing:
        return "None of these kinds tells which head is better on a catalog like this one."
    if len(comparing) == len(kinds):
        return ""
    named = ", ".join(comparing)
    return f"On a catalog like this one, only these kinds tell which head is better: {named}."


def _by_popularity(groups: Sequence[FirstByPopularity]) -> Panel:
    """Return a panel of how often the item is first, by how many users met it."""
    ours = Series(OURS, [each.first[OURS] for each in groups], [each.interval for each in groups])
    lexical = Series(f"{LEXICAL.name} alone", [each.first[LEXICAL.name] for each in groups])
    return Panel(
        "Right item first, by popularity",
        PanelShape.LINES,
        "users who met the item",
        [span(each.low, each.high) for each in groups],
        "queries whose item is first (%)",
        [ours, lexical],
        is_share=True,
        counts=[each.queries for each in groups],
        counted="queries",
        note="Queries of the kinds in the mean.",
    )


def _found_by(kinds: Mapping[str, KindFigures], found_by: Counter[str]) -> Panel:
    """Return a panel of the heads that would have had an item first."""
    n_missed = sum(round(each.queries * (1 - each.first)) for each in kinds.values())
    heads = [head for head, _ in found_by.most_common()]
    return Panel(
        "Misses that one head alone has first",
        PanelShape.BARS,
        "head",
        heads,
        f"of {n_missed:,} queries whose item is not first (%)",
        [Series("first by this head", [found_by[head] / n_missed for head in heads])],
        is_share=True,
        counts=[found_by[head] for head in heads],
        counted="queries",
    )
