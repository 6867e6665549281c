"""What a sheet's file says beside the values that python-calamine returns of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from qkvsearch._utils.limits import check_unpacked

# Bytes that a cell takes in memory, from the first row to the last and in all columns: the library
# keeps the empty ones between them as well.
CELL_BYTES = 40


@dataclass
class SheetFacts:
    """percent: the cells, by row and column from 0, that are shown as percentages. n_errors: cells
    with an error, which are read as empty. merged: how many ranges of cells are merged below the
    first row.
    """

    percent: set[tuple[int, int]] = field(default_factory=set)
    n_errors: int = 0
    n_merged: int = 0
    # The rows and columns up to the last cell that is not empty.
    n_rows: int = 0
    n_columns: int = 0

    def add(self, row: int, column: int) -> None:
        """Count a cell."""
        self.n_rows = max(self.n_rows, row + 1)
        self.n_columns = max(self.n_columns, column + 1)


def check_size(sheets: list[SheetFacts], packed: int, label: str) -> None:
    """Raise `DataError` for sheets that take too much memory: two cells far apart are enough."""
    n_cells = sum(sheet.n_rows * sheet.n_columns for sheet in sheets)
    check_unpacked(CELL_BYTES * n_cells, packed, label)
