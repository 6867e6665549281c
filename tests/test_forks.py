"""A forked child works, whatever the other threads of its parent were doing."""

import os
import signal
import threading
from contextlib import contextmanager

import pytest

import qkvsearch
from qkvsearch._utils import query_lock as turns
from qkvsearch._utils import threads
from qkvsearch._utils.forks import Connection, fork_lock
from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.storage import Workspace
from qkvsearch.storage.locks import is_writing, writer_lock
from qkvsearch.text import analysis

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is forked"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
# Seconds after which the kernel ends a child that hangs.
HANGS = 60


def in_child(run):
    """Run in a forked child, and return how the child ended: 0 where all was right."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(HANGS)
        code = 1
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


@contextmanager
def held(*contexts):
    """Hold each of these in a thread of its own."""
    ends = threading.Event()

    def hold(context, begun):
        with context:
            begun.set()
            ends.wait(HANGS)

    holders = []
    for context in contexts:
        begun = threading.Event()
        holders.append(threading.Thread(target=hold, args=(context, begun)))
        holders[-1].start()
        assert begun.wait(HANGS)
    try:
        yield
    finally:
        ends.set()
        for holder in holders:
            holder.join()


@pytest.fixture
def engine(films_path):
    with qkvsearch.open(films_path) as engine:
        engine.search("space")
        engine.recommend(user="u001")
        yield engine


def ask_all(engine):
    assert engine.search("spaces", user="u001", explain=True).to_records()
    assert engine.recommend(user="u001")
    assert engine.similar("m001")
    assert engine.items.list(where="year > 1990", k=3)
    assert engine.history("u001")


def test_a_child_searches_while_another_thread_holds_any_lock(engine, monkeypatch):
    monkeypatch.setattr(turns, "LOST", 0.05)
    build = engine.current_build
    records = build.catalog.records_database._committed
    locks = [turns._state_lock, threads._lock, analysis._STEMMING]
    locks += [engine._lock, build._map_lock, records._mutex]
    with held(one_blas_thread(), *locks[1:]):
        assert in_child(lambda: ask_all(engine)) == 0
    with held(query_lock()):
        assert in_child(lambda: ask_all(engine)) == 0
    ask_all(engine)


def test_a_child_records_and_its_parent_reads_it(engine):
    with held(query_lock()):
        assert in_child(lambda: engine.record("forked", "m001", 4)) == 0
    assert [row["id"] for row in engine.history("forked")] == ["m001"]


def test_children_search_while_threads_search(engine):
    ends = threading.Event()

    def search():
        while not ends.is_set():
            engine.search("space war", k=20, explain=True)

    searching = [threading.Thread(target=search) for _ in range(2)]
    for thread in searching:
        thread.start()
    try:
        assert [in_child(lambda: engine.search("space")) for _ in range(5)] == [0] * 5
    finally:
        ends.set()
        for thread in searching:
            thread.join()
    assert turns._current is None


def test_blas_has_its_threads_again_in_a_child(engine):
    with one_blas_thread():
        pass

    def ask():
        with one_blas_thread():
            assert len(threads._callers) == 1
        assert not threads._callers
        assert not threads._saved_threads

    with held(one_blas_thread()):
        assert in_child(ask) == 0
        assert len(threads._callers) == 1


def test_a_lock_of_another_thread_is_free_in_a_child_and_taken_in_the_parent():
    lock = fork_lock()
    with held(lock):
        assert in_child(lambda: lock.acquire(timeout=1) or os._exit(2)) == 0
        assert lock.locked()


def test_a_child_does_not_use_its_parents_connection():
    import sqlite3

    place = Connection()
    place.db = sqlite3.connect(":memory:")
    child_has = []
    assert in_child(lambda: child_has.append(place.db) or (place.db and os._exit(2))) == 0
    place.db.execute("SELECT 1")
    place.close()
    assert place.db is None


def test_a_child_has_no_writers_lock_and_takes_none_away(tmp_path):
    workspace = Workspace(tmp_path, wait=0)

    def write():
        assert not is_writing(tmp_path)
        with pytest.raises(qkvsearch.errors.BusyError), writer_lock(tmp_path, "add", wait=0):
            pass

    with writer_lock(tmp_path, "build"):
        assert in_child(write) == 0
        assert is_writing(tmp_path)
        assert in_child(write) == 0, "the first child took the lock away"
    with workspace.writing("add"):
        pass


def test_a_child_that_lives_on_keeps_no_lock_of_a_killed_parent(tmp_path):
    child_says, says = os.pipe()
    parent = os.fork()
    if parent == 0:
        with writer_lock(tmp_path, "build"):
            if os.fork() == 0:
                os.write(says, b"lives")
                os.read(child_says, 1)  # which is empty by then, so that this waits
                os._exit(0)
            signal.pause()
    assert os.read(child_says, 5) == b"lives"
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    with writer_lock(tmp_path, "add", wait=0):
        pass
    os.write(says, b".")
    os.close(says)
