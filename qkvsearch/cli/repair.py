"""`qkvsearch repair`: what is damaged is made again where it can be."""

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.writing import wait_option


@click.command(short_help="Mend a damaged workspace.")
@wait_option
def command() -> None:
    """Find every file that is not as it was written. What can be derived from what is sound, such
    as lexical keys from the catalog's texts, is made again; what cannot is named, and kept beside.
    A sound workspace stays as it is.

    \b
    Examples:
      qkvsearch -w shop repair
      qkvsearch -w shop info --verify && echo sound
    """
    from qkvsearch.engine import repair

    run = settings()
    path = run.own_workspace()
    with run.progress() as progress:
        done = repair(path, wait=run.wait, say=run.say, progress=progress)
    run.say_notes(done.notes)
    for what in done.rebuilt:
        run.say(f"Made again: {what}.")
    for what in done.lost:
        run.say(f"Lost: {what}.")
    if not (done.rebuilt or done.lost or done.notes):
        run.say(f"{path}: nothing is damaged.")
