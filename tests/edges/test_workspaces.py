"""Workspaces in trouble: newer, damaged, read-only, on a full disk, or interrupted."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest

from qkvsearch.store import FORMAT_VERSION, Workspace
from qkvsearch.store.checksums import write_checksummed

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has other modes, limits and signals")
QUESTIONS = [
    ["search", "apple"],
    ["search", "apple", "--where", "made > 2000"],
    ["recommend", "--user", "101"],
    ["similar", "1"],
    ["attend", "apple hammer"],
    ["record", "101", "1"],
    ["info", "--verify"],
    ["evaluate", "recommend"],
]


def build_of(workspace):
    (folder,) = (workspace / "builds").iterdir()
    return folder


def assert_each_answers_or_names(qkv, workspace, *names):
    """Each question is answered, or fails in a sentence with one of `names`; one does fail."""
    codes = []
    for args in QUESTIONS:
        answer = qkv("-w", workspace, *args)
        codes.append(answer.code)
        assert answer.code in (0, 1), (args, answer.stderr)
        assert "Traceback" not in answer.stderr
        if answer.code:
            assert answer.stdout == ""
            assert answer.stderr.startswith("Error: ")
            assert any(name in answer.stderr for name in names), (args, answer.stderr)
    assert 1 in codes


@pytest.mark.parametrize("difference", [-1, 1])
def test_another_format_says_to_build_again(qkv, shop_copy, difference):
    write_checksummed(shop_copy / "root.json", {"format": FORMAT_VERSION + difference})
    for args in QUESTIONS:
        answer = qkv("-w", shop_copy, *args)
        assert (answer.code, answer.stdout) == (1, "")
        assert f"the workspace has format {FORMAT_VERSION + difference}" in answer.stderr
        assert answer.stderr.count("\n") == 1
        assert "build it again" in answer.stderr


def test_a_root_that_is_gone_says_how_to_build(qkv, shop_copy):
    (shop_copy / "root.json").unlink()
    assert_each_answers_or_names(qkv, shop_copy, "no workspace here; build one with", "root.json")


@posix
def test_a_read_only_folder_answers_and_cannot_be_built_or_recorded_into(
    qkv, shop_path, shop_items, without_privileges
):
    questions = [args for args in QUESTIONS if args[0] != "record"]
    expected = [qkv("-w", shop_path, *args) for args in questions]
    with TemporaryDirectory() as name:  # not tmp_path, whose parents are its owner's alone
        workspace = Path(shutil.copytree(shop_path, Path(name) / "ws"))
        shop_items.to_csv(Path(name) / "items.csv", index=False)
        # All is imported now: what belongs to the owner alone is out of reach below.
        building = ["build", f"{name}/items.csv", "--encoder", "corpus"]
        assert qkv("-w", Path(name) / "other", *building).code == 0
        everything = [Path(name), *Path(name).rglob("*")]
        for path in everything:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            with without_privileges():
                with pytest.raises(PermissionError):
                    (workspace / "new").touch()
                for args, answer in zip(questions, expected, strict=True):
                    found = qkv("-w", workspace, *args)
                    assert found.code == 0, found.stderr
                    assert args[0] == "info" or found.stdout == answer.stdout
                for args in (building, ["record", "101", "1"]):
                    answer = qkv("-w", workspace, *args)
                    assert (answer.code, answer.stdout) == (1, "")
                    assert f"Error: {workspace}" in answer.stderr
                    assert "Traceback" not in answer.stderr
        finally:
            for path in everything:
                path.chmod(0o755)


# One build after the other: the limit of the first argument on a file's size, then those of the
# next; what is said of each ends with its exit code.
LIMITED = """
import resource, sys
from qkvsearch.cli import main
_, highest = resource.getrlimit(resource.RLIMIT_FSIZE)
for limit in sys.argv.pop(1).split(","):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), highest))
    try:
        main()
    except SystemExit as stopped:
        print("==", stopped.code, file=sys.stderr)
"""


@pytest.mark.slow
@posix
def test_a_disk_that_is_full_ends_the_build_and_keeps_the_former(qkv_process, shop_copy, tmp_path):
    """No file may grow beyond a limit: arrays first, then the database, refuse to be written."""
    limits = [100, 40_000, 200_000]
    items = pd.DataFrame({"id": range(60), "title": [f"tool {i}" for i in range(60)]})
    items.assign(note="x" * 5000).to_csv(tmp_path / "items.csv", index=False)
    before = build_of(shop_copy)
    build = ("-w", shop_copy, "build", tmp_path / "items.csv", "--language", "en")
    answer = qkv_process(",".join(map(str, limits)), *build, code=LIMITED)
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    *said, rest = answer.stderr.split("== 1\n")
    assert (len(said), rest) == (len(limits), "")
    for text in said:
        assert f"Error: {shop_copy}: cannot write the build: " in text
        assert "full" in text
    assert build_of(shop_copy) == before
    assert Workspace(shop_copy).open().damaged() == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_result_that_does_not_fit_on_the_disk_is_an_error(shop_path, surroundings, form):
    command = [sys.executable, "-c", "from qkvsearch.cli import main; main()"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*command, "-w", str(shop_path), "search", "apple", "--format", form],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == "Error: No space left on device\n"


# One build after the other, each of which waits inside one of the steps until it is interrupted,
# says which when it got there, and ends what it says with its exit code.
WAITING = """
import signal, sys, time
import qkvsearch.learn.builder
from qkvsearch._utils import files
from qkvsearch.store import array_files, workspace as workspace_module
from qkvsearch.cli import main
from qkvsearch.models.implicit_als import AlternatingLeastSquares

# What runs in the background inherits that Ctrl-C is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
place = {
    "fit": AlternatingLeastSquares,
    "save": array_files.np,
    "fsync": files.os,
    "write_catalog": workspace_module,
}

def wait(*args, **kwargs):
    print(name, flush=True)
    time.sleep(60)

for name in sys.argv.pop(1).split(","):
    original = getattr(place[name], name)
    setattr(place[name], name, wait)
    try:
        main()
    except SystemExit as stopped:
        print("==", stopped.code, file=sys.stderr)
    setattr(place[name], name, original)
"""


@pytest.mark.slow
@posix
def test_ctrl_c_during_a_build_exits_130_and_keeps_the_former(
    shop_copy, shop_items, shop_log, surroundings
):
    steps = ["fit", "save", "fsync", "write_catalog"]
    before = build_of(shop_copy)
    shop_items.to_csv("items.csv", index=False)
    shop_log.to_csv("log.csv", index=False)
    files = ("--items", "items.csv", "--interactions", "log.csv")
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, ",".join(steps), "-w", str(shop_copy), "build", *files],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for step in steps:
            assert process.stdout.readline() == f"{step}\n"
            process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    finally:
        process.kill()
    assert "Traceback" not in said
    assert [text.endswith("Stopped.\n") for text in said.split("== 130\n")] == [True] * 4 + [False]
    assert said.endswith("== 130\n")
    assert build_of(shop_copy) == before
    assert Workspace(shop_copy).open().base.folder == before
