"""Writes docs/commands.md from the commands' own help: python docs/generate.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from qkvsearch.cli import group

PAGE = Path(__file__).with_name("commands.md")
INTRODUCTION = """# Commands

Written by `python docs/generate.py` from `--help`; edit the help, not this page. What all commands
share (workspaces, formats, exit codes, JSON fields) is in [formats.md](formats.md).
"""
WIDTH = 80


def sections(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """A command's name and help, then those of its commands."""
    settings = command.context_settings | {"terminal_width": WIDTH, "max_content_width": WIDTH}
    with click.Context(command, info_name=name, parent=parent, **settings) as ctx:
        yield ctx.command_path, command.get_help(ctx)
        if isinstance(command, click.Group):
            for child in command.list_commands(ctx):
                found = command.get_command(ctx, child)
                assert found is not None
                yield from sections(found, child, ctx)


def page() -> str:
    parts = [INTRODUCTION]
    for name, text in sections(group, "qkvsearch"):
        parts.append(f"## {name}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
