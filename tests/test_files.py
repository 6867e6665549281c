"""A file that is written is the former one or the new one, whole, whatever happens meanwhile."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch._utils import files
from qkvsearch._utils.files import replacing, write_file
from qkvsearch.engine import build
from qkvsearch.errors import DataError, WorkspaceError

posix = pytest.mark.skipif(sys.platform == "win32", reason="no such files on Windows")
FORMER = b"what was there"
# A call of each kind of file that a command writes.
WRITES = {
    "rows.json": ["search", "apple"],
    "rows.csv": ["items"],
    "rows.md": ["users"],
    "rows.parquet": ["search", "apple"],
    "all.csv": ["recommend", "--all-users"],
    "all.parquet": ["recommend", "--all-users"],
    "course.html": ["teach", "softmax"],
    "course.ipynb": ["teach", "softmax"],
    "answer.md": ["teach", "softmax"],
}


@pytest.fixture
def full_disk(monkeypatch):
    """The disk is found to be full when all is written, as at the latest it is."""

    def fail(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", fail)


@pytest.mark.parametrize("name", WRITES)
def test_on_a_full_disk_every_command_keeps_the_former_file(
    qkv, shop_path, tmp_path, full_disk, name
):
    path = tmp_path / name
    path.write_bytes(FORMER)
    answer = qkv("-w", shop_path, *WRITES[name], "-o", name)
    assert (answer.code, answer.stdout) == (1, "")
    assert "No space left on device" in answer.stderr
    assert path.read_bytes() == FORMER
    assert [found.name for found in tmp_path.iterdir()] == [name]


def test_an_error_half_way_keeps_the_former_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "out.txt"
    path.write_bytes(FORMER)

    def interrupted():
        with replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == FORMER
    assert list(tmp_path.iterdir()) == [path]


@posix
def test_a_link_and_permissions_stay(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_bytes(FORMER)
    real.chmod(0o640)
    link.symlink_to("real.txt")
    write_file(link, b"new")
    assert link.is_symlink()
    assert (real.read_bytes(), real.stat().st_mode & 0o777) == (b"new", 0o640)
    new = tmp_path / "new.txt"
    before = os.umask(0o027)
    try:
        write_file(new, b"")
    finally:
        os.umask(before)
    assert new.stat().st_mode & 0o777 == 0o640


@posix
def test_a_pipe_and_a_device_are_written_to_as_they_are(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"through")
    reader.join()
    assert read == [b"through"]
    write_file(Path("/dev/null"), b"nothing")
    assert pipe.is_fifo()
    assert Path("/dev/null").is_char_device()


@posix
@pytest.mark.parametrize("call", [["items"], ["recommend", "--all-users"]])
def test_stdout_by_its_name_takes_the_place_of_nothing(surroundings, shop_path, tmp_path, call):
    path = tmp_path / "out.csv"
    path.write_bytes(b"above\n")
    code = "from qkvsearch.cli import main; main()"
    args = ["-w", str(shop_path), *call, "--format", "csv", "-o", "/dev/stdout"]
    with path.open("ab") as out:
        subprocess.run([sys.executable, "-c", code, *args], stdout=out, check=True)
    lines = path.read_text("utf-8").splitlines()
    assert (lines[0], lines[1].split(",")[0]) == ("above", "user" if len(call) > 1 else "id")


def test_what_cannot_be_written_is_named(tmp_path):
    for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "no" / "x", "No such file")):
        with pytest.raises(DataError, match=f"{path}: cannot write: {reason}"):
            write_file(path, b"")


@posix
def test_a_link_to_itself_is_not_replaced(tmp_path):
    loop = tmp_path / "loop.csv"
    loop.symlink_to("loop.csv")
    with pytest.raises(DataError, match=r"loop\.csv: cannot write: Too many levels"):
        write_file(loop, b"rows")
    assert loop.is_symlink()


def test_results_replace_no_file_of_a_workspace(tmp_path):
    items = pd.DataFrame({"id": ["a", "b"], "title": ["red fox", "blue sea"]})
    log = pd.DataFrame({"user": ["u", "v"], "id": ["a", "b"]})
    path = tmp_path / "ws"
    with build(path, items=items, interactions=log, encoder="corpus") as engine:
        engine.record("u", "b")
        own = [file for file in path.rglob("*") if file.is_file()]
        assert len(own) > 5
        before = [file.read_bytes() for file in own]
        for file in [*own, path / "builds" / "new.csv", path / "records.db-journal"]:
            with pytest.raises(DataError, match="a workspace keeps its data there"):
                write_file(file, b"rows")
        (tmp_path / "link.csv").symlink_to(path / "root.json")
        with pytest.raises(DataError, match="a workspace"):
            engine.recommend_all(tmp_path / "link.csv")
    assert [file.read_bytes() for file in own] == before
    write_file(path / "results.csv", b"rows")
    write_file(tmp_path / "root.json", b"{}")
    write_file(tmp_path / "root.json", b"{}")


@pytest.mark.parametrize("is_link", [False, pytest.param(True, marks=posix)])
def test_what_a_killed_process_left_is_neither_kept_nor_followed(is_link, tmp_path):
    target, other = tmp_path / "root.json", tmp_path / "other.json"
    other.write_bytes(FORMER)
    left = tmp_path / f".{target.name}-{os.getpid()}"
    if is_link:
        left.symlink_to(other)
    else:
        left.write_bytes(b"half")
    files.write_synced(target, b"{}")
    assert target.read_bytes() == b"{}"
    assert not target.is_symlink()
    assert other.read_bytes() == FORMER
    assert not left.exists()


def test_a_file_that_comes_and_goes_is_never_taken_for_a_pipe(tmp_path):
    path, stop = tmp_path / "records.lock", threading.Event()

    def come_and_go():
        while not stop.is_set():
            path.touch()
            path.unlink()

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        assert all(files.is_on_disk(path) for _ in range(20_000))
    finally:
        stop.set()
        other.join()
    assert not files.is_on_disk(tmp_path)


def test_a_file_is_no_damaged_workspace(tmp_path):
    path = tmp_path / "d1.py"
    path.write_text("x\n")
    with pytest.raises(WorkspaceError, match=r"d1.py: a file, and a workspace is a folder"):
        qkv.open(path)
