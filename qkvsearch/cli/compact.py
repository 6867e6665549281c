"""`qkvsearch compact`: segments become one."""

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.writing import wait_option
from qkvsearch.errors import quantity


@click.command(short_help="Merge what add and remove left, and drop former builds.")
@click.option(
    "--drop-builds",
    is_flag=True,
    help="Also remove all former builds, so that nothing is left to roll back to.",
)
@wait_option
def command(drop_builds: bool) -> None:
    """Merge the segments that add and remove leave behind the base. Answers stay as they are to the
    last bit, and are a little quicker. It happens by itself where there are more than 32 segments,
    or where they have a fifth as many rows as the base.

    \b
    Examples:
      qkvsearch -w shop compact
      qkvsearch -w shop compact --drop-builds
    """
    run = settings()
    engine = run.open_own()
    with run.progress() as progress:
        done = engine.compact(drop_builds=drop_builds, progress=progress)
    merged = f"{done.segments:,} segments merged" if done.segments > 1 else "nothing to merge"
    dropped = f", {quantity(done.dropped, 'former build')} removed" if drop_builds else ""
    run.say(f"{engine.workspace.path}: {merged}{dropped}; {quantity(done.n_items, 'item')}.")
