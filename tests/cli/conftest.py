"""The command line as a person meets it: arguments in, stdout, stderr and an exit code out."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from qkvsearch.cli import main

COMMAND = [sys.executable, "-c", "from qkvsearch.cli import main; main()"]


@dataclass(frozen=True)
class Answer:
    code: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A home of our own, so that the samples are built into it once and nothing outside changes."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def surroundings(home, tmp_path, monkeypatch):
    """An empty folder to work in and a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("QKVSEARCH_WORKSPACE", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def qkv(capsys, monkeypatch):
    """Runs `qkvsearch` in this process."""

    def run(*args, stdin=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(arg) for arg in args])
        return Answer(stopped.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def qkv_process():
    """Runs `qkvsearch` in a process of its own, for exit codes, pipes and signals."""

    def run(*args, code=None, **options):
        command = [sys.executable, "-c", code] if code else COMMAND
        done = subprocess.run(
            [*command, *map(str, args)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONUTF8": "1"},
            **options,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run
