"""Files that an option names beside the output: they are checked before any work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from qkvsearch._utils.files import is_of_a_workspace, real_path


def checked_file(path: Path | None, suffixes: Sequence[str], what: str) -> Path | None:
    """Return the file. Raises `click.BadParameter` for one that cannot be written after the work.
    what: the file, in the message.
    """
    if path is None:
        return None
    if path.suffix.lower() not in suffixes:
        raise click.BadParameter(f"{path}: {what} is a file that ends in {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise click.BadParameter(f"{path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise click.BadParameter(f"{path}: cannot write in the folder {path.parent}")
    if is_of_a_workspace(real_path(path)):
        raise click.BadParameter(f"{path}: a workspace keeps its data there; name another file")
    return path
