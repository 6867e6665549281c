"""Locks: one writer at a time, in turn; what a killed one held is free at once."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from qkvsearch.errors import BusyError, DamagedError, QkvError, WorkspaceError
from qkvsearch.store import Workspace, locks
from qkvsearch.store.locks import hold_build, is_in_use, writer_lock

HOLDER = """
import sys, time
from pathlib import Path
from qkvsearch.store.locks import hold_build, writer_lock
path = Path(sys.argv[1])
if sys.argv[2] == "write":
    with writer_lock(path, "build"):
        print("held", flush=True)
        time.sleep(60)
else:
    held = hold_build(path)
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder():
    """Starts a process that holds a lock, and is killed at the end."""
    started = []

    def start(path, what):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path), what], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_second_writer_says_whom_it_waits_for_and_gives_up_when_told(tmp_path, holder):
    process, said = holder(tmp_path, "write"), []
    with (
        pytest.raises(WorkspaceError, match=rf"build \(process {process.pid}.*0\.2 seconds"),
        writer_lock(tmp_path, "add", wait=0.2, notify=said.append),
    ):
        pass
    assert said[0].startswith(f"Waiting for build (process {process.pid}")


@pytest.mark.parametrize("wait", [float("nan"), -1, "3", True])
def test_a_wait_that_no_clock_can_end_is_refused(tmp_path, wait):
    with pytest.raises(QkvError, match="`wait` must be a number of seconds, 0 or more, or None"):
        Workspace(tmp_path, wait=wait)


def test_what_a_killed_writer_held_is_free(tmp_path, holder):
    process = holder(tmp_path, "write")
    waiting = threading.Timer(0.2, process.send_signal, [signal.SIGKILL])
    waiting.start()
    with writer_lock(tmp_path, "add"):
        assert process.wait() == -signal.SIGKILL
        assert json.loads((tmp_path / "writer.lock").read_text())["command"] == "add"


def test_a_thread_that_has_the_lock_may_ask_again_and_others_wait(tmp_path):
    order = []

    def second():
        with writer_lock(tmp_path, "second"):
            order.append("second")

    with writer_lock(tmp_path, "first"), writer_lock(tmp_path, "inner"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def interrupted(workspace, work):
    """Begin to build, do some work, and press Ctrl-C."""

    def build():
        with workspace.writing("build"):
            work()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build()


def test_a_first_build_that_is_interrupted_leaves_nothing(tmp_path):
    workspace = Workspace(tmp_path / "new" / "ws")
    interrupted(workspace, lambda: (workspace.path / "builds").mkdir())
    assert not workspace.path.exists()
    workspace.path.mkdir()
    interrupted(workspace, lambda: None)
    assert workspace.path.exists()
    other = Workspace(tmp_path / "other")
    interrupted(other, lambda: (other.path / "mine.txt").write_text("mine"))
    assert (other.path / "mine.txt").exists()


def test_who_waited_for_a_lock_that_was_removed_does_not_write(tmp_path):
    path = tmp_path / "ws"
    failures = []

    def second():
        try:
            with writer_lock(path, "second"):
                failures.append(None)
        except WorkspaceError as error:
            failures.append(str(error))

    thread = threading.Thread(target=second)

    def wait_a_moment():
        thread.start()
        time.sleep(0.1)

    interrupted(Workspace(path), wait_a_moment)
    thread.join()
    assert "removed" in failures[0]
    with writer_lock(path, "third"):
        pass


def test_an_error_inside_lets_go(tmp_path):
    with pytest.raises(KeyError), writer_lock(tmp_path, "add"):
        raise KeyError
    with writer_lock(tmp_path, "add", wait=0):
        pass


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="without named pipes")
def test_a_pipe_in_place_of_a_manifest_is_damaged(tmp_path):
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(DamagedError, match="a folder or a pipe"):  # and does not wait for a writer
        hold_build(tmp_path / "manifest.json")
    assert not is_in_use(tmp_path / "manifest.json")


def test_a_build_is_held_as_long_as_a_reader_has_it_open(tmp_path, holder):
    manifest = tmp_path / "manifest.json"
    assert not is_in_use(manifest)
    assert not is_in_use(tmp_path), "what is no file"
    manifest.write_text("{}")
    assert not is_in_use(manifest)
    process, own = holder(manifest, "read"), hold_build(manifest)
    assert is_in_use(manifest)
    process.kill()
    process.wait()
    assert is_in_use(manifest), "this process holds it, too"
    own.close()
    assert not is_in_use(manifest)


def test_a_manifest_that_another_program_locks_is_an_error_after_a_while(tmp_path, monkeypatch):
    manifest = tmp_path / "manifest.json"
    manifest.write_text("{}")
    monkeypatch.setattr(locks, "READERS_WAIT", 0.2)
    with manifest.open("rb") as file:
        locks.lock(file)
        with pytest.raises(BusyError, match=r"manifest\.json: another program"):
            hold_build(manifest)
    hold_build(manifest).close()


def test_a_file_system_without_locks_can_be_read(tmp_path, monkeypatch):
    manifest = tmp_path / "manifest.json"
    manifest.write_text("{}")

    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(locks, "take", refuse)
    hold_build(manifest).close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="without named pipes")
def test_a_pipe_in_place_of_a_lock_is_named(tmp_path):
    os.mkfifo(tmp_path / "writer.lock")
    named = r"writer\.lock: cannot write: it is a folder, a pipe"
    with pytest.raises(WorkspaceError, match=named), writer_lock(tmp_path, "add"):
        pass


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a right there")
def test_links_that_lead_to_one_another_are_an_error(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for path in (tmp_path / "a", tmp_path / "a" / "below"):
        with pytest.raises(WorkspaceError, match="cannot write"), writer_lock(path, "build"):
            pass
    with pytest.raises(WorkspaceError, match=r"root\.json"):
        Workspace(tmp_path / "a").open()
