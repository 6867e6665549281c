"""A folder of a stranger, in which commands are run: nothing in it is imported, run or obeyed."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import qkvsearch as qkv

# What Python imports itself before a command begins is not among them.
MODULES = (
    "click numba numpy pandas pip pymilvus qkvsearch.py scipy sitecustomize typing yaml".split()
)
COMMANDS = {
    "script": ["-P", "-c", "from qkvsearch.__main__ import process; process()"],
    "-m": ["-m", "qkvsearch"],
}
LOOP = """
from qkvsearch._utils.compiled import compiled

@compiled
def total(n):
    found = 0
    for i in range(n):
        found += i
    return found
"""


class Payload:
    """Leaves a file in the current folder when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("it-ran"),)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "strange"
    folder.mkdir()
    for name in MODULES:
        (folder / f"{name.removesuffix('.py')}.py").write_text("open('it-ran', 'w')\n")
    (folder / ".numba_config.yaml").write_text("cache_dir: .c\n")
    (folder / "items.csv").write_text("id,title\n" + "".join(f"{k},thing {k}\n" for k in range(20)))
    rows = "".join(f"{k % 7},{k * 3 % 20}\n" for k in range(60))
    (folder / "log.csv").write_text(f"user,item\n{rows}")
    monkeypatch.chdir(folder)
    return folder


def run(*command, **environment):
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("how", list(COMMANDS))
def test_a_build_runs_nothing_of_the_folder(folder, how):
    if how == "-m":  # the folder comes first where Python looks for it
        (folder / "qkvsearch.py").unlink()
    files = "--items items.csv --interactions log.csv --encoder corpus".split()
    done = run(*COMMANDS[how], "-q", "-w", "ws", "build", *files)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (folder / "it-ran").exists()
    assert not (folder / ".c").exists()
    assert qkv.open(folder / "ws").n_items == 20


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{}, {"XDG_CACHE_HOME": ""}])
def test_no_compiled_code_of_the_folder_is_loaded(folder, tmp_path, environment):
    source = tmp_path / "loop"
    source.mkdir()
    (source / "loop.py").write_text(LOOP)
    (source / "__pycache__").touch()  # no place for it beside the source
    caches = [folder / ".c", folder / "numba"]
    code = "from loop import total; print(total(5))"
    for cache in caches:
        run("-P", "-c", code, PYTHONPATH=str(source), NUMBA_CACHE_DIR=str(cache))
        (index,) = cache.rglob("*.nbi")
        index.write_bytes(pickle.dumps(Payload()))
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), **environment}
    done = run("-P", "-c", code, PYTHONPATH=str(source), **home)
    assert (done.stdout, done.stderr) == ("10\n", "")
    assert not (folder / "it-ran").exists()


def test_a_process_that_a_command_starts_imports_nothing_of_the_folder(folder):
    code = (
        "import atexit, subprocess, sys; from qkvsearch.__main__ import process; "
        "atexit.register(subprocess.run, [sys.executable, '-c', 'import typing']); process()"
    )
    assert run("-P", "-c", code, "--version").returncode == 0
    assert not (folder / "it-ran").exists()


def test_pip_of_the_folder_is_not_run(folder):
    code = "from qkvsearch.text.pretrained.fetch import fetch; fetch('minilm')"
    done = run("-P", "-c", code, PIP_INDEX_URL="http://127.0.0.1:1", PIP_RETRIES="0")
    assert "pip could not download" in done.stderr
    assert not (folder / "it-ran").exists()
