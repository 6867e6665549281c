"""Workspaces of former formats: answered from as they are, brought up to date by the first writer."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sqlite3
import tarfile
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest

import qkvsearch
from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.workspace import FORMAT_VERSION, Workspace

FOLDER = Path(__file__).parent / "former"
FORMAT_4 = ["format4-text", "format4-whole", "format4-folded", "format4-things", "format4-first"]
OLDER = ["format1", "format2", "format3"]
posix = pytest.mark.skipif(os.name == "nt", reason="Windows has other modes")


@pytest.fixture(scope="module")
def make():
    """The script by which the workspaces were made."""
    spec = spec_from_file_location("make_former", FOLDER / "make.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def unpacked(tmp_path):
    def unpack(name: str, folder: Path = tmp_path) -> Path:
        with tarfile.open(FOLDER / f"{name}.tar.xz") as packed:
            packed.extractall(folder, filter="data")
        return folder / name

    return unpack


def contents_of(workspace: Path) -> dict[str, bytes]:
    """Every file but locks and what SQLite makes for a reader."""
    passing = ("writer.lock", "records.lock", "workspace.db-shm")
    return {
        str(path.relative_to(workspace)): path.read_bytes()
        for path in sorted(workspace.rglob("*"))
        if path.is_file() and path.name not in passing and path.stat().st_size
    }


def assert_as_expected(found, name: str, **but) -> None:
    """As the code of its time answered: hits by id, since equal scores may change places between
    machines. but: facts that are something else by now.
    """
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    expected["info"] |= but
    found = json.loads(json.dumps(found))
    assert found["info"].pop("segments") == 1
    assert found.keys() == expected.keys()
    for question, answer in expected.items():
        assert by_id(found[question]) == approximately(by_id(answer)), question


def by_id(answer):
    if isinstance(answer, list) and answer and isinstance(answer[0], list):
        hits, *others = answer
        return {hit["id"]: {**hit, "rank": 0} for hit in hits}, *others
    return answer


def approximately(value):
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-4, abs=1e-5)
    if isinstance(value, dict):
        return {key: approximately(cell) for key, cell in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(approximately, value))
    return value


def upgrade(path: Path) -> None:
    with Workspace(path).writing("upgrade"):
        pass


# --- format 4: read, and upgraded ---


@pytest.mark.parametrize("name", FORMAT_4)
def test_format_4_answers_as_it_did_and_the_same_to_the_bit_when_it_is_upgraded(
    make, unpacked, name
):
    path = unpacked(name)
    before = contents_of(path)
    found = make.answers(path, name)
    assert_as_expected(found, name)
    assert Workspace(path).exists
    assert contents_of(path) == before
    upgrade(path)
    assert make.answers(path, name) == found
    with qkvsearch.Engine(path) as engine:
        assert engine.info(verify=True)["format"] == FORMAT_VERSION
    assert not list(path.glob("workspace.db*"))
    assert len(list((path / "builds").iterdir())) == 1
