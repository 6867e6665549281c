"""What a writer reads, refuses and says: nothing damaged gets a checksum or is lost in silence."""

import errno
import json
import os
from contextlib import suppress

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.engine import Engine, build
from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.learn import add as joining
from qkvsearch.learn import builder
from qkvsearch.store import checksums
from qkvsearch.store.records import database, records_file

ITEMS = pd.DataFrame(
    {"id": list("abcdef"), "title": ["red fox", "blue sea", "green tea", "sea fox", "tea", "fog"]}
)
LOG = pd.DataFrame({"user": list("uuvvww"), "id": list("abbcca"), "rating": [-1.0, 1, 0, 1, 1, 0]})


@pytest.fixture
def engine(tmp_path):
    return build(tmp_path / "shop", items=ITEMS, interactions=LOG, encoder="corpus")


def decay(file):
    """A bit changes, as on a failing disk: the time of the last change stays."""
    before, data = file.stat(), bytearray(file.read_bytes())
    data[-9] ^= 0x40
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def keys(engine):
    segment = engine.snapshot.base
    return next(segment.folder / name for name in segment.files if name.endswith(".keys.npy"))


@pytest.mark.parametrize("change", ["compact", "learn", "add"])
def test_what_is_copied_is_compared_again_whoever_read_it(engine, change):
    engine.remove(["f"])
    engine.search("sea")
    decay(keys(engine))
    writer = qkv.open(engine.workspace.path)
    # An item whose text was read already keeps its key.
    asked = {"add": (ITEMS.iloc[:1],)}.get(change, ())
    with pytest.raises(DamagedError, match="keys"):
        getattr(writer, change)(*asked)
    assert len(engine.builds()) == 2


def test_a_damaged_root_is_said_before_any_work(engine, monkeypatch):
    path = engine.workspace.path
    (path / "root.json").write_text("{}")
    monkeypatch.setattr(builder, "_contents", lambda *_: pytest.fail("it went to work"))
    with pytest.raises(DamagedError, match="root"):
        build(path, items=ITEMS, encoder="corpus")


def test_a_damaged_manifest_makes_the_build_before_current_again(engine):
    path, before = engine.workspace.path, engine.snapshot.name
    engine.remove(["f"])
    (engine.snapshot.segments[-1].folder / "manifest.json").write_text("{}")
    done = qkv.repair(path)
    assert f"and {before} is current again" in done.lost[0]
    with qkv.open(path) as repaired:
        assert (repaired.snapshot.name, repaired.n_items) == (before, 6)


def test_a_lost_root_is_made_of_the_manifests_in_their_order(engine):
    for item in "fedc":
        engine.remove([item])
    path, current = engine.workspace.path, engine.snapshot.name
    (path / "root.json").unlink()
    assert "root.json, from 3 manifests" in qkv.repair(path).rebuilt[0]
    with qkv.open(path) as repaired:
        builds = repaired.builds()
        assert builds[0]["id"] == current == repaired.snapshot.name
        assert [row["items"] for row in builds] == [2, 2, 3]  # one of them before it was merged


def test_who_follows_is_told_of_damage_each_time(engine):
    with qkv.open(engine.workspace.path, follow=True) as follower:
        assert follower.n_items == 6
        engine.remove(["f"])
        (engine.snapshot.segments[-1].folder / "manifest.json").write_text("{}")
        for _ in range(2):
            with pytest.raises(DamagedError, match="manifest"):
                follower.search("sea")


@pytest.mark.parametrize("change", [Engine.rollback, Engine.compact, lambda e: qkv.repair(e)])
def test_a_disk_that_is_full_at_the_root_is_an_error_in_one_line(engine, monkeypatch, change):
    engine.remove(["f"])

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checksums, "write_synced", full)
    is_path = change not in (Engine.rollback, Engine.compact)
    with pytest.raises(WorkspaceError, match="No space left"):
        change(engine.workspace.path if is_path else engine)
    monkeypatch.undo()
    assert engine.info(verify=True)["items"] == 5


# --- records ---


def test_a_rating_of_minus_zero_is_a_whole_record(engine):
    engine.record("u", "a", -0.0)
    assert engine.info(verify=True)["recorded"] == 1
    assert json.dumps(engine.records()[0]["rating"]) == "0.0"


def test_a_clock_that_is_set_back_leaves_the_last_record_the_last(engine, monkeypatch):
    for now, rating in ((2_000_000_000, 1.0), (1_900_000_000, -1.0)):
        monkeypatch.setattr(database.time, "time", lambda now=now: now)
        engine.record("u", "f", rating)
    assert engine.history("u")[0]["rating"] == -1


def test_to_learn_says_which_records_no_log_can_have(engine):
    engine.record("u", "f", 1)
    engine.record("u", "e", 1)
    engine.remove(["f"])
    learned = engine.learn()
    assert learned.recorded == 1
    assert learned.notes == [note for note in learned.notes if "1 recorded" in note] != []


def test_builds_that_a_writer_removes_during_a_check_are_not_damaged(engine, monkeypatch):
    engine.remove(["f"])
    engine.remove(["e"])
    workspace = qkv.open(engine.workspace.path).workspace
    check = workspace.records.check

    def check_while_builds_are_dropped():
        check()
        monkeypatch.undo()
        engine.compact(drop_builds=True)

    monkeypatch.setattr(
        database.RecordsDatabase, "check", lambda self: check_while_builds_are_dropped()
    )
    assert workspace.damaged_files() == []


# --- links out of the workspace ---


@pytest.mark.parametrize(
    "name", ["root.json", "records.json", "builds/…", "builds/…/manifest.json"]
)
def test_a_link_is_not_followed_to_what_is_read(engine, tmp_path, name):
    engine.record("u", "a", 1)
    path = engine.workspace.path / name.replace("…", engine.snapshot.name)
    path.symlink_to(path.rename(tmp_path / "outside"))
    with pytest.raises(DamagedError, match="it is a link"):
        engine.info(verify=True)
    if name != "records.json":  # which this process has read, and it is the same text
        with pytest.raises(DamagedError, match="it is a link"):
            qkv.open(engine.workspace.path)


@pytest.mark.parametrize("name", ["writer.lock", "records.lock", ".root.json-PID"])
def test_nothing_is_written_where_a_link_leads(engine, tmp_path, name):
    outside, link = (
        tmp_path / "outside",
        engine.workspace.path / name.replace("PID", str(os.getpid())),
    )
    outside.write_text("mine")
    link.unlink(missing_ok=True)
    link.symlink_to(outside)
    for change in (lambda: engine.remove(["f"]), lambda: engine.record("u", "a", 1)):
        with suppress(WorkspaceError):
            change()
    assert outside.read_text() == "mine"


def test_text_ids_that_joined_whole_numbers_are_text_before_the_merge_too(tmp_path, monkeypatch):
    numbered = ITEMS.assign(id=range(6))
    engine = build(tmp_path, items=numbered, encoder="corpus")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(joining, "merge_if_many", killed)
        with pytest.raises(KeyboardInterrupt):
            engine.add(pd.DataFrame({"id": ["x"], "title": ["sea"]}))
    with qkv.open(tmp_path) as mixed:
        found = [hit.id for hit in mixed.search("sea")], [row["id"] for row in mixed.items.list()]
        mixed.compact()
        assert ([hit.id for hit in mixed.search("sea")], list("012345x")) == found


def test_what_is_on_disk_is_acknowledged_where_the_disk_is_full_at_the_signature(
    engine, monkeypatch
):
    write = records_file.write_checksummed

    def full(path, content, mode):
        if content["state"] == "clean":
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, content, mode)

    with monkeypatch.context() as patch:
        patch.setattr(records_file, "write_checksummed", full)
        engine.record("u", "f", 1)
    engine.record("u", "e", 1)
    assert len(engine.records()) == 2
    assert engine.info(verify=True)["recorded"] == 2
