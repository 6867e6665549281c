"""`forget` is all or nothing: refused, it changes nothing; killed, the next writer ends it."""

import sqlite3
import threading
from contextlib import closing, suppress

import pandas as pd
import pytest

from qkvsearch import Engine
from qkvsearch.engine import build, repair
from qkvsearch.errors import BusyError, UnknownIdError
from qkvsearch.learn import erase
from qkvsearch.store import Workspace, locks
from qkvsearch.store import workspace as workspace_module
from qkvsearch.store.records import RecordsDatabase

ITEMS = pd.DataFrame({"id": ["a", "b", "c"], "title": ["red fox", "blue sea", "green tea"]})
MORE = pd.DataFrame({"id": ["d"], "title": ["red tea"]})
SECRET = "secretperson"


@pytest.fixture
def path(tmp_path):
    """A workspace with two builds and a record of each user."""
    log = pd.DataFrame([(user, item) for user in (SECRET, "zoe") for item in "abc"])
    log.columns = ["user", "id"]
    with build(tmp_path / "ws", items=ITEMS, interactions=log, encoder="corpus") as engine:
        engine.add(MORE)
        engine.record(SECRET, "a")
        engine.record("zoe", "b")
    return tmp_path / "ws"


def files_with(path, text):
    files = (file for file in path.rglob("*") if file.is_file())
    return [file.name for file in files if text.encode() in file.read_bytes()]


def state_of(path):
    with Engine(path) as engine:
        return engine.builds(), list(engine.history(SECRET)), list(engine.records())


@pytest.fixture
def held_records(path):
    """Somebody who records and does not end."""
    with locks.exclusive(path / "records.lock", "record"):
        yield


@pytest.fixture
def open_transaction(path):
    """Another program that has the records open in a transaction."""
    with closing(sqlite3.connect(path / "records.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield


@pytest.mark.parametrize("holder", ["held_records", "open_transaction"])
def test_where_the_records_are_held_nothing_is_forgotten(path, holder, request):
    before = state_of(path)
    request.getfixturevalue(holder)
    with Engine(path, wait=0.1) as engine, pytest.raises(BusyError):
        engine.forget(SECRET)
    assert state_of(path) == before


def test_a_build_that_cannot_be_written_leaves_the_records(path, monkeypatch):
    before = state_of(path)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, Engine(path) as engine:
        patch.setattr(workspace_module, "write_root", full)
        with pytest.raises(Exception, match="No space left"):
            engine.forget(SECRET)
    assert state_of(path) == before


def killed(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture(
    params=[
        (RecordsDatabase, "forget"),
        (erase, "_finished"),
        (Workspace, "_remove_leftovers"),
        (Workspace, "_clean"),  # in the transaction, which then deletes no record
    ],
    ids=lambda param: param[1],
)
def half_forgotten(path, request, monkeypatch):
    """A workspace where `forget` was killed after it had published its build."""
    owner, step = request.param
    with Engine(path) as engine, monkeypatch.context() as patch:
        patch.setattr(owner, step, killed)
        with pytest.raises(KeyboardInterrupt):
            engine.forget(SECRET)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda engine: engine.add(MORE),
        lambda engine: engine.compact(),
        lambda engine: engine.learn(),
        lambda engine: engine.forget(SECRET),
        lambda engine: repair(engine.workspace.path),
    ],
    ids=["add", "compact", "learn", "forget", "repair"],
)
def test_the_next_writer_ends_what_a_killed_one_began(half_forgotten, change):
    with Engine(half_forgotten) as engine:
        assert len(engine.builds()) == 1, "there is none to roll back to"
        with suppress(UnknownIdError):  # where it is forgotten already
            change(engine)
    assert files_with(half_forgotten, SECRET) == []
    with Engine(half_forgotten) as engine:
        assert [row["user"] for row in engine.records()] == ["zoe"]


def test_who_records_next_deletes_the_records_and_keeps_later_ones(half_forgotten):
    with Engine(half_forgotten) as engine:
        engine.record("zoe", "c")
        assert {row["user"] for row in engine.records()} == {"zoe"}
        engine.record(SECRET, "b")
        engine.add(MORE)
        assert [row["id"] for row in engine.history(SECRET)] == ["b"]


def test_what_cannot_be_deleted_yet_is_a_note(path, monkeypatch):
    def busy(*_, **__):
        raise BusyError("another program has it open")

    with Engine(path) as engine:
        with monkeypatch.context() as patch:
            patch.setattr(RecordsDatabase, "forget", busy)
            done = engine.forget(SECRET)
        assert done.records == 1
        assert any("another program has it open" in note for note in done.notes)
        engine.compact()
    assert files_with(path, SECRET) == []


def test_repair_waits_for_a_recorder_no_longer_than_it_is_told(path, held_records):
    with pytest.raises(BusyError, match="record"):
        repair(path, wait=0.1)


def test_readers_answer_while_somebody_is_forgotten(path, monkeypatch):
    entered, go_on = threading.Event(), threading.Event()
    write_root = workspace_module.write_root

    def slow(*args):
        entered.set()
        assert go_on.wait(10)
        write_root(*args)

    monkeypatch.setattr(workspace_module, "write_root", slow)
    engine = Engine(path)
    thread = threading.Thread(target=engine.forget, args=(SECRET,))
    thread.start()
    assert entered.wait(10)
    with Engine(path) as reader:
        assert len(reader.history(SECRET)) == 3
    go_on.set()
    thread.join()
    engine.close()
    assert files_with(path, SECRET) == []


def test_a_folder_that_cannot_be_removed_is_tried_again_by_the_next_writer(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(workspace_module.shutil, "rmtree", lambda *args, **kwargs: None)
        with Engine(path) as engine:
            engine.forget(SECRET)
        assert files_with(path, SECRET)
        assert Workspace(path).unfinished_erasure() is not None
    with Engine(path) as engine:
        engine.remove(["d"])
    assert not files_with(path, SECRET)
    assert Workspace(path).unfinished_erasure() is None
