"""How soon the command line starts, beside its parser alone: --help, and one search.

python benchmarks --only startup    (half a minute)
"""

from __future__ import annotations

import subprocess
import sys
from tempfile import TemporaryDirectory

import qkvsearch as qkv
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare

TASK = "a whole process, on `sample:videos` with static"
TURNS = 15
QKVSEARCH = (sys.executable, "-m", "qkvsearch")


def processes() -> list[Row]:
    with TemporaryDirectory() as folder:
        qkv.build(folder, "sample:videos", encoder="static").close()
        systems = [
            System("qkvsearch `--help`", lambda _: start(*QKVSEARCH, "--help")),
            System(
                "qkvsearch `search`",
                lambda _: start(*QKVSEARCH, "-w", folder, "search", "bank of the river"),
            ),
            System("`import click`", lambda _: start(sys.executable, "-c", "import click")),
        ]
        return compare(TASK, systems, [None], turns=TURNS)


def start(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


PARTS = {"processes": processes}

if __name__ == "__main__":
    main(__file__, PARTS, peers=["click"])
