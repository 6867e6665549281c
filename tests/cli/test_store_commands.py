"""The commands of the store: who waits, what is asked first, what is undone, forgotten, mended."""

import os
import shlex
import sys
from pathlib import Path
from threading import Event, Thread, Timer

import pytest

from qkvsearch.cli import COMMANDS, group
from qkvsearch.store import locks
from qkvsearch.store.locks import writer_lock
from tests.terminal import on_a_terminal

READERS = {
    "demo", "search", "recommend", "similar", "items", "show", "users", "history", "records",
    "attend", "teach", "evaluate", "info", "builds", "data", "model",
    "encode", "export", "serve", "doctor", "compare", "mcp", "searches", "rules",
}  # fmt: skip


@pytest.fixture
def kettles(tmp_path):
    path = tmp_path / "kettles.csv"
    rows = "".join(f"{number},copper kettle,2020\n" for number in range(60, 75))
    path.write_text(f"id,title,made\n{rows}", encoding="utf-8")
    return path


def ids(qkv):
    return {row["id"] for row in qkv("items", "-k", 100, "--format", "json").json()}


# --- waiting ---


@pytest.fixture
def busy(shop_here):
    """Somebody else builds, until they are told to end."""
    has_it, ends = Event(), Event()

    def build():
        with writer_lock(shop_here, "build"):
            has_it.set()
            ends.wait()

    other = Thread(target=build)
    other.start()
    has_it.wait()
    yield ends
    ends.set()
    other.join()


def test_every_command_that_writes_takes_wait():
    takes = {
        name
        for name in COMMANDS
        if "wait" in {param.name for param in group.get_command(None, name).params}
    }
    assert takes == set(COMMANDS) - READERS


@pytest.mark.parametrize(
    "args",
    [
        "remove 1", "learn", "compact", "rollback", "tune --reset", "forget 300 --yes", "repair",
        "build sample:videos",
    ],
)  # fmt: skip
def test_a_writer_gives_up_when_told_and_names_whom_it_waited_for(qkv, busy, args):
    answer = qkv(*args.split(), "--wait", 0.1)
    assert (answer.code, answer.stdout) == (1, "")
    assert f"build (process {os.getpid()}, since " in answer.stderr
    assert "did not end within 0.1 seconds (--wait)" in answer.stderr


def test_a_writer_waits_its_turn_and_says_so_after_a_moment(qkv, busy, kettles, monkeypatch):
    monkeypatch.setattr(locks, "MOMENT", 0.1)
    Timer(0.4, busy.set).start()
    answer = qkv("add", kettles)
    assert answer.code == 0
    assert f"Waiting for build (process {os.getpid()}, since " in answer.stderr
    assert qkv("add", kettles).stderr.count("Waiting") == 0


def test_readers_and_records_wait_for_nobody(qkv, busy):
    assert qkv("search", "apple").code == 0
    assert qkv("record", "101", "ladder handle", "4", "--wait", "0").code == 1  # no such item
    assert qkv("record", "101", "7", "4", "--wait", "0").code == 0


# --- asking ---


def answered(words, *args):
    """Exit code and stderr of a command on a terminal, on which a person types these words."""
    command = [sys.executable, "-c", "from qkvsearch.cli import main; main()", *map(str, args)]
    return on_a_terminal(command, "stdin", "stderr", typed=words, COLUMNS="200", TERM="dumb")


terminal = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")


@terminal
def test_on_a_terminal_to_remove_many_by_a_condition_is_asked_first(qkv, shop_here, kettles):
    assert qkv("add", kettles).code == 0
    code, said = answered("n\n", "remove", "--where", "made = 2020")
    assert code == 1
    assert "Remove 15 of 25 items? [y/N]" in said
    assert "Among them: copper kettle" in said
    assert "Nothing was changed." in said
    assert len(ids(qkv)) == 25
    code, said = answered("y\n", "remove", "--where", "made = 2020")
    assert (code, "15 removed" in said) == (0, True)
    assert len(ids(qkv)) == 10


@terminal
@pytest.mark.parametrize(
    "args", [["--where", "made = 2009"], ["--where", "made < 2020", "--yes"], ["1", "2"]]
)
def test_few_items_named_ones_and_yes_are_not_asked_about(qkv, shop_here, kettles, args):
    assert qkv("add", kettles).code == 0
    code, said = answered("", "remove", *args)
    assert (code, "?" in said) == (0, False)


def test_without_a_terminal_nothing_is_asked(qkv, shop_here, kettles):
    assert qkv("add", kettles).code == 0
    assert qkv("remove", "--where", "made = 2020").code == 0
    assert len(ids(qkv)) == 10


@terminal
def test_on_a_terminal_to_forget_is_asked_first_and_shows_what_would_go(qkv, shop_here):
    assert qkv("record", "300", "7", "2").code == 0
    code, said = answered("n\n", "forget", "300")
    assert code == 1
    assert "2 interactions, 1 record and 1 previous build would be deleted for good" in said
    assert "Forget 300? [y/N]" in said
    assert qkv("history", "300").code == 0
    assert answered("y\n", "forget", "300")[0] == 0
    assert qkv("history", "300").code == 1


def test_without_a_terminal_to_forget_takes_a_yes(qkv, shop_here):
    answer = qkv("forget", "300")
    assert (answer.code, answer.stdout) == (2, "")
    assert "--yes" in answer.stderr
    assert qkv("history", "300").code == 0


# --- what they do ---


def test_what_was_added_is_undone_and_done_again(qkv, shop_here, kettles):
    assert qkv("add", kettles).code == 0
    (added, built) = qkv("builds", "--format", "json").json()
    assert (added["command"], built["command"]) == ("add", "build")
    answer = qkv("rollback")
    assert f"back to {built['id']}, by build" in answer.stderr
    assert f"To undo that: qkvsearch -w {shop_here} rollback {added['id']}" in answer.stderr
    assert 60 not in ids(qkv)
    assert [line[0] for line in qkv("builds").stdout.splitlines()] == [" ", " ", "*"]
    assert qkv("rollback", added["id"]).code == 0
    assert 60 in ids(qkv)
    answer = qkv("rollback", "1999")
    assert (answer.code, f"there is {built['id']}" in answer.stderr) == (1, True)


def test_compact_merges_and_drops_when_told(qkv, shop_here, kettles):
    assert qkv("add", kettles).code == 0
    before = qkv("search", "kettle", "--explain", "--format", "json").stdout
    assert "2 segments merged; 25 items." in qkv("compact").stderr
    assert qkv("search", "kettle", "--explain", "--format", "json").stdout == before
    assert len(qkv("builds", "--format", "json").json()) == 3
    assert "nothing to merge, 2 previous builds removed" in qkv("compact", "--drop-builds").stderr
    assert len(list(shop_here.glob("builds/*"))) == 1


def test_learn_takes_what_was_recorded_into_the_log(qkv, shop_here):
    assert qkv("record", "new", "7", "5").code == 0
    answer = qkv("learn")
    assert "1 of them recorded since" in answer.stderr
    (record,) = qkv("records", "--format", "json").json()
    assert record["learned"] is True
    assert qkv("recommend", "--user", "new", "--format", "json").json()


def test_who_is_forgotten_is_in_no_file(qkv, shop_here, kettles):
    assert qkv("record", "secretperson", "7", "5").code == 0
    assert qkv("learn").code == 0
    assert qkv("add", kettles).code == 0
    holding = [f for f in shop_here.rglob("*") if f.is_file() and b"secretperson" in f.read_bytes()]
    assert holding
    would = qkv("forget", "secretperson", "--dry-run").stderr
    assert "1 interaction, 1 record and 3 previous builds would be deleted" in would
    answer = qkv("forget", "secretperson", "--yes")
    assert "1 interaction, 1 record and 3 previous builds deleted." in answer.stderr
    assert "until `learn` fits them again" in answer.stderr
    left = [f for f in shop_here.rglob("*") if f.is_file() and b"secretperson" in f.read_bytes()]
    assert left == []
    assert 60 in ids(qkv)
    assert qkv("info", "--verify").code == 0


def test_damage_is_told_mended_and_gone(qkv, shop_here):
    (file,) = shop_here.glob("builds/*/lsa.keys.npy")
    damaged = bytearray(file.read_bytes())
    damaged[-1] ^= 1
    file.write_bytes(damaged)
    answer = qkv("search", "apple")
    assert (answer.code, answer.stdout) == (1, "")
    assert "lsa.keys.npy: damaged: its checksum is not the one that was written" in answer.stderr
    assert "run qkvsearch repair" in answer.stderr
    named = qkv("-w", str(shop_here), "search", "apple")
    assert f"run qkvsearch -w {shlex.quote(str(shop_here))} repair" in named.stderr
    assert qkv("search", "apple", "--heads", "lexical,contrastive").code == 0
    assert qkv("info", "--verify").code == 1
    assert "Made again: lsa" in qkv("repair").stderr
    assert qkv("info", "--verify").code == 0
    assert qkv("search", "apple").code == 0
    assert "nothing is damaged" in qkv("repair").stderr
    next(shop_here.glob("builds/*/interactions.items.npy")).write_bytes(b"")
    assert "Lost: the log of 23 interactions" in qkv("repair").stderr


def test_a_root_that_is_damaged_is_told_and_mended(qkv, shop_here):
    root = shop_here / "root.json"
    root.write_bytes(root.read_bytes().replace(b"builds", b"Builds"))
    answer = qkv("info", "--verify")
    assert (answer.code, "root.json" in answer.stderr) == (1, True)
    assert qkv("search", "apple").code == 1
    assert qkv("repair").code == 0
    assert qkv("search", "apple").code == 0


def test_a_build_that_was_interrupted_leaves_no_workspace_behind(qkv, surroundings):
    assert qkv("build", "sample:videos", "--encoder", "nowhere/model").code == 1
    Path(".qkvsearch").mkdir(exist_ok=True)
    Path(".qkvsearch/writer.lock").touch()
    assert ".qkvsearch: no workspace here" in qkv("items").stderr


def test_a_build_says_that_it_takes_over_no_settings_of_a_damaged_one(qkv, shop_here, shop_items):
    """In the report of the build and in `info`, but no more in those of the build after it."""
    manifest = next((shop_here / "builds").glob("*/manifest.json"))
    manifest.write_bytes(manifest.read_bytes()[:-9])
    shop_items.to_csv("items.csv", index=False)
    build = ["build", "--items", "items.csv", "--encoder", "corpus"]
    said = "ot taken over: settings that tune found, if it did, cannot be read"
    assert f"N{said}" in qkv(*build).stderr
    assert f"n{said}" in qkv("info", "--format", "json").stdout
    assert said not in qkv(*build).stderr
    assert said not in qkv("info", "--format", "json").stdout
