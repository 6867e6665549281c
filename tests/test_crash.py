"""A real SIGKILL at every step of a build, and of `record`: what was published stays whole, what
was acknowledged stays recorded, and the next build works and cleans up.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qkvsearch.workspace import BuildContents, Workspace, publish
from qkvsearch.workspace.records import Recorded

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has neither fork nor SIGKILL"
)

# What both sides need: a catalog of two items named after its build, and an array likewise.
CONTENTS = """
import numpy as np
import pandas as pd
from qkvsearch.data.catalog import Catalog
from qkvsearch.data.ids import Ids
from qkvsearch.workspace import BuildContents

def contents(number):
    frame = pd.DataFrame({"id": ["1", "2"], "title": [f"title {number}", "other"]})
    arrays = {"numbers": np.arange(4) + number, "others": np.zeros((2, 3))}
    catalog = Catalog(Ids(["1", "2"]), frame, ("title",))
    return BuildContents(catalog, Ids(["5"]), arrays, {"n_items": 2, "number": number})
"""

# Imports once, then forks a process for each step of a build, which is killed there for real.
KILLED_AT_EVERY_STEP = """
import json, os, shutil, signal, sqlite3, sys
from pathlib import Path
from qkvsearch.workspace import Workspace, arrays, publish

publish.KEPT_SECONDS = -1  # so that there is a build to remove
steps, fatal = [], None

def step(name):
    steps.append(name)
    if len(steps) - 1 == fatal:
        os.kill(os.getpid(), signal.SIGKILL)

def stepping(module, name):
    original = getattr(module, name)
    def instrumented(*args, **kwargs):
        step(f"before {name}")
        result = original(*args, **kwargs)
        step(f"after {name}")
        return result
    setattr(module, name, instrumented)

class Stepping(sqlite3.Connection):
    def execute(self, sql, *values):
        step(f"before {sql.split('(')[0].strip()}")
        result = super().execute(sql, *values)
        step(f"after {sql.split('(')[0].strip()}")
        return result

    def executemany(self, sql, rows):
        step(f"before {sql.split('(')[0].strip()}, many")
        result = super().executemany(sql, rows)
        step(f"after {sql.split('(')[0].strip()}, many")
        return result

def build(folder):
    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **kwargs: connect(*args, factory=Stepping, **kwargs)
    for module, name in [
        (Path, "mkdir"), (arrays.np, "save"), (arrays.json, "dump"), (os, "fsync"),
        (publish.shutil, "rmtree"),
    ]:
        stepping(module, name)
    Workspace(folder).publish(contents(3))

former, room = map(Path, sys.argv[1:])
number, survived = 0, False
while not survived:
    folder = room / str(number)
    shutil.copytree(former, folder)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        fatal = number
        os.dup2(writer, 9)
        kill = os.kill
        os.kill = lambda *args: (os.write(9, json.dumps(steps).encode()), kill(*args))
        build(folder)
        os.write(9, json.dumps(steps).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with open(reader, "rb") as pipe:
        done = json.loads(pipe.read())
    survived = status == 0
    if not survived:
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        assert len(done) == number + 1
    print(json.dumps({"folder": str(folder), "steps": done, "survived": survived}), flush=True)
    number += 1
"""

RECORDING = """
import itertools, sys
from qkvsearch.workspace import Workspace
from qkvsearch.workspace.records import Recorded

workspace = Workspace(sys.argv[1])
for number in itertools.count():
    workspace.record([Recorded("5", str(number))])
    print(number, flush=True)
"""

RECORDED = [("5", "1", 3.5), ("ann", "2", None)]


def contents(number: int) -> BuildContents:
    names: dict[str, object] = {}
    exec(CONTENTS, names)
    return names["contents"](number)


@pytest.fixture(scope="module")
def former(tmp_path_factory) -> Path:
    """Two builds, so that the next has one to remove, and two recorded interactions."""
    workspace = Workspace(tmp_path_factory.mktemp("former") / "ws")
    for number in (1, 2):
        workspace.publish(contents(number))
    for row in RECORDED:
        workspace.record([Recorded(*row)])
    return workspace.path


@pytest.fixture(scope="module")
def crashes(former, tmp_path_factory) -> list[tuple[Path, list[str]]]:
    """A workspace for each step that a build was killed at, and the steps up to there."""
    command = [sys.executable, "-c", CONTENTS + KILLED_AT_EVERY_STEP]
    done = subprocess.run(
        [*command, str(former), str(tmp_path_factory.mktemp("killed"))],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["survived"] for each in found] == [False] * (len(found) - 1) + [True]
    return [(Path(each["folder"]), each["steps"]) for each in found[:-1]]


def is_committed(steps: list[str]) -> bool:
    """Killed after the first COMMIT, which is the one that makes the build current."""
    return "after COMMIT" in steps


def recorded(workspace: Workspace) -> list[tuple[str, str, float | None]]:
    snapshot = workspace.open()
    try:
        rows = snapshot.tables.db.execute("SELECT user, item, rating FROM recorded ORDER BY number")
        return rows.fetchall()
    finally:
        snapshot.tables.db.close()


def test_the_steps_that_are_killed_at_are_all_those_of_a_build(crashes):
    last = [steps[-1] for _, steps in crashes]
    for step in (
        "before mkdir", "before save", "after save", "before dump", "after dump", "before fsync",
        "after fsync", "before BEGIN IMMEDIATE", "after UPDATE builds SET is_current = 0",
        "after INSERT INTO builds", "before COMMIT", "after COMMIT", "before DROP TABLE IF EXISTS "
        "items_1", "after DELETE FROM builds WHERE id = ?", "before rmtree", "after rmtree",
    ):  # fmt: skip
        assert step in last
    assert sum(step.endswith(", many") for step in last) == 6
    assert 0 < sum(is_committed(steps) for _, steps in crashes) < len(crashes)


def test_the_former_build_opens_until_the_commit_and_the_new_one_after_it(crashes):
    for path, steps in crashes:
        snapshot = Workspace(path).open()
        number = 3 if is_committed(steps) else 2
        assert snapshot.facts["number"] == number, steps[-1]
        assert snapshot.damaged_files() == [], steps[-1]
        assert snapshot.tables.names([0, 1]) == ([1, 2], [f"title {number}", "other"]), steps[-1]
        assert snapshot.tables.item_position(f"title {number}") == 0, steps[-1]
        assert snapshot.tables.user_position(5) == 0, steps[-1]
        assert snapshot.array("numbers").tolist() == [n + number for n in range(4)], steps[-1]


def test_what_was_recorded_before_the_kill_is_there_and_more_can_be_recorded(crashes):
    for path, steps in crashes:
        workspace = Workspace(path)
        assert recorded(workspace) == RECORDED, steps[-1]
        workspace.record([Recorded("5", "2")])
        assert recorded(workspace) == [*RECORDED, ("5", "2", None)], steps[-1]


def test_the_next_build_works_and_leaves_nothing_of_the_killed_one(crashes, monkeypatch):
    monkeypatch.setattr(publish, "ORPHAN_SECONDS", -1)  # a day later
    monkeypatch.setattr(publish, "KEPT_SECONDS", -1)
    for path, steps in crashes:
        workspace = Workspace(path)
        workspace.publish(contents(4))
        snapshot = workspace.open()
        assert snapshot.facts["number"] == 4, steps[-1]
        assert recorded(workspace)[: len(RECORDED)] == RECORDED, steps[-1]
        rows = snapshot.tables.db.execute("SELECT folder FROM builds ORDER BY id")
        folders = [name for (name,) in rows]
        assert sorted(folders) == sorted(each.name for each in (path / "builds").iterdir())
        assert folders[-1] == snapshot.folder.name
        assert len(folders) == publish.KEPT_BUILDS, steps[-1]
        tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name LIKE 'items_%'"
        assert snapshot.tables.db.execute(tables).fetchone() == (publish.KEPT_BUILDS,), steps[-1]


@pytest.mark.parametrize("seed", range(3))
def test_every_acknowledged_record_survives_a_kill_at_a_random_moment(former, tmp_path, seed):
    path = shutil.copytree(former, tmp_path / "ws")
    chance = random.Random(seed)
    command = [sys.executable, "-c", RECORDING, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        acknowledged = [process.stdout.readline() for _ in range(chance.randrange(1, 30))]
        time.sleep(chance.random() / 50)
        process.kill()
        acknowledged += process.stdout.read().splitlines()
    assert process.returncode == -9
    found = [item for _, item, _ in recorded(Workspace(path))[len(RECORDED) :]]
    assert found[: len(acknowledged)] == [str(number) for number in range(len(acknowledged))]
    assert len(found) - len(acknowledged) in (0, 1)  # one may be on disk and not yet said
    Workspace(path).publish(contents(5))
    assert len(recorded(Workspace(path))) == len(RECORDED) + len(found)
