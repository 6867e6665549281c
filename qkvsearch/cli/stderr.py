"""Messages on stderr: spelled as the command line is, and fitted to the terminal."""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
from contextlib import suppress
from pathlib import Path

import click

from qkvsearch.cli.wrapping import wrapped

# The key of Click's `meta` for the words of the command line.
TYPED = "qkvsearch.typed"
# A command in a message that is about a workspace, without -w.
HINT = re.compile(
    r"\bqkvsearch (?=(?:add|builds|compact|compare|evaluate|export|info|items|learn|recommend|"
    r"record|remove|repair|rollback|rules|search|searches|show|sync|tune)\b)"
)


def to_stderr(text: str) -> None:
    """Print a line to stderr. Where that cannot be written, it is lost: a change that was made has
    not failed for that.
    """
    with suppress(OSError):
        click.echo(text, err=True)


def reason_of(error: OSError) -> str:
    """Return what the system could not do, and with which file."""
    if error.errno == errno.EBADF and error.filename is None:
        return "stdout is closed, and results cannot be written"
    named = f"{error.filename}: " if error.filename else ""
    return f"{named}{error.strerror or error}"


def fitting(text: str) -> str:
    """Return a text for stderr: on a terminal its long lines are broken between words."""
    if not sys.stderr.isatty():
        return text
    width = _width_of_stderr()
    return "\n".join(wrapped(line, width, indent=2) for line in text.split("\n"))


def _width_of_stderr() -> int:
    """Return the columns of the terminal that stderr is; results may go elsewhere."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def of_workspace(text: str, workspace: Path | None) -> str:
    """Return a text whose commands are for the workspace of -w, so that they can be copied."""
    if workspace is None:
        return text
    named = f"qkvsearch -w {shlex.quote(str(workspace))} "
    return HINT.sub(lambda _: named, text)


def spelled(message: str, context: click.Context, command: click.Command | None) -> str:
    """Return a message with parameters spelled as on the command line: `recent` as --recent, and
    commands with the workspace.

    A parameter that the command does not have may be one of `build` or `search`. Words in backticks
    that the user typed stay as they are.
    """
    root = context.find_root()
    typed: list[str] = root.meta.get(TYPED, [])
    if isinstance(command, click.Group):
        inner = (command.commands[word] for word in typed if word in command.commands)
        command = next(inner, command)
    spellings = _spellings(root, command)

    def spelling(match: re.Match[str]) -> str:
        quoted, name = match[0], match[1]
        is_typed = any(quoted in word for word in typed)
        return quoted if is_typed else spellings.get(name, quoted)

    message = re.sub(r"`(\w+)`", spelling, message)
    return of_workspace(message, root.params.get("workspace"))


def _spellings(root: click.Context, command: click.Command | None) -> dict[str, str]:
    """Return how the command line spells each parameter, by its name in Python.

    A command's own spellings precede those of `build`, and these the ones of `search`.
    """
    spellings: dict[str, str] = {}
    for name in ("search", "build"):
        other: click.Command = root.command.get_command(root, name)  # type: ignore[attr-defined]
        for option in _options(other):
            is_file = isinstance(option.type, click.Path)
            spellings[str(option.name)] = f"{option.opts[0]} FILE" if is_file else option.opts[0]
    if command is not None:
        arguments = [param for param in command.params if isinstance(param, click.Argument)]
        spellings.update({str(argument.name): str(argument.name).upper() for argument in arguments})
        spellings.update({str(option.name): option.opts[0] for option in _options(command)})
    return spellings


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]
