"""`qkvsearch records`: what was recorded, as a listing."""

from dataclasses import replace
from functools import partial

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import offset_option
from qkvsearch.cli.listing import counted, listing_table
from qkvsearch.cli.render import Output, output_options


@click.command(short_help="List what was recorded.")
@click.option("--user", metavar="USER", help="Only what was recorded of USER.")
@click.option("-k", type=click.IntRange(min=0), help="How many.  [default: all]")
@offset_option
@output_options
def command(user: str | None, k: int | None, offset: int, output: Output) -> None:
    """List what `record` and `add --interactions` wrote, the last first. What was recorded together
    has the same batch, which one `record --undo` takes back. The build has learned from what is
    marked so: that is in its log, and `rollback` comes before an undo.

    \b
    Examples:
      qkvsearch -w shop records -k 20
      qkvsearch -w shop records --user 1017 --format json
    """
    run = settings()
    listing = run.open().records(user, k=k, offset=offset)
    if not listing and k != 0:
        run.say(counted(listing, "records"))
    # Programs get every field; a table has room for those in which something is.
    empty = {name for name in ("rating", "weight") if all(row[name] is None for row in listing)}
    shown = replace(listing, names=[name for name in listing.names if name not in empty])
    table = partial(listing_table, shown, "records")
    output.write(listing.to_records(), table, listing.names)
