"""The figure that notebooks show."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

# Pixels per inch.
DPI = 100


class ShownFigure(Figure):
    """A figure that a notebook shows as it is, without pyplot.

    matplotlib teaches notebooks to show figures when pyplot is imported, which also chooses a
    backend and keeps every figure in memory.
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=DPI)
        return file.getvalue()
