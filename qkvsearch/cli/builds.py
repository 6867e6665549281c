"""`qkvsearch builds`: what a workspace was, and can be again."""

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.listing import write_page
from qkvsearch.cli.render import Output, output_options


@click.command(short_help="List the builds that rollback can return to.")
@output_options
def command(output: Output) -> None:
    """List the builds of the workspace, the latest first: when each was made and by which command,
    its items, of how many segments it is, how many megabytes it added on disk, and whether it is
    the current one, from which questions are answered.

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
    write_page(listing, None, "builds", output)
