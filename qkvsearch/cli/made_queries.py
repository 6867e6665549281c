"""The report on made queries, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from qkvsearch.cli.text_table import to_table
from qkvsearch.cli.wrapping import filled
from qkvsearch.errors import Count

if TYPE_CHECKING:
    from qkvsearch.evaluation.made_queries.report import KindFigures, MadeEvaluation


def report(result: MadeEvaluation) -> str:
    """Return the sentence, the figures by kind, the examples, and what is not measured."""
    parts = [filled(result.sentence), "", _kinds_table(result).rstrip("\n")]
    parts += map(filled, _means(result))
    if result.worst:
        parts += ["", "To look at: queries whose item is not first", _worst_table(result).rstrip()]
    parts += ["", *map(filled, result.limits)]
    return "\n".join(parts) + "\n"


def _means(result: MadeEvaluation) -> list[str]:
    """Return the means as sentences: of all, of the lexical head, and of the held-out half."""
    from qkvsearch.heads.lexical_head import LEXICAL

    low, high = result.intervals["mrr@10"]
    lexical = result.baselines[LEXICAL.name]["mrr@10"]
    held_out = result.facts["held_out"]
    of_half = f", MRR@10 {held_out['mrr@10']:.3f}" if held_out["queries"] else ""
    return [
        f"MRR@10 (the mean of 1 / rank) over the kinds with a *: {result.metrics['mrr@10']:.3f} "
        f"(95% interval {low:.3f} to {high:.3f}); by the lexical head alone: {lexical:.3f}.",
        f"Held out from tune search: {Count(held_out['queries'])} of these queries{of_half}.",
    ]


def _kinds_table(result: MadeEvaluation) -> str:
    from qkvsearch.evaluation.made_queries.kinds import KINDS_BY_NAME

    columns = [
        ("what was asked", "wrap"),
        ("queries", "right"),
        ("first", "right"),
        ("among ten", "right"),
        ("missing", "right"),
    ]
    is_found_otherwise = any(figures.found_by for figures in result.kinds.values())
    if is_found_otherwise:
        columns.append(("a head alone has it first", "wrap"))
    rows = []
    for name, figures in result.kinds.items():
        mark = " *" if figures.counts else ""
        row = [
            KINDS_BY_NAME[name].description + mark,
            f"{figures.queries:,}",
            _with_interval(figures),
            f"{figures.among_ten:.0%}",
            f"{figures.missing:.0%}",
        ]
        rows.append([*row, _found_by(figures)] if is_found_otherwise else row)
    return to_table(columns, rows, "* counts in the means; in brackets: the 95% interval")


def _with_interval(figures: KindFigures) -> str:
    """Return the share of the queries whose item is first, such as "81% (72–88)"."""
    low, high = figures.interval
    return f"{figures.first:.0%} ({100 * low:.0f}–{100 * high:.0f})"


def _found_by(figures: KindFigures) -> str:
    """Return which heads alone would have had an item first, the most frequent first."""
    most = sorted(figures.found_by.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{head} {n}" for head, n in most)


def _worst_table(result: MadeEvaluation) -> str:
    columns = [
        ("query", "wrap"),
        ("should find", "wrap"),
        ("rank", "right"),
        ("first by", "left"),
    ]
    rows = [
        [
            row["query"],
            _right_items(row),
            "none" if row["rank"] is None else str(row["rank"]),
            row["found_by"] or "",
        ]
        for row in result.worst
    ]
    return to_table(columns, rows)


def _right_items(row: Mapping[str, Any]) -> str:
    """Return the title of an item that answers a query, and how many others do."""
    if not row["others"]:
        return str(row["title"])
    others = Count(row["others"])
    return f"{row['title']} (or {others} {others:other|others})"
