"""The shapes of a panel, drawn into the axes of matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qkvsearch.evaluation.pictures.palette import (
    INK,
    ON_PARTS,
    OTHER,
    PAPER,
    PARTS,
    SERIES,
    WHISKER,
)
from qkvsearch.evaluation.pictures.panel import Panel, PanelShape, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# They tell series apart where colours do not.
MARKERS = ("o", "s", "^", "D", "")
DASHES = ("-", "--", "-.", ":", (0, (6, 2)))
# The distance between the series of a group of a panel with lines, so that all can be seen.
DODGE = 0.05
# Within a stacked bar, a part that is smaller has no room for its figure.
MIN_LABELLED = 0.12
# The longest name of a group that has room in one line below a panel with lines.
LABEL_WIDTH = 8


def draw_shape(axes: Axes, panel: Panel) -> None:
    """Draw the values of a panel, and name its groups."""
    match panel.shape:
        case PanelShape.LINES:
            _draw_lines(axes, panel)
        case PanelShape.BARS:
            _draw_bars(axes, panel)
        case PanelShape.STACKED:
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
    axes.set_xticks(range(len(panel.groups)), labels_of(panel))
    axes.set_xlim(-0.4, len(panel.groups) - 0.6)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", linewidth=0.7)
    axes.set_axisbelow(True)
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
    is_other = panel.ours_is_first and group > 0
    return OTHER if is_other else SERIES[0]


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
    """Name the groups of horizontal bars, the first one at the top."""
    axes.set_yticks(range(len(panel.groups)), labels_of(panel))
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", linewidth=0.7)
    axes.set_axisbelow(True)
    if panel.is_share:
        _show_percent(axes.xaxis)


def labels_of(panel: Panel) -> list[str]:
    """Return the name of each group, with the number of things in it."""
    names = list(panel.groups)
    has_lines = panel.shape is PanelShape.LINES
    if has_lines and max(map(len, names)) > LABEL_WIDTH:
        names = [name.replace("–", "–\n") for name in names]
    if not panel.counts:
        return names
    between = "\n" if has_lines else ", "
    named = zip(names, panel.counts, strict=True)
    return [f"{name}{between}n = {count:,}" for name, count in named]


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


def _show_percent(axis: Any) -> None:
    from matplotlib.ticker import PercentFormatter

    # As many decimals as tell the numbers apart: 2.5% is not 2%.
    axis.set_major_formatter(PercentFormatter(xmax=1))
