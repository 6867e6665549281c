"""Runs the sessions of the README, the guide and the how-tos, and writes what they print:
docs/sessions.py.

Needs the extras encoders and web. Models that were fetched are not seen, so that everyone's output
is alike.
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
# Each session of these is one command by itself, on a sample.
GUIDES = ("guide", "recommending", "data", "quality")
PAGES = (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in GUIDES))
# The sessions of one of these follow each other, in a folder with the files that the page shows.
HOW_TOS = tuple(sorted((ROOT / "docs" / "how-to").glob("*.md")))
CONSOLE = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
HOME = tempfile.TemporaryDirectory()
COMMAND = re.compile(r"^\$ ((?:qkvsearch|curl) .*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# Save this as `products.csv`: and then a block with its lines.
SHOWN_FILE = re.compile(r"`([\w.-]+)`:\n\n```\w*\n(.*?)```", re.DOTALL)
# What `serve` answers at by default.
SERVER = "http://127.0.0.1:8000"


def sessions(page: Path) -> Iterator[tuple[str, str]]:
    """The command lines that a page shows, each with what is shown below it."""
    for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        yield from COMMAND.findall(block)


def rewritten(text: str, run: Callable[[str], str]) -> str:
    """A page with the output that each of its commands has now."""

    def session(match: re.Match[str]) -> str:
        return f"$ {match[1]}\n{run(match[1])}"

    return CONSOLE.sub(lambda block: COMMAND.sub(session, block[0]), text)


def printed(command: str, folder: Path) -> str:
    """What a command line prints to stdout in a folder, in 80 columns, without fetched models."""
    if command.startswith("curl "):
        return answered(command, folder)
    # Samples that were built before by other code are not seen either.
    surroundings = {"COLUMNS": "80", "QKVSEARCH_MODELS": HOME.name, "PYTHONPATH": str(ROOT)}
    surroundings |= {"XDG_CONFIG_HOME": HOME.name}
    call = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(
        call, env=os.environ | surroundings, check=True, stdout=subprocess.PIPE,
        encoding="utf-8", cwd=folder,
    )  # fmt: skip
    return done.stdout


def answered(command: str, folder: Path) -> str:
    """What curl prints for an address of the server over the workspace in a folder."""
    from starlette.testclient import TestClient

    from qkvsearch.web.app import make_app
    from qkvsearch.web.settings import ServerSettings

    address = shlex.split(command)[-1]
    assert address.startswith(SERVER), command
    with tempfile.TemporaryDirectory() as shared:
        app = make_app(ServerSettings(folder / ".qkvsearch", "shown", Path(shared), log=False))
        with TestClient(app, SERVER) as client:
            return client.get(address.removeprefix(SERVER)).text.rstrip() + "\n"


def write_files(text: str, folder: Path) -> None:
    """Write the files that a page shows into a folder."""
    for name, content in SHOWN_FILE.findall(text):
        (folder / name).write_text(content, encoding="utf-8")


def _alone(command: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return printed(command, Path(folder))


def _rewrite_how_to(text: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(text, folder)
        return rewritten(text, lambda command: printed(command, folder))


if __name__ == "__main__":
    # Whoever names pages has only these written.
    wanted = [Path(name).resolve() for name in sys.argv[1:]]
    for page in (*PAGES, *HOW_TOS):
        if wanted and page not in wanted:
            continue
        text = page.read_text(encoding="utf-8")
        made = _rewrite_how_to(text) if page in HOW_TOS else rewritten(text, _alone)
        page.write_text(made, encoding="utf-8")
