"""`qkvsearch forget`: a person is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.writing import confirm, is_asked, wait_option, yes_option
from qkvsearch.errors import quantity

if TYPE_CHECKING:
    from qkvsearch.index.erase import Forgotten


@click.command(short_help="Delete a person: log, records and former builds.")
@click.argument("user")
@yes_option
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@wait_option
def command(user: str, yes: bool, dry_run: bool) -> None:
    """Delete USER: their interactions in the log, what was recorded of them, and all former builds,
    for these held them too. Afterwards no file of the workspace has the id in it, and nothing can
    be undone. What was learned from them together with others stays until learn fits it again, and
    that is said.

    Copies of the workspace, and the files that it was built from, are not touched.

    \b
    Examples:
      qkvsearch -w shop forget 1017
      qkvsearch -w shop forget 1017 --yes
    """
    run = settings()
    engine = run.open_own()
    if not (yes or dry_run or is_asked()):
        raise click.UsageError("what forget deletes is gone for good: say so with --yes")
    path = engine.workspace.path
    if dry_run or not yes:
        would = engine.forget(user, dry_run=True)
        run.say(f"{path}: {_said(would)} would be deleted for good.")
        if dry_run:
            return
        confirm(f"Forget {user}?")
    with run.progress() as progress:
        done = engine.forget(user, progress=progress)
    run.say(f"{path}: {_said(done)} deleted.")
    run.say_notes(done.notes)


def _said(done: Forgotten) -> str:
    return (
        f"{quantity(done.interactions, 'interaction')}, {quantity(done.records, 'record')} and "
        f"{quantity(done.builds, 'former build')}"
    )
