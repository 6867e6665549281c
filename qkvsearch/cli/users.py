"""`qkvsearch users`: who is in the log, and who was recorded since."""

from typing import Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import offset_option, where_options
from qkvsearch.cli.listing import write_page
from qkvsearch.cli.render import Output, output_options


@click.command(short_help="List the users, with how many items each one knows.")
@click.option("-k", type=click.IntRange(min=0), default=20, show_default=True, help="How many.")
@offset_option
@where_options("Only users for which this SQL expression over id, interactions and recorded holds.")
@output_options
def command(k: int, offset: int, where: Any, output: Output) -> None:
    """List the users of the log and those recorded since: with how many items each one interacted,
    and how often that was recorded.

    \b
    Examples:
      qkvsearch -w shop users --where "interactions >= 5"
      qkvsearch -w shop users -k 100000 --format json
    """
    listing = settings().open().users.list(where=where, k=k, offset=offset)
    write_page(listing, k, "users", output)
