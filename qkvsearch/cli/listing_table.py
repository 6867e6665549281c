"""Listings on the command line: a line for each row, in which long cells are cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qkvsearch.cli.context import settings
from qkvsearch.cli.render import Output
from qkvsearch.cli.text_table import (
    captioned,
    lines_of_row,
    narrow,
    rendered,
    room_for,
    table_lines,
    widest_cells,
)
from qkvsearch.cli.wrapping import cut_to
from qkvsearch.terminal import printable, shorten

if TYPE_CHECKING:
    from qkvsearch.rank.listing import Listing

# Characters of a cell that a table shows at most; other formats have all of it.
MAX_CELL = 40
# Columns that are never cut: people copy ids into their next command.
WHOLE = ("id", "user", "item", "time", "recorded")


def write_page(
    listing: Listing, k: int | None, kind: str, output: Output, names: Sequence[str] = ()
) -> None:
    """Write a page of a listing, or a message. names: the columns of a table, by default all."""
    if not listing and k != 0:
        settings().message(range_text(listing, kind))
    write_listing(listing, kind, output, names)


def write_listing(listing: Listing, kind: str, output: Output, names: Sequence[str] = ()) -> None:
    """Write rows; a table ends with which of how many they are. kind: such as "items"."""
    output.write(
        listing.to_records(),
        lambda: listing_table(listing, kind, names or listing.names),
        listing.names,
    )


def listing_table(listing: Listing, kind: str, names: Sequence[str]) -> str:
    """Return a table with one line for each row, in which long cells are cut. Where the terminal is
    too narrow for it, each cell has a line.
    """
    if not listing:
        return ""
    columns = [(printable(name), layout(name, [row[name] for row in listing])) for name in names]
    rows = [[printable(_listed_cell(name, row[name])) for name in names] for row in listing]
    widths = widest_cells(columns, rows)
    flexible = [i for i, (_, layout_) in enumerate(columns) if layout_ == "wrap"]
    room = room_for(len(columns))
    narrow(widths, flexible, room)
    caption = captioned(range_text(listing, kind))
    if sum(widths) > room:
        # A cell has a line of its own, so there is room for a title.
        names_of_items = [i for i, name in enumerate(names) if name == "title"]
        for row, listed in zip(rows, listing, strict=True):
            for i in names_of_items:
                row[i] = printable(" ".join(str(listed["title"] or "").split()))
        lines = [line for row in rows for line in lines_of_row(columns, row)]
        return rendered([*lines, *caption])
    cut_columns = [
        (cut_to(name, width), layout_)
        for (name, layout_), width in zip(columns, widths, strict=True)
    ]
    cut_rows = [list(map(cut_to, row, widths)) for row in rows]
    return rendered([*table_lines(cut_columns, cut_rows, widths), *caption])


def range_text(listing: Listing, kind: str, one: str = "") -> str:
    """Return which rows these are, of how many. one: the kind of a single row, by default without
    its "s".
    """
    if not listing.total:
        return f"No {kind}."
    if not listing:
        return f"No {kind} from position {listing.offset + 1:,} on: there are {listing.total:,}."
    counted = f"{listing.total:,} {kind if listing.total != 1 else one or kind.removesuffix('s')}"
    if len(listing) == listing.total:
        return counted
    first = listing.offset + 1
    last = listing.offset + len(listing)
    if first == last:
        return f"{first:,} of {counted}"
    return f"{first:,} to {last:,} of {counted}"


def layout(name: str, cells: Sequence[Any]) -> str:
    """Return the layout of a column: "right" for numbers, "left" for ids, else "wrap"."""
    has_numbers = any(
        isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells
    )
    if has_numbers and name != "id":
        return "right"
    if has_numbers or name in WHOLE:
        return "left"
    return "wrap"


def _listed_cell(name: str, cell: Any) -> str:
    """Return a cell of a listing: a name that the next command is given is never cut."""
    if name in WHOLE and isinstance(cell, str):
        return " ".join(cell.split())
    return cell_text(cell)


def cell_text(cell: Any, max_length: int = MAX_CELL) -> str:
    """Return a cell in one line, cut if it is long."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else ""
    if isinstance(cell, float):
        return f"{cell:.10g}" if abs(cell) >= 10 else f"{cell:.4g}"
    return shorten(" ".join(str(cell).split()), max_length)
