"""`qkvsearch items`: the catalog as a listing."""

from typing import Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import fields_option, offset_option, where_option
from qkvsearch.cli.listing import write_page
from qkvsearch.cli.render import Output, output_options


@click.command(short_help="List the items of the catalog.")
@click.option("-k", type=click.IntRange(min=0), default=20, show_default=True, help="How many.")
@offset_option
@where_option
@fields_option
@click.option(
    "--sort",
    metavar="NAME",
    help="By a column, from the least on, or -NAME from the greatest; users: what most know.",
)
@output_options
def command(k: int, offset: int, where: Any, fields: str, sort: str | None, output: Output) -> None:
    """List the items of the catalog, in the order of their ids or another.

    \b
    Examples:
      qkvsearch -w shop items --where "price < 80" --fields price,url
      qkvsearch -w sample:movies items --sort -year --fields year
      qkvsearch -w shop items -k 100000 --format csv -o items.csv
    """
    run = settings()
    items = run.open().items
    listing = items.list(where=where, fields=fields, sort=sort, k=k, offset=offset)
    run.say_notes(listing.notes)
    write_page(listing, k, "items", output)
