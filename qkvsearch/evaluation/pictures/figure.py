"""Panels drawn by matplotlib, without its global state: no window opens, and no setting changes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

from qkvsearch.errors import need
from qkvsearch.evaluation.pictures.palette import (
    GRID,
    INK,
    ON_PARTS,
    OTHER,
    PAPER,
    PARTS,
    QUIET,
    SERIES,
    WHISKER,
)
from qkvsearch.evaluation.pictures.panel import Panel, Series, Shape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of one panel, in inches, and of each of its bars.
PANEL_WIDTH, LINES_HEIGHT = 5.4, 3.7
FRAME_HEIGHT, BAR_HEIGHT = 1.2, 0.25
# Of one on a page, which has its title, its note and its numbers beside it: the width of a phone.
BARE_WIDTH, BARE_LINES_HEIGHT, BARE_FRAME_HEIGHT = 3.8, 3.0, 0.6
# The share of a row that is left below its tallest panel: matplotlib wants more than 0.
EMPTY = 1e-6
# Pixels per inch of a PNG.
DPI = 150
# Of text, in points, and how many characters fit below a panel.
TEXT_SIZE, TITLE_SIZE = 9, 10.5
NOTE_WIDTH = 72
# The longest name of a group that has room in one line below a panel with lines.
LABEL_WIDTH = 8
# Of the name of a series in a legend, in inches, and of a line of names, in points.
LEGEND_WIDTH, LEGEND_LINE = 1.3, 15
MARKERS = ("o", "s", "^", "D", "")
DASHES = ("-", "--", "-.", ":", (0, (6, 2)))
# The distance between the series of a group of a panel with lines, so that all can be seen.
DODGE = 0.05
# Within a stacked bar, a part that is smaller has no room for its figure.
MIN_LABELLED = 0.08
# Instead of those of the user's own settings, which are for other pictures.
STYLE = {
    "axes.edgecolor": QUIET,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT_SIZE,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": TITLE_SIZE,
    "axes.titleweight": "bold",
    "figure.facecolor": PAPER,
    "font.family": "sans-serif",
    # The first is a part of matplotlib; an SVG file takes the others where it is missing.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": TEXT_SIZE,
    "grid.color": GRID,
    "legend.fontsize": TEXT_SIZE,
    "svg.fonttype": "none",  # text stays text, which can be read out and found
    "svg.hashsalt": "qkvsearch",  # the same picture is the same file
    "text.color": INK,
    "xtick.color": QUIET,
    "xtick.labelcolor": INK,
    "xtick.labelsize": TEXT_SIZE,
    "ytick.color": QUIET,
    "ytick.labelcolor": INK,
    "ytick.labelsize": TEXT_SIZE,
}


def require_matplotlib(task: str) -> None:
    """Raise `QkvError` if matplotlib is missing. task: what needs it."""
    need("matplotlib.figure", "plot", task)


def draw(panels: Sequence[Panel], headline: str = "", columns: int = 2) -> Figure:
    """Return a figure of all panels, side by side in columns, which a notebook shows.

    Raises `QkvError` if matplotlib is missing.
    """
    columns = min(columns, len(panels))
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    heights = [max(map(_height, row)) for row in rows]
    with _style():
        figure = _empty_figure(columns * PANEL_WIDTH, sum(heights) + (0.4 if headline else 0))
        if headline:
            figure.suptitle(headline, x=0.012, ha="left", fontsize=TEXT_SIZE, color=QUIET)
        grid = figure.add_gridspec(len(rows), columns, height_ratios=heights)
        for row, in_row in enumerate(rows):
            for column, panel in enumerate(in_row):
                # A panel with few bars ends above the foot of its row.
                own = [_height(panel), heights[row] - _height(panel) or EMPTY]
                axes = figure.add_subplot(grid[row, column].subgridspec(2, 1, height_ratios=own)[0])
                _draw_panel(axes, panel)
                legend_height = _add_legend(axes, panel, PANEL_WIDTH)
                axes.set_title(panel.title, loc="left", pad=8 + legend_height)
    return figure


def draw_bare(panel: Panel) -> Figure:
    """Return a figure of one panel for a page that tells its title, its note and its counts."""
    lines = panel.shape is Shape.LINES
    height = BARE_LINES_HEIGHT if lines else BARE_FRAME_HEIGHT + _height_of_bars(panel)
    with _style():
        figure = _empty_figure(BARE_WIDTH, height)
        axes = figure.add_subplot()
        _draw_panel(axes, replace(panel, counts=(), note=""))
        _add_legend(axes, panel, BARE_WIDTH)
    return figure


def _style() -> AbstractContextManager[None]:
    """Return a block with matplotlib's default settings and ours; it restores the user's."""
    require_matplotlib("a plot")
    from matplotlib import style

    return style.context(["default", STYLE])


def _empty_figure(width: float, height: float) -> Figure:
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from qkvsearch.evaluation.pictures.shown_figure import ShownFigure

    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1, hspace=0.03, wspace=0.03)
    return ShownFigure(figsize=(width, height), dpi=DPI, layout=layout)


def to_bytes(figure: Figure, format_name: str, transparent: bool = False) -> bytes:
    """Return a figure as PNG or SVG. The same figure gives the same bytes."""
    file = io.BytesIO()
    # A date would make each file another one.
    metadata: dict[str, Any] = {"Date": None} if format_name == "svg" else {}
    with _style():
        figure.savefig(
            file, format=format_name, dpi=DPI, metadata=metadata, transparent=transparent
        )
    return file.getvalue()


def _height(panel: Panel) -> float:
    """Return the height of a panel in inches."""
    if panel.shape is Shape.LINES:
        return LINES_HEIGHT
    return FRAME_HEIGHT + _height_of_bars(panel)


def _height_of_bars(panel: Panel) -> float:
    bars_in_group = 1 if panel.shape is Shape.STACKED else len(panel.series)
    between_groups = 0.5
    return BAR_HEIGHT * len(panel.groups) * (bars_in_group + between_groups)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    match panel.shape:
        case Shape.LINES:
            _draw_lines(axes, panel)
        case Shape.BARS:
            _draw_bars(axes, panel)
        case Shape.STACKED:
            _draw_stacked(axes, panel)


def _draw_lines(axes: Axes, panel: Panel) -> None:
    """Draw a line for each series, over the groups from left to right."""
    middle = (len(panel.series) - 1) / 2
    for number, series in enumerate(panel.series):
        shift = DODGE * (number - middle)
        places = [group + shift for group in range(len(panel.groups))]
        # Not a number where there is no value: the line has a gap there.
        values = [float("nan") if value is None else value for value in series.values]
        axes.errorbar(
            places,
            values,
            yerr=_errors(series),
            label=series.name,
            color=SERIES[number % len(SERIES)],
            linestyle=DASHES[number % len(DASHES)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=4.5,
            linewidth=2.2 if number == 0 else 1.4,
            capsize=3,
            # Ours in front.
            zorder=10 - number,
        )
    axes.set_xticks(range(len(panel.groups)), _labels(panel, "\n"))
    axes.set_xlim(-0.4, len(panel.groups) - 0.6)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_xlabel(_about(panel, panel.group_axis))
    axes.set_ylabel(panel.value_axis)
    if panel.is_share:
        _show_percent(axes.yaxis)


def _draw_bars(axes: Axes, panel: Panel) -> None:
    """Draw a bar for each value, one below the other, with its figure at its end."""
    n_series = len(panel.series)
    height = 0.8 / n_series
    end = 0.0
    for number, series in enumerate(panel.series):
        shift = height * (number - (n_series - 1) / 2)
        errors = _errors(series)
        for group, value in enumerate(series.values):
            if value is None:
                continue
            interval = series.interval(group)
            axes.barh(
                group + shift,
                value,
                0.86 * height,
                color=_colour(panel, number, group),
                label=series.name if group == 0 else None,
            )
            if interval is not None and errors is not None:
                low, high = ([side[group]] for side in errors)
                axes.errorbar(
                    value,
                    group + shift,
                    xerr=(low, high),
                    color=INK,
                    capsize=3,
                    linewidth=1.2,
                )
            reach = max(value, interval[1] if interval else value)
            axes.annotate(
                panel.shown(value),
                (reach, group + shift),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
            )
            end = max(end, reach)
    # Room for the figure at the end of the longest bar.
    axes.set_xlim(0, 1.16 * end if end else 1)
    _name_bars(axes, panel)


def _colour(panel: Panel, series: int, group: int) -> str:
    """Return the colour of a bar: of its series, or where there is only one, of ours and others."""
    if len(panel.series) > 1:
        return SERIES[series % len(SERIES)]
    is_highlighted = group == 0 or bool(panel.counts)
    return SERIES[0] if is_highlighted else OTHER


def _draw_stacked(axes: Axes, panel: Panel) -> None:
    """Draw one bar of several parts for each group, from left to right."""
    starts = [0.0] * len(panel.groups)
    for number, series in enumerate(panel.series):
        values = [value or 0.0 for value in series.values]
        axes.barh(
            range(len(values)),
            values,
            0.72,
            left=starts,
            label=series.name,
            color=PARTS[number % len(PARTS)],
            edgecolor=PAPER,
            linewidth=0.8,
        )
        for group, value in enumerate(values):
            if value >= MIN_LABELLED:
                axes.text(
                    starts[group] + value / 2,
                    group,
                    panel.shown(value),
                    ha="center",
                    va="center",
                    color=ON_PARTS[number % len(ON_PARTS)],
                )
        if any(series.intervals):
            _add_whiskers(axes, series)
        starts = [start + value for start, value in zip(starts, values, strict=True)]
    axes.set_xlim(0, 1)
    _name_bars(axes, panel)


def _add_whiskers(axes: Axes, series: Series) -> None:
    """Mark the intervals of the first parts of stacked bars, below the figures in them."""
    places = [group + 0.25 for group in range(len(series.values))]
    values = [value or 0.0 for value in series.values]
    axes.errorbar(
        values,
        places,
        xerr=_errors(series),
        fmt="none",
        ecolor=WHISKER,
        capsize=2.5,
        linewidth=1.2,
    )


def _name_bars(axes: Axes, panel: Panel) -> None:
    """Label both axes of horizontal bars, the first group at the top."""
    axes.set_yticks(range(len(panel.groups)), _labels(panel, ", "))
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_xlabel(_about(panel, panel.value_axis))
    axes.set_ylabel(panel.group_axis)
    if panel.is_share:
        _show_percent(axes.xaxis)


def _labels(panel: Panel, between: str) -> list[str]:
    """Return the name of each group, with the number of things in it."""
    names = list(panel.groups)
    if panel.shape is Shape.LINES and max(map(len, names)) > LABEL_WIDTH:
        names = [name.replace("–", "–\n") for name in names]
    if not panel.counts:
        return names
    named = zip(names, panel.counts, strict=True)
    return [f"{name}{between}n = {count:,}" for name, count in named]


def _about(panel: Panel, axis: str) -> str:
    """Return the label of the lower axis, what is counted, and what a reader must know."""
    counted = f" (n: {panel.counted})" if panel.counts else ""
    note = f"\n{fill(panel.note, NOTE_WIDTH)}" if panel.note else ""
    return f"{axis}{counted}{note}"


def _errors(series: Series) -> tuple[list[float], list[float]] | None:
    """Return how far the interval of each value reaches below and above it; None without any."""
    if not any(series.intervals):
        return None
    low, high = [], []
    for value, interval in zip(series.values, series.intervals, strict=True):
        if value is None or interval is None:
            interval = (0.0, 0.0)
            value = 0.0
        low.append(max(0.0, value - interval[0]))
        high.append(max(0.0, interval[1] - value))
    return low, high


def _add_legend(axes: Axes, panel: Panel, width: float) -> float:
    """Add the names of the series above a panel of several; return the height in points.

    width: of the panel, in inches.
    """
    if len(panel.series) < 2:
        return 0.0
    handles, labels = axes.get_legend_handles_labels()
    columns = min(len(labels), int(width / LEGEND_WIDTH))
    # matplotlib fills one column after the other, and people read lines.
    order = [number for column in range(columns) for number in range(column, len(labels), columns)]
    axes.legend(
        [handles[number] for number in order],
        [labels[number] for number in order],
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=columns,
        frameon=False,
        borderpad=0.2,
        columnspacing=1.1,
        handlelength=2.2,
        handletextpad=0.5,
    )
    return LEGEND_LINE * -(-len(labels) // columns)


def _show_percent(axis: Any) -> None:
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
