"""Panels drawn by matplotlib, without its global state: no window opens, and no setting changes.

Each panel lies in a cell of its own, whose height is known from what is written in it. matplotlib's
own layout engine is not used: its solver can end the whole process.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from qkvsearch.evaluation.pictures.palette import INK, QUIET
from qkvsearch.evaluation.pictures.panel import Panel, PanelShape
from qkvsearch.evaluation.pictures.shapes import draw_shape, labels_of
from qkvsearch.evaluation.pictures.style import DPI, TEXT_SIZE, TITLE_SIZE, own_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All lengths are in inches. Of a panel of a figure, and of one on a page, as wide as a phone.
PANEL_WIDTH, BARE_WIDTH = 5.4, 3.8
# Around a figure, between its panels, and between the names of groups and their values.
MARGIN, GAP, PAD = 0.12, 0.3, 0.09
# Of a line of text, of a title, and of a bar; of lines without what is written around them.
LINE, TITLE_LINE, BAR, LINES_HEIGHT = 0.17, 0.24, 0.25, 2.25
# Half of the last number below the values, which reaches beyond them.
LAST_NUMBER = 0.17
# Half a bar is between groups.
BETWEEN_GROUPS = 0.5
# Of the sample of a series in a legend, and of each character of its name.
SAMPLE, CHARACTER = 0.45, 0.072
# Characters in an inch: on average, so that lines are rather too short.
CHARACTERS = 13.5


def draw(panels: Sequence[Panel], headline: str = "", columns: int = 2) -> Figure:
    """Return a figure of all panels, side by side in columns, which a notebook shows.

    Raises `QkvError` if matplotlib is missing.
    """
    columns = min(columns, len(panels))
    cells = [_PanelCell(panel, PANEL_WIDTH) for panel in panels]
    rows = [cells[start : start + columns] for start in range(0, len(cells), columns)]
    heights = [max(cell.height for cell in row) for row in rows]
    top = MARGIN + (LINE + MARGIN if headline else 0)
    width = 2 * MARGIN + columns * PANEL_WIDTH + (columns - 1) * GAP
    height = top + sum(heights) + (len(rows) - 1) * GAP + MARGIN
    with own_style():
        canvas = _Canvas(width, height)
        canvas.write(headline, MARGIN, MARGIN, color=QUIET)
        for row, row_height in zip(rows, heights, strict=True):
            for column, cell in enumerate(row):
                canvas.draw(cell, MARGIN + column * (PANEL_WIDTH + GAP), top)
            top += row_height + GAP
    return canvas.figure


def draw_bare(panel: Panel) -> Figure:
    """Return a figure of one panel for a page that tells its title, its note and its counts."""
    cell = _PanelCell(replace(panel, title="", note="", counts=()), BARE_WIDTH)
    with own_style():
        canvas = _Canvas(2 * MARGIN + BARE_WIDTH, 2 * MARGIN + cell.height)
        canvas.draw(cell, MARGIN, MARGIN)
    return canvas.figure


def to_bytes(figure: Figure, format_name: str, transparent: bool = False) -> bytes:
    """Return a figure as PNG or SVG. The same figure gives the same bytes."""
    file = io.BytesIO()
    # A date would make each file another one.
    metadata: dict[str, Any] = {"Date": None} if format_name == "svg" else {}
    with own_style():
        figure.savefig(
            file, format=format_name, dpi=DPI, metadata=metadata, transparent=transparent
        )
    return file.getvalue()


@dataclass(frozen=True)
class _PanelCell:
    """A panel with the room that it needs."""

    panel: Panel
    width: float

    @property
    def legend_columns(self) -> int:
        """How many names of series lie side by side; 0 without a legend."""
        n_series = len(self.panel.series)
        if n_series < 2:
            return 0
        longest = max(len(series.name) for series in self.panel.series)
        room = self.width / (SAMPLE + CHARACTER * longest)
        return min(n_series, max(1, int(room)))

    @property
    def legend_lines(self) -> int:
        columns = self.legend_columns
        return -(-len(self.panel.series) // columns) if columns else 0

    @property
    def upper_label(self) -> str:
        """What is written above the values: what they are, or what groups of bars are."""
        panel = self.panel
        return panel.value_axis if panel.shape is PanelShape.LINES else panel.group_axis

    @property
    def lower_label(self) -> list[str]:
        """What is written below the values, in lines."""
        panel = self.panel
        axis = panel.group_axis if panel.shape is PanelShape.LINES else panel.value_axis
        counted = f" (n: {panel.counted})" if panel.counts else ""
        return self._lines(f"{axis}{counted}")

    @property
    def note(self) -> list[str]:
        return self._lines(self.panel.note)

    @property
    def above(self) -> float:
        """The height of what is written above the values."""
        title = TITLE_LINE if self.panel.title else 0.0
        label = LINE if self.upper_label else 0.0
        return title + LINE * self.legend_lines + label + PAD

    @property
    def values_height(self) -> float:
        """The height of the lines or bars."""
        if self.panel.shape is PanelShape.LINES:
            return LINES_HEIGHT
        bars_in_group = 1 if self.panel.shape is PanelShape.STACKED else len(self.panel.series)
        return BAR * len(self.panel.groups) * (bars_in_group + BETWEEN_GROUPS)

    @property
    def tick_lines(self) -> int:
        """How many lines the names or numbers below the values have."""
        if self.panel.shape is not PanelShape.LINES:
            return 1
        return max(label.count("\n") + 1 for label in labels_of(self.panel))

    @property
    def height(self) -> float:
        below = LINE * (self.tick_lines + len(self.lower_label) + len(self.note))
        return self.above + self.values_height + PAD + below

    def _lines(self, text: str) -> list[str]:
        return wrap(text, int(CHARACTERS * self.width))


class _Canvas:
    """A figure on which panels are placed by inches from its upper left corner."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        from qkvsearch.evaluation.pictures.shown_figure import ShownFigure

        self.width, self.height = width, height
        self.figure = ShownFigure(figsize=(width, height), dpi=DPI)
        # It measures texts before any file is written.
        self.canvas = FigureCanvasAgg(self.figure)

    def write(self, text: str, left: float, top: float, **style: Any) -> None:
        if text:
            x, y = left / self.width, 1 - top / self.height
            self.figure.text(x, y, text, va="top", **{"fontsize": TEXT_SIZE, **style})

    def draw(self, cell: _PanelCell, left: float, top: float) -> None:
        """Draw a panel with its upper left corner at a place."""
        panel = cell.panel
        self.write(panel.title, left, top, fontsize=TITLE_SIZE, fontweight="bold", color=INK)
        axes = self._values(cell, left, top + cell.above)
        legend_top = top + (TITLE_LINE if panel.title else 0)
        self._legend(axes, cell, left, legend_top)
        self.write(cell.upper_label, left, legend_top + LINE * cell.legend_lines, color=QUIET)

        below = top + cell.above + cell.values_height + PAD + LINE * cell.tick_lines
        right = left + cell.width
        self.write("\n".join(cell.lower_label), right, below, ha="right", color=QUIET)
        below += LINE * len(cell.lower_label)
        self.write("\n".join(cell.note), left, below, color=QUIET)

    def _values(self, cell: _PanelCell, left: float, top: float) -> Axes:
        """Draw the values of a panel, with room for the names on their left."""
        bottom = 1 - (top + cell.values_height) / self.height
        height = cell.values_height / self.height
        axes = self.figure.add_axes((left / self.width, bottom, cell.width / self.width, height))
        axes.set_label(cell.panel.title)
        draw_shape(axes, cell.panel)
        names = axes.yaxis.get_tightbbox(self.canvas.get_renderer())
        name_width = 0.0 if names is None else names.width / self.figure.dpi
        start = left + name_width + PAD
        width = cell.width - name_width - PAD - LAST_NUMBER
        axes.set_position((start / self.width, bottom, width / self.width, height))
        return axes

    def _legend(self, axes: Axes, cell: _PanelCell, left: float, top: float) -> None:
        """Add the names of the series, line by line."""
        columns = cell.legend_columns
        if not columns:
            return
        handles, labels = axes.get_legend_handles_labels()
        # matplotlib fills one column after the other, and people read lines.
        order = [
            number for column in range(columns) for number in range(column, len(labels), columns)
        ]
        axes.legend(
            [handles[number] for number in order],
            [labels[number] for number in order],
            loc="upper left",
            bbox_to_anchor=(left / self.width, 1 - top / self.height),
            bbox_transform=self.figure.transFigure,
            ncols=columns,
            frameon=False,
            borderpad=0,
            borderaxespad=0,
            labelspacing=0.25,
            columnspacing=1.1,
            handlelength=2.2,
            handletextpad=0.5,
        )
