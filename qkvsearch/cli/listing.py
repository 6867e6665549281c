"""Listings as tables: rows by name, how many there are in all, columns that give way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qkvsearch.cli.render import Output, to_table

if TYPE_CHECKING:
    from qkvsearch.answers.columns import Listing

# Characters of a cell that a table shows; other formats have all of it.
SHOWN = 40


def write_listing(listing: Listing, kind: str, output: Output) -> None:
    """The rows; a table ends with which of how many they are. kind: of what, such as "items"."""
    output.write(listing.to_records(), lambda: listing_table(listing, kind), listing.names)


def listing_table(listing: Listing, kind: str) -> str:
    if not listing:
        return ""
    rows = [[shown(row[name]) for name in listing.names] for row in listing]
    columns = [(name, layout(name, [row[name] for row in listing])) for name in listing.names]
    return to_table(columns, rows, counted(listing, kind))


def counted(listing: Listing, kind: str) -> str:
    """Which rows these are, of how many."""
    if not listing:
        return f"No {kind} from place {listing.offset + 1:,} on: there are {listing.total:,}."
    first, last = listing.offset + 1, listing.offset + len(listing)
    part = "" if len(listing) == listing.total else f"{first:,} to {last:,} of "
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
        return f"{cell:.10g}" if abs(cell) >= 1 else f"{cell:.4g}"
    text = " ".join(str(cell).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
