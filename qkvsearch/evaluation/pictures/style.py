"""How pictures look: sizes, and the settings of matplotlib while one is drawn."""

from __future__ import annotations

from contextlib import AbstractContextManager

from qkvsearch.errors import need
from qkvsearch.evaluation.pictures.palette import GRID, INK, PAPER, QUIET

# Of text and of titles, in points.
TEXT_SIZE, TITLE_SIZE = 9, 10.5
# Pixels per inch of a PNG.
DPI = 150
# Instead of those of the user's own settings, which are for other pictures.
STYLE = {
    "axes.edgecolor": QUIET,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT_SIZE,
    "axes.spines.right": False,
    "axes.spines.top": False,
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


def own_style() -> AbstractContextManager[None]:
    """Return a block with matplotlib's default settings and ours; it restores the user's.

    matplotlib has one set of settings for the whole process, so other threads must not draw
    meanwhile. Raises `QkvError` if matplotlib is missing.
    """
    require_matplotlib("a plot")
    from matplotlib import style

    return style.context(["default", STYLE])
