"""Listings as tables: rows by name, how many there are in all, columns that give way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.render import GAP, Output, terminal_width
from qkvsearch.terminal import printable, shorten

if TYPE_CHECKING:
    from qkvsearch.search.listing import Listing

# Characters of a cell that a table shows; other formats have all of it.
SHOWN = 40
# And at least so many, where there is no room.
LEAST = 4


def write_page(listing: Listing, k: int | None, kind: str, output: Output) -> None:
    """`write_listing`; where none of the k rows asked for is there, that is said."""
    if not listing and k != 0:
        settings().say(counted(listing, kind))
    write_listing(listing, kind, output)


def write_listing(listing: Listing, kind: str, output: Output) -> None:
    """The rows; a table ends with which of how many they are. kind: of what, such as "items"."""
    output.write(listing.to_records(), lambda: listing_table(listing, kind), listing.names)


def listing_table(listing: Listing, kind: str) -> str:
    """A line a row, however many there are: what gives way is cut, not folded."""
    from rich.cells import cell_len, set_cell_size

    if not listing:
        return ""
    names = listing.names
    layouts = [layout(name, [row[name] for row in listing]) for name in names]
    lines = [
        list(map(printable, names)),
        *([printable(shown(row[name])) for name in names] for row in listing),
    ]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    flexible = [place for place, way in enumerate(layouts) if way == "wrap"]
    narrowed(widths, flexible, terminal_width() - GAP * (len(names) - 1))

    def cell(text: str, place: int) -> str:
        room = widths[place] - cell_len(text)
        if room < 0:
            return f"{set_cell_size(text, widths[place] - 1)}…"
        return " " * room + text if layouts[place] == "right" else text + " " * room

    texts = [
        (" " * GAP).join(cell(text, place) for place, text in enumerate(line)).rstrip()
        for line in lines
    ]
    heading, *rows = texts
    caption = click.style(counted(listing, kind), dim=True)
    return "\n".join([click.style(heading, bold=True), *rows, caption]) + "\n"


def narrowed(widths: list[int], flexible: list[int], room: int) -> None:
    """Take from the widest of the flexible columns, in place, until all fit into the room.

    >>> widths = [6, 40, 30]
    >>> narrowed(widths, [1, 2], 40)
    >>> widths
    [6, 17, 17]
    """
    while sum(widths) > room and flexible:
        widest = max(flexible, key=lambda place: widths[place])
        if widths[widest] <= LEAST:
            return
        widths[widest] -= 1


def counted(listing: Listing, kind: str) -> str:
    """Which rows these are, of how many."""
    if not listing.total:
        return f"No {kind}."
    if not listing:
        return f"No {kind} from place {listing.offset + 1:,} on: there are {listing.total:,}."
    first, last = listing.offset + 1, listing.offset + len(listing)
    span = f"{first:,} of " if first == last else f"{first:,} to {last:,} of "
    part = "" if len(listing) == listing.total else span
    return f"{part}{listing.total:,} {kind if listing.total != 1 else kind.removesuffix('s')}"


def layout(name: str, cells: list[Any]) -> str:
    """How a column stands: numbers to the right, ids whole, all else gives way."""
    if any(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells):
        return "right" if name != "id" else "left"
    return "left" if name in ("id", "user", "time", "recorded") else "wrap"


def shown(cell: Any, most: int = SHOWN) -> str:
    """In one line, cut where it is long."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else ""
    if isinstance(cell, float):
        return f"{cell:.10g}" if abs(cell) >= 10 else f"{cell:.4g}"
    return shorten(" ".join(str(cell).split()), most)
