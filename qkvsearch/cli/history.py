"""`qkvsearch history`: what is known of a user."""

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import offset_option
from qkvsearch.cli.listing import write_page
from qkvsearch.cli.render import Output, output_options


@click.command(short_help="Show what is known of a user.")
@click.argument("user")
@click.option("-k", type=click.IntRange(min=0), help="How many.  [default: all]")
@offset_option
@output_options
def command(user: str, k: int | None, offset: int, output: Output) -> None:
    """Show with what USER interacted, the latest first: from the log that was built from, and what
    was recorded since, which is marked. The confidence is what an interaction counts when something
    is recommended: about 1 in full, 0 for what was disliked or taken back.

    \b
    Example:
      qkvsearch -w shop history 1017
    """
    run = settings()
    listing = run.open().history(user, k=k, offset=offset)
    run.say_notes(listing.notes)
    write_page(listing, k, "interactions", output)
