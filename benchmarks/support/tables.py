"""Rows as Markdown: a table a task, or tasks and systems crossed; the best figure in bold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.support.results import Row

# Of the settings that are compared on several sets: the mean of their shares of each set's best.
SHARE = "mean share of the best"
# Which of two figures is the better one, by what is before the @; of others none is.
BEST = {
    "AUC": max,
    "HR": max,
    "MRR": max,
    "NDCG": max,
    "nDCG": max,
    "RMSE": min,
    SHARE: max,
}
TIME, RATIO = "time", "time / ours"


def tables(rows: Sequence[Row], layout: str = "") -> str:
    """layout: "by task" has a line a task and a column a system, "by system" the other way round;
    otherwise every task has a table of its own, and so do rows of other metrics than the first,
    but for the mean share.
    """
    if layout:
        together = [row for row in rows if row.metric in (rows[0].metric, SHARE)]
        apart = [row for row in rows if row not in together]
        return "\n\n".join([crossed(together, layout), *([tables(apart)] if apart else [])])
    of_task: dict[str, list[Row]] = {}
    for row in rows:
        of_task.setdefault(row.task, []).append(row)
    return "\n\n".join(table_of_task(task, some) for task, some in of_task.items())


def table_of_task(task: str, rows: Sequence[Row]) -> str:
    """A line a system: a column a metric, and the time, where there are any."""
    metrics = distinct(row.metric for row in rows if row.quality is not None)
    bold = best(rows)
    is_timed = any(row.seconds is not None for row in rows)
    lines = []
    for system in distinct(row.system for row in rows):
        own = {row.metric: row for row in rows if row.system == system}
        cells = [quality(own[name], bold) if name in own else "" for name in metrics]
        timed = next((row for row in own.values() if row.seconds is not None), None)
        times = ["", ""] if timed is None else [seconds(timed), f"{timed.ratio:.2f}"]
        lines.append([system, *cells, *(times if is_timed else [])])
    return markdown([task, *metrics, *([TIME, RATIO] if is_timed else [])], lines)


def crossed(rows: Sequence[Row], layout: str) -> str:
    """One figure a task and system: its quality, or else its time; of ours over what, too."""
    bold = {row for task in distinct(r.task for r in rows) for row in best(of(rows, task))}
    tasks, systems = (distinct(getattr(r, name) for r in rows) for name in ("task", "system"))
    cells = {
        (row.task, row.system): quality(row, bold) if row.quality is not None else timing(row)
        for row in rows
    }
    corner = rows[0].metric
    if layout == "by task":
        lines = [[task, *(cells.get((task, s), "") for s in systems)] for task in tasks]
        return markdown([corner, *systems], lines)
    lines = [[system, *(cells.get((t, system), "") for t in tasks)] for system in systems]
    return markdown([corner, *tasks], lines)


def of(rows: Iterable[Row], task: str) -> list[Row]:
    return [row for row in rows if row.task == task]


def best(rows: Sequence[Row]) -> set[Row]:
    """Of each metric of one task, the rows that show the best figure, where there are others."""
    found: set[Row] = set()
    for metric in distinct(row.metric for row in rows):
        judged = [row for row in rows if row.metric == metric and row.quality is not None]
        choose = BEST.get(metric.partition("@")[0])
        if choose is not None and len(judged) > 1:
            figure = number(choose(row.quality for row in judged if row.quality is not None))
            found |= {row for row in judged if number(row.quality or 0) == figure}
    return found


def quality(row: Row, bold: Iterable[Row] = ()) -> str:
    shown = "" if row.quality is None else number(row.quality)
    return f"**{shown}**" if row in bold else shown


def number(value: float) -> str:
    """Four decimals of what is between −1 and 1, without the 0; four digits of what is not."""
    if 0 < abs(value) < 1e-4:
        return f"{value:.0e}"
    if abs(value) < 1:
        return f"{value:.4f}".replace("0.", ".", 1)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def timing(row: Row) -> str:
    return seconds(row) + ("" if row.ratio in (None, 1) else f" (× {row.ratio:.2f})")


def seconds(row: Row) -> str:
    took = row.seconds
    if took is None:
        return ""
    if took >= 0.1:
        return f"{took:.2f} s" if took < 100 else f"{took:.0f} s"
    return f"{took * 1e3:.0f} ms" if took >= 0.01 else f"{took * 1e3:.2f} ms"


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]], n_names: int = 1) -> str:
    """A table whose first columns are names, the others numbers."""
    rule = ["---"] * n_names + ["---:"] * (len(headings) - n_names)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *lines))


def distinct(names: Iterable[str]) -> list[str]:
    found: Mapping[str, None] = dict.fromkeys(names)
    return list(found)
