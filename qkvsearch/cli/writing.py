"""What the commands share that change a workspace: how long they wait, and what they ask first."""

from __future__ import annotations

import sys

import click

from qkvsearch.cli.context import WAIT, settings
from qkvsearch.terminal import in_one_line


def _keep(context: click.Context, _: click.Parameter, seconds: float | None) -> None:
    context.meta[WAIT] = seconds


wait_option = click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    expose_value=False,
    callback=_keep,
    help="Wait at most so long while another command changes the workspace.  [default: as long as "
    "it takes]",
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def is_asked() -> bool:
    """Whether there is somebody to ask: on a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> None:
    """Ask a person; end the command where the answer is no."""
    if not click.confirm(in_one_line(question), err=True):
        settings().say("Nothing was changed.")
        raise click.exceptions.Exit(1)
