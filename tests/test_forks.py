"""A forked child works, whatever the other threads of its parent were doing."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

import qkvsearch
from qkvsearch._utils import forks, sqlite, threads
from qkvsearch._utils import query_lock as turns
from qkvsearch._utils.forks import Connection, fork_lock
from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.store import Workspace
from qkvsearch.store.locks import is_writing, writer_lock
from qkvsearch.text import analysis
from tests.blas import blas_threads

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
    records = engine.current_build.snapshot.records.database._committed
    locks = [turns._state_lock, threads._lock, analysis._STEMMING]
    locks += [engine._lock, engine._maps._lock, records._mutex]
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
    ask_all(engine)


def test_blas_has_its_threads_again_in_a_child(engine):
    with one_blas_thread():
        pass
    before = blas_threads()

    def ask():
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before

    with held(one_blas_thread()):
        assert in_child(ask) == 0
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


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
    hears, says = os.pipe()
    waits, lets_end = os.pipe()
    parent = os.fork()
    if parent == 0:
        signal.alarm(HANGS)
        with writer_lock(tmp_path, "build"):
            if os.fork() == 0:
                signal.alarm(HANGS)
                os.close(lets_end)
                os.write(says, b"lives")
                os.read(waits, 1)  # until the test closes the other end
                os._exit(0)
            signal.pause()
    try:
        os.close(says)
        assert os.read(hears, 5) == b"lives"
    finally:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
    try:
        with writer_lock(tmp_path, "add", wait=0):
            pass
    finally:
        for end in (hears, waits, lets_end):
            os.close(end)


# --- SQLite ---


@contextmanager
def threads_that_run(*tasks):
    """Run each of these again and again in a thread of its own."""
    ends, errors = threading.Event(), []

    def repeat(task):
        try:
            while not ends.is_set():
                task()
        except Exception as error:
            errors.append(error)

    repeating = [threading.Thread(target=repeat, args=(task,)) for task in tasks]
    for thread in repeating:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        for thread in repeating:
            thread.join()
    assert errors == []


@pytest.mark.slow
def test_children_answer_while_threads_are_inside_sqlite(engine):
    years = itertools.count()

    def listing():
        engine.items.list(where=f"title LIKE '%a%' AND year > {next(years)}", k=3)

    def searching():
        engine.search("space", where=f"length(title) > 3 AND year > {next(years)}")

    tasks = [listing, searching, lambda: engine.search("war"), lambda: engine.history("u001")]
    engine.record("u001", "m001", 4)
    for task in (*tasks, lambda: ask_all(engine)):
        task()  # Python itself keeps the lock of a module that a thread imports during a fork
    with threads_that_run(*tasks):
        assert [in_child(lambda: ask_all(engine)) for _ in range(40)] == [0] * 40


def test_a_fork_waits_while_a_thread_is_inside_sqlite_and_not_for_ever(monkeypatch):
    is_inside, ends, left = threading.Event(), threading.Event(), []

    def stay():
        is_inside.set()
        ends.wait(HANGS)
        left.append(1)

    db = sqlite.connect(":memory:", check_same_thread=False)
    db.create_function("stay", 0, stay)
    inside = threading.Thread(target=lambda: db.execute("SELECT stay()"))
    inside.start()
    assert is_inside.wait(HANGS)
    monkeypatch.setattr(forks, "_patience", lambda: 0.05)
    assert in_child(lambda: left and os._exit(2)) == 0
    monkeypatch.setattr(forks, "_patience", lambda: HANGS)
    threading.Timer(0.05, ends.set).start()
    assert in_child(lambda: left or os._exit(2)) == 0
    inside.join()
    db.close()


def test_a_fork_has_its_moment_although_threads_enter_again_and_again(monkeypatch):
    monkeypatch.setattr(forks, "_patience", lambda: HANGS)
    db = sqlite.connect(":memory:", check_same_thread=False)
    with threads_that_run(*[lambda: db.execute("SELECT 1").fetchall()] * 3):
        for _ in range(5):
            assert in_child(lambda: sqlite.connect(":memory:").execute("SELECT 1")) == 0
    db.close()


def test_nothing_holds_forks_out_between_two_rows(engine):
    """Whoever reads rows slowly is not inside SQLite."""
    stored = engine.current_build.catalog.segments[0]
    rows = stored.stream("SELECT id FROM items")
    next(rows)
    database = sqlite.connect(":memory:")
    database.execute("CREATE TABLE numbers (number)")

    def is_free(number):
        assert not forks._is_own(forks.inside_sqlite())
        return (number,)

    assert is_free(0)
    database.executemany("INSERT INTO numbers VALUES (?)", map(is_free, range(1000)))
    assert database.execute("SELECT count(*), max(number) FROM numbers").fetchone() == (1000, 999)
    for (number,) in database.execute("SELECT number FROM numbers"):
        is_free(number)


def test_an_interrupt_during_a_fork_leaves_the_gate_open():
    script = """
import _thread, os, threading
# Before our own calls after a fork.
os.register_at_fork(after_in_parent=_thread.interrupt_main)
from qkvsearch._utils import sqlite

db = sqlite.connect(":memory:", check_same_thread=False)
has_read, goes_on = threading.Event(), threading.Event()

def read():
    print(db.execute("SELECT 'read'").fetchone()[0], flush=True)

def read_twice():
    read()
    has_read.set()
    goes_on.wait()
    read()

reader = threading.Thread(target=read_twice)
reader.start()
has_read.wait()
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
goes_on.set()
reader.join(timeout=20)
os._exit(0)
"""
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    assert ran.stdout.split() == ["read", "read"], ran.stderr
