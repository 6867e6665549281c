"""Publishing: a reader sees the old build or the new one, whatever happens in between."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace import Workspace, arrays, publish
from qkvsearch.workspace.records import Recorded

NEW = [(1, "New (2020)", 2020, "War", 5.0)]


def state(workspace):
    """What a new reader sees: titles, an array, and which builds lie on the disk."""
    snapshot = workspace.open()
    n_items = snapshot.facts["n_items"]
    folders = sorted(path.name for path in (workspace.path / "builds").iterdir())
    return snapshot.tables.names(range(n_items)), snapshot.array("numbers").tolist(), folders


def test_what_was_published_is_opened(workspace):
    snapshot = workspace.open()
    assert workspace.exists
    assert snapshot.tables.names([0, 4]) == (
        [4, 100],
        ["Teapot, The (1999)", "L'Été (bleu) (1980)"],
    )
    assert snapshot.tables.columns == ["id", "title", "year", "genres", "score"]
    assert snapshot.array("words").tolist() == ["a", "żó"]
    assert "words" in snapshot
    assert "other" not in snapshot
    assert snapshot.damaged_files() == []


def test_a_reader_keeps_its_build_when_a_new_one_is_published(workspace, make_contents):
    old = workspace.open()
    workspace.publish(make_contents(NEW, ("99",), numbers=np.zeros(2)))
    assert old.tables.names([0])[0] == [4]
    assert old.tables.user_position(12) == 1
    assert old.tables.mask("year < 1960", 5).tolist() == [False, True, False, False, False]
    assert old.array("numbers").tolist() == [0, 1, 2, 3, 4]
    new = workspace.open()
    assert new.tables.names([0]) == ([1], ["New (2020)"])
    assert new.tables.user_position(12) is None
    assert new.array("numbers").tolist() == [0, 0]


def test_only_the_last_two_builds_stay(workspace, make_contents, monkeypatch):
    monkeypatch.setattr(publish, "KEPT_SECONDS", -1)
    for year in (2001, 2002, 2003):
        workspace.publish(make_contents([(1, "x", year, "War", 1.0)]))
    with sqlite3.connect(workspace.path / "workspace.db") as db:
        names = {
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
        }
        folders = {name for (name,) in db.execute("SELECT folder FROM builds")}
    db.close()
    kinds = ("items", "titles", "users")
    assert names - {"builds", "recorded", "sqlite_sequence"} == {
        f"{kind}_{n}" for kind in kinds for n in (3, 4)
    }
    assert folders == {path.name for path in (workspace.path / "builds").iterdir()}
    assert len(folders) == 2


def test_what_a_crash_left_behind_goes_after_a_day_but_not_before(workspace, make_contents):
    builds = workspace.path / "builds"
    day = publish.ORPHAN_SECONDS
    ours = "20200101-000000-abcdef", "20200101-000000-fedcba"
    for name, age in ((ours[0], day + 60), (ours[1], 60), ("release-1.0", day + 60)):
        (builds / name).mkdir()
        made = (builds / name).stat().st_mtime - age
        os.utime(builds / name, (made, made))
    workspace.publish(make_contents())
    left = {path.name for path in builds.iterdir()}
    assert ours[0] not in left
    assert ours[1] in left
    assert "release-1.0" in left, "a folder that is not ours was removed"


def make_old(workspace):
    """All builds as if they were published years ago."""
    with sqlite3.connect(workspace.path / "workspace.db") as db:
        db.execute("UPDATE builds SET created = '2020-01-01T00:00:00+00:00'")
    db.close()


@pytest.mark.parametrize("statement", ["DELETE", "DROP", "BEGIN"])
def test_a_build_that_is_current_stays_so_whatever_becomes_of_tidying_up(
    workspace, make_contents, monkeypatch, statement
):
    """What cannot be removed now is removed after the next build."""
    workspace.publish(make_contents(NEW))
    make_old(workspace)
    failed = []

    class Failing(sqlite3.Connection):
        begun = 0

        def execute(self, sql, *values):
            Failing.begun += sql.startswith("BEGIN")
            # The first transaction is the build's own.
            if sql.startswith(statement) and Failing.begun > 1:
                failed.append(sql)
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(sql, *values)

    connect = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "factory": Failing}))
        workspace.publish(make_contents(NEW, numbers=np.ones(1)))
    assert failed
    names, numbers, folders = state(workspace)
    assert (names, numbers) == (([1], ["New (2020)"]), [1.0])
    assert len(folders) == 3
    make_old(workspace)
    workspace.publish(make_contents(NEW))
    assert len(state(workspace)[2]) == 2


def test_a_folder_that_cannot_be_listed_is_no_failed_build(workspace, make_contents, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", raising(PermissionError("not yours")))
        workspace.publish(make_contents(NEW, numbers=np.ones(1)))
    assert state(workspace)[:2] == (([1], ["New (2020)"]), [1.0])


@pytest.mark.parametrize("what", ["publish", "record"])
def test_who_finds_the_database_locked_waits_for_it(workspace, make_contents, what):
    """Another program is writing for a moment, which is no failure."""
    locked, waited = threading.Event(), []

    def hold():
        db = sqlite3.connect(workspace.path / "workspace.db", isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        locked.set()
        time.sleep(0.3)
        waited.append(True)
        db.execute("ROLLBACK")
        db.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert locked.wait(10)
    if what == "publish":
        workspace.publish(make_contents(NEW, numbers=np.ones(1)))
    else:
        workspace.record([Recorded("5", "4", 2.0)])
    assert waited
    thread.join()
    if what == "publish":
        assert state(workspace)[:2] == (([1], ["New (2020)"]), [1.0])
    else:
        rows = "SELECT user, item, rating FROM recorded"
        assert workspace.open().tables.db.execute(rows).fetchall() == [("5", "4", 2.0)]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows tells files by other numbers")
def test_the_disk_confirms_every_file_of_a_build_whole_before_it_is_current(
    tmp_path, make_contents, monkeypatch
):
    confirmed, fsync, connect, current = {}, os.fsync, sqlite3.connect, []

    def spy(descriptor):
        fsync(descriptor)
        status = os.fstat(descriptor)
        confirmed[status.st_ino] = status.st_size

    class Watched(sqlite3.Connection):
        def execute(self, sql, *values):
            if sql.startswith("INSERT INTO builds"):
                current.append(dict(confirmed))
            return super().execute(sql, *values)

    monkeypatch.setattr(os, "fsync", spy)
    workspace = Workspace(tmp_path / "ws")
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "factory": Watched}))
        workspace.publish(make_contents())
    (before,) = current
    folder = workspace.open().folder
    files = sorted(path.name for path in folder.iterdir())
    assert files == ["manifest.json", "numbers.npy", "words.npy"]
    for path in folder.iterdir():
        assert before.get(path.stat().st_ino) == path.stat().st_size, path.name
    for path in (folder, folder.parent):  # that the names are there
        assert path.stat().st_ino in before, path.name


def test_an_empty_database_has_no_finished_build(workspace):
    (workspace.path / "workspace.db").write_bytes(b"")
    with pytest.raises(WorkspaceError, match="no build was finished here; build it again"):
        workspace.open()


def raising(error):
    def fail(*args, **kwargs):
        raise error

    return fail


class FailingConnection(sqlite3.Connection):
    """Fails where the transaction would end."""

    error: BaseException = sqlite3.OperationalError("disk I/O error")

    def execute(self, sql, *values):
        if sql == "COMMIT":
            raise self.error
        return super().execute(sql, *values)


def break_at(monkeypatch, point, error):
    if point == "COMMIT":
        connect = sqlite3.connect
        monkeypatch.setattr(FailingConnection, "error", error)
        monkeypatch.setattr(
            publish.sqlite3, "connect", lambda *a, **k: connect(*a, factory=FailingConnection, **k)
        )
    elif point == "after write_tables":
        write = publish.write_tables

        def fail(*args):
            write(*args)
            raise error

        monkeypatch.setattr(publish, "write_tables", fail)
    elif point == "fsync":
        monkeypatch.setattr(arrays.os, "fsync", raising(error))
    else:
        monkeypatch.setattr(publish, point, raising(error))


POINTS = ["write_build", "fsync", "write_tables", "after write_tables", "COMMIT"]
ERRORS = [
    OSError("disk full"),
    sqlite3.OperationalError("locked"),
    KeyboardInterrupt(),
    ValueError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_leaves_the_old_build_current_and_no_stray(
    workspace, make_contents, monkeypatch, point, error
):
    before = state(workspace)
    reported = WorkspaceError if isinstance(error, OSError | sqlite3.Error) else type(error)
    with monkeypatch.context() as patch:
        break_at(patch, point, error)
        with pytest.raises(reported):
            workspace.publish(make_contents(NEW))
    assert state(workspace) == before
    workspace.publish(make_contents(NEW, numbers=np.ones(1)))
    assert state(workspace)[:2] == (([1], ["New (2020)"]), [1.0])


def test_an_interruption_just_after_the_commit_keeps_the_new_build(
    workspace, make_contents, monkeypatch
):
    make_current = publish.make_current

    def interrupted(*args):
        make_current(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(publish, "make_current", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workspace.publish(make_contents(NEW, numbers=np.ones(1)))
    assert state(workspace)[:2] == (([1], ["New (2020)"]), [1.0])


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_of_the_first_build_leaves_nothing_to_open(
    tmp_path, make_contents, monkeypatch, point
):
    workspace = Workspace(tmp_path / "ws")
    with monkeypatch.context() as patch:
        break_at(patch, point, OSError("disk full"))
        with pytest.raises(WorkspaceError, match=r"ws: cannot write the build: disk full"):
            workspace.publish(make_contents())
    with pytest.raises(WorkspaceError, match="build"):
        workspace.open()
    assert not list((tmp_path / "ws").glob("builds/*"))


def test_no_workspace_says_how_to_make_one(tmp_path):
    with pytest.raises(WorkspaceError, match=r"no workspace here; make one with qkvsearch -w"):
        Workspace(tmp_path).open()
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_place_of_a_workspace_is_not_overwritten(tmp_path, make_contents):
    path = tmp_path / "ws"
    path.write_text("mine")
    with pytest.raises(WorkspaceError, match=r"ws: cannot write the build"):
        Workspace(path).publish(make_contents())
    assert path.read_text() == "mine"


@pytest.mark.parametrize("content", [b"not a database at all, but long enough" * 40])
def test_a_corrupt_database_is_named(workspace, content):
    (workspace.path / "workspace.db").write_bytes(content)
    with pytest.raises(WorkspaceError, match=r"workspace\.db: .*build the workspace again"):
        workspace.open()


def test_a_table_that_is_gone_is_an_error_of_the_workspace(workspace):
    with sqlite3.connect(workspace.path / "workspace.db") as db:
        db.execute("DROP TABLE items_1")
    db.close()
    with pytest.raises(WorkspaceError, match=r"workspace\.db: no such table"):
        workspace.open().tables.names([0])


def test_damage_that_keeps_the_size_is_found_by_checksum(workspace):
    snapshot = workspace.open()
    path = snapshot.folder / "numbers.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert workspace.open().damaged_files() == ["numbers"]


def test_a_reader_cannot_write(workspace):
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        workspace.open().tables.db.execute("DELETE FROM builds")


def test_a_snapshot_that_is_closed_lets_go_of_the_database(workspace):
    snapshot = workspace.open()
    assert snapshot.tables.names([0])[0] == [4]
    snapshot.close()
    with pytest.raises((sqlite3.ProgrammingError, WorkspaceError), match="closed database"):
        snapshot.tables.names([0])
