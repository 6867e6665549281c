"""`qkvsearch rollback`: back to a former build."""

import shlex

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.writing import wait_option
from qkvsearch.errors import quantity


@click.command(short_help="Undo the last change: return to a former build.")
@click.argument("id", required=False)
@wait_option
def command(id: str | None) -> None:
    """Return to the build that was current before this one, or to the build ID, as builds lists
    them. So an add, remove, build, learn, tune or compact is undone at once. What was recorded
    stays recorded, and the builds after it stay, to return to them.

    \b
    Examples:
      qkvsearch -w shop rollback
      qkvsearch -w shop rollback 20240301-101500-3f9a2c
    """
    run = settings()
    engine = run.open_own()
    left = engine.snapshot.name
    entry = engine.rollback(id)
    path, created = engine.workspace.path, entry.created[:16].replace("T", " ")
    run.say(
        f"{path}: back to {entry.name}, by {entry.command}, of {created} (UTC); "
        f"{quantity(entry.items, 'item')}."
    )
    if left != entry.name:
        run.say(f"To undo that: qkvsearch -w {shlex.quote(str(path))} rollback {left}")
