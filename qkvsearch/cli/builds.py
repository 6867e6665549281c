"""`qkvsearch builds`: what a workspace was, and can be again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.render import Output, output_options, to_table

if TYPE_CHECKING:
    from qkvsearch.search.listing import Listing

COLUMNS = (
    ("", "left"), ("id", "left"), ("created (UTC)", "left"), ("command", "left"),
    ("items", "right"), ("segments", "right"), ("MB", "right"),
)  # fmt: skip


@click.command(short_help="List the builds that rollback can return to.")
@output_options
def command(output: Output) -> None:
    """List the builds of the workspace, the latest first: when each was made and by which command,
    its items, of how many segments it is, and how many megabytes it added on disk. Questions are
    answered from the one with the *.

    Builds of the current base and of the one before are kept, 50 at most; compact --drop-builds
    removes all but the current one.

    \b
    Examples:
      qkvsearch -w shop builds
      qkvsearch -w shop builds --format json
    """
    run = settings()
    listing = run.open().builds()
    run.say_notes(listing.notes)
    output.write(listing.to_records(), lambda: _table(listing), listing.names)


def _table(listing: Listing) -> str:
    return to_table(COLUMNS, [_cells(row) for row in listing])


def _cells(row: dict[str, Any]) -> list[str]:
    created = row["created"][:16].replace("T", " ")
    sizes = ["damaged", ""]
    if row["segments"] is not None:
        sizes = [f"{row['segments']}", f"{row['megabytes']:,.2f}"]
    mark = "*" if row["current"] else ""
    return [mark, row["id"], created, row["command"], f"{row['items']:,}", *sizes]
