"""Runs the sessions of the README and the guide and writes what they print: docs/sessions.py.

Needs the encoders extra. Models that were fetched are not seen, so that everyone's output is alike.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "guide.md")
CONSOLE = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
HOME = tempfile.TemporaryDirectory()
COMMAND = re.compile(r"^\$ (qkvsearch .*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def sessions(page: Path) -> Iterator[tuple[str, str]]:
    """The command lines that a page shows, each with what is shown below it."""
    for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        yield from COMMAND.findall(block)


def rewritten(text: str, run: Callable[[str], str]) -> str:
    """A page with the output that each of its commands has now."""

    def session(match: re.Match[str]) -> str:
        return f"$ {match[1]}\n{run(match[1])}"

    return CONSOLE.sub(lambda block: COMMAND.sub(session, block[0]), text)


def printed(command: str) -> str:
    """What a command line prints to stdout, in 80 columns, without fetched models."""
    with tempfile.TemporaryDirectory() as folder:
        # Samples that were built before by other code are not seen either.
        surroundings = {"COLUMNS": "80", "QKVSEARCH_MODELS": folder, "PYTHONPATH": str(ROOT)}
        surroundings |= {"XDG_CONFIG_HOME": HOME.name}
        call = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(
            call, env=os.environ | surroundings, check=True, stdout=subprocess.PIPE,
            encoding="utf-8", cwd=folder,
        )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(rewritten(text, printed), encoding="utf-8")
