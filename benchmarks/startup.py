"""How soon the command line starts, beside its parser alone: --help, and one search.

python benchmarks/startup.py
"""

from __future__ import annotations

import subprocess
import sys
from tempfile import TemporaryDirectory

from common import Row, System, compare, print_table

import qkvsearch as qkv

TASK = "a whole process, on `sample:videos`"
TURNS = 15
QKVSEARCH = (sys.executable, "-m", "qkvsearch")


def claim() -> list[Row]:
    with TemporaryDirectory() as folder:
        qkv.build(folder, "sample:videos").close()
        systems = [
            System("qkvsearch `--help`", lambda _: start(*QKVSEARCH, "--help")),
            System(
                "qkvsearch `search`",
                lambda _: start(*QKVSEARCH, "-w", folder, "search", "bank of the river"),
            ),
            System("`import click`", lambda _: start(sys.executable, "-c", "import click")),
        ]
        return compare(TASK, systems, [None] * TURNS)


def start(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    print_table([claim])
