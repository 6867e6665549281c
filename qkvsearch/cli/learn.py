"""`qkvsearch learn`: what was recorded is learned from."""

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.writing import wait_option
from qkvsearch.errors import quantity


@click.command(short_help="Learn from what was recorded, without the files of the build.")
@wait_option
def command() -> None:
    """Learn preferences, ratings and, where the build has it, what comes next again: from the log
    and all that was recorded since, with the settings in use. The files that the workspace was
    built from are not needed, and texts are not read again. Records stay listed as learned.

    \b
    Example:
      qkvsearch -w shop learn
    """
    run = settings()
    engine = run.open_own()
    with run.progress() as progress:
        done = engine.learn(progress=progress)
    run.say_notes(done.notes)
    run.say(
        f"{engine.workspace.path}: learned from {quantity(done.n_interactions, 'interaction')} of "
        f"{quantity(done.n_users, 'user')}, {done.recorded:,} of them recorded since the last time."
    )
