"""The pictures of an evaluation by queries that a catalog makes of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from qkvsearch.evaluation.pictures.panel import Panel, Series, Shape

if TYPE_CHECKING:
    from qkvsearch.evaluation.made_queries.report import KindFigures


def made_panels(kinds: Mapping[str, KindFigures]) -> Iterator[Panel]:
    """Yield the panels of the figures by kind. kinds: by the name of the kind, in order."""
    yield _outcomes(kinds)
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
        Shape.STACKED,
        "kind of query",
        [name.replace("_", " ") for name in kinds],
        "share of the queries (%)",
        [first, later, missing],
        is_share=True,
        counts=[each.queries for each in figures],
        counted="queries",
    )


def _found_by(kinds: Mapping[str, KindFigures], found_by: Counter[str]) -> Panel:
    """Return a panel of the heads that would have had an item first."""
    n_missed = sum(round(each.queries * (1 - each.first)) for each in kinds.values())
    heads = [head for head, _ in found_by.most_common()]
    return Panel(
        "Misses that one head alone has first",
        Shape.BARS,
        "head",
        heads,
        f"of {n_missed:,} queries whose item is not first (%)",
        [Series("first by this head", [found_by[head] / n_missed for head in heads])],
        is_share=True,
        counts=[found_by[head] for head in heads],
        counted="queries",
    )
