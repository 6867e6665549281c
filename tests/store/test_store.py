"""Publishing: a reader sees the old build or the new one, whatever happens in between."""

import errno
import os
import shutil
import sqlite3
import threading
from contextlib import closing
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pytest

from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.store import CatalogRows, Workspace, root
from qkvsearch.store import workspace as workspace_module
from qkvsearch.store.root import read_root
from qkvsearch.store.segments import AFTER, ORIGIN

NEW = [(1, "New (2020)", 2020, "War", 5.0)]


def folders(workspace):
    return sorted(path.name for path in (workspace.path / "builds").iterdir())


def state(workspace):
    """What a new reader sees: titles, an array, and which builds lie on the disk."""
    snapshot = workspace.open()
    found = snapshot.catalog.names(range(snapshot.facts["n_items"])), snapshot.array("numbers")
    snapshot.close()
    return found[0], found[1].tolist(), folders(workspace)


def segment(workspace, films, make_catalog, tombstones=()):
    """Publish a segment with these films behind the current build."""
    base = workspace.open()
    catalog = make_catalog(films)
    contents = workspace_module.BuildContents(
        CatalogRows.of_segment(catalog, base.catalog),
        facts={**base.facts, "n_items": base.facts["n_items"] + len(films) - len(tombstones)},
        base=base,
        arrays={
            AFTER: base.base.catalog.rows_before(catalog.ids),
            ORIGIN: np.full(len(films), -1),
            "numbers": np.full(len(films), 70.0),
        },
        tombstones=np.union1d(base.tombstones, tombstones),
    )
    return workspace.publish(contents, "add")


def test_what_was_published_is_opened(workspace):
    snapshot = workspace.open()
    assert snapshot.catalog.names([0, 4]) == (
        [4, 100],
        ["Teapot, The (1999)", "L'Été (bleu) (1980)"],
    )
    assert snapshot.catalog.columns == ["id", "title", "year", "genres", "score"]
    assert snapshot.array("words").tolist() == ["a", "żó"]
    assert "words" in snapshot
    assert "other" not in snapshot
    assert snapshot.damaged() == []


def test_a_segment_adds_its_items_and_rows_in_the_order_of_ids(workspace, make_catalog):
    segment(
        workspace, [(5, "Five", 1999, "War", 1.0), (200, "Last", None, None, 2.0)], make_catalog
    )
    segment(workspace, [(6, "Six", 2000, None, 1.0)], make_catalog, tombstones=[1, 6])
    snapshot = workspace.open()
    assert snapshot.catalog.names(range(6))[0] == [4, 5, 6, 8, 30, 100]
    assert snapshot.rows.stored.tolist() == [0, 5, 7, 2, 3, 4]
    assert snapshot.rows.origin.tolist() == [0, -1, -1, 2, 3, 4]
    assert snapshot.base.n_rows == 5
    assert [s.n_rows for s in snapshot.segments] == [5, 2, 1]
    assert snapshot.damaged() == []


def test_a_reader_keeps_its_build_when_a_new_one_is_published(workspace, make_contents):
    old = workspace.open()
    workspace.publish(make_contents(NEW, ("99",), numbers=np.zeros(1)), "build")
    assert old.catalog.names([0])[0] == [4]
    assert old.catalog.users.position(12) == 1
    assert old.catalog.conditions.mask("year < 1960").tolist() == [False, True, False, False, False]
    assert old.array("numbers").tolist() == [0, 1, 2, 3, 4]
    new = workspace.open()
    assert new.catalog.names([0]) == ([1], ["New (2020)"])
    assert new.catalog.users.position(12) is None


def test_the_builds_of_two_bases_stay_and_those_that_readers_hold(workspace, make_contents):
    names = [workspace.builds()[0].name]
    held = workspace.open()
    for _ in range(3):
        names.append(workspace.publish(make_contents(NEW, numbers=np.zeros(1)), "build").name)
    assert [build.name for build in workspace.builds()] == names[2:]
    assert folders(workspace) == sorted([names[0], *names[2:]])
    assert held.array("numbers").tolist() == [0, 1, 2, 3, 4]
    held.close()
    names.append(workspace.publish(make_contents(NEW, numbers=np.zeros(1)), "build").name)
    assert folders(workspace) == sorted(names[3:])


def test_at_most_so_many_builds_stay(workspace, make_catalog, monkeypatch):
    monkeypatch.setattr(workspace_module, "MAX_BUILDS", 3)
    base = workspace.builds()[0].name
    for id_ in range(200, 206):
        segment(workspace, [(id_, "x", None, None, None)], make_catalog)
    assert len(workspace.builds()) == 3
    assert base in folders(workspace), "the base of those that stay"
    assert len(folders(workspace)) == 7, "each stands on those before it"
    assert workspace.open().catalog.names([5, 10])[0] == [200, 205]


def test_what_an_interrupted_writer_left_goes_and_what_is_not_ours_stays(workspace, make_contents):
    builds = workspace.path / "builds"
    (builds / "20200101-000000-abcdef").mkdir()
    (builds / "release-1.0").mkdir()
    (workspace.path / ".root.json-123").write_text("half")
    workspace.publish(make_contents(), "build")
    assert not (builds / "20200101-000000-abcdef").exists()
    assert (builds / "release-1.0").exists()
    assert not (workspace.path / ".root.json-123").exists()


@pytest.fixture
def draws(monkeypatch):
    """Within one second, the random parts of the names of builds are those that are listed here."""
    drawn = []

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    monkeypatch.setattr(workspace_module, "datetime", Clock)
    monkeypatch.setattr(workspace_module.uuid, "uuid4", lambda: SimpleNamespace(hex=drawn.pop(0)))
    return drawn


def test_a_build_whose_name_is_taken_gets_another_one(tmp_path, make_contents, make_catalog, draws):
    workspace = Workspace(tmp_path / "ws")
    draws += ["aaaaaa", "bbbbbb"]
    workspace.publish(make_contents(), "build")
    segment(workspace, NEW, make_catalog)
    workspace.drop_builds()
    draws += ["aaaaaa", "bbbbbb", "cccccc"]
    segment(workspace, [(2, "Newer (2021)", 2021, "War", 5.0)], make_catalog)
    assert [name[-6:] for name in folders(workspace)] == ["aaaaaa", "bbbbbb", "cccccc"]
    with closing(workspace.open()) as snapshot:
        assert not list(snapshot.damaged())
        assert snapshot.facts["n_items"] == 7


def test_a_build_that_fails_removes_no_folder_of_others(
    tmp_path, make_contents, draws, monkeypatch
):
    """Not even one that was there at the last moment."""

    def full(*args):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(workspace_module, "write_root", full)
    workspace = Workspace(tmp_path / "ws")
    (workspace.path / "builds" / "20260102-030405-aaaaaa").mkdir(parents=True)
    draws += ["aaaaaa"] * workspace_module.ATTEMPTS
    with pytest.raises(WorkspaceError, match="all names are taken"):
        workspace.publish(make_contents(), "build")
    draws += ["aaaaaa", "bbbbbb"]
    with pytest.raises(WorkspaceError, match="no space left"):
        workspace.publish(make_contents(), "build")
    assert [name[-6:] for name in folders(workspace)] == ["aaaaaa"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("is_there", [False, True])
def test_nobody_else_can_read_builds(tmp_path, make_contents, is_there):
    path = tmp_path / "ws"
    if is_there:
        path.mkdir(0o755)
    Workspace(path).publish(make_contents(), "build")
    private = path / "builds" if is_there else path
    assert private.stat().st_mode & 0o777 == 0o700


def test_a_folder_without_builds_has_none_to_return_to(tmp_path):
    for change in (Workspace(tmp_path).rollback, Workspace(tmp_path).drop_builds):
        with pytest.raises(WorkspaceError, match="no workspace here"):
            change()


def test_rollback_goes_back_a_build_at_a_time_and_forward_by_name(workspace, make_catalog):
    first = state(workspace)[:2]
    segment(workspace, [(5, "Five", 1999, "War", 1.0)], make_catalog)
    segment(workspace, [(6, "Six", 1999, "War", 1.0)], make_catalog)
    names = [build.name for build in workspace.builds()]
    assert workspace.rollback().name == names[1]
    assert workspace.rollback().name == names[0]
    assert state(workspace)[:2] == first
    with pytest.raises(WorkspaceError, match=f"no build before the current.*{names[1]}"):
        workspace.rollback()
    with pytest.raises(WorkspaceError, match="no build 'x'"):
        workspace.rollback("x")
    workspace.rollback(names[2])
    assert workspace.open().facts["n_items"] == 7
    assert [build.name for build in workspace.builds()] == names


def test_the_build_that_a_rollback_returned_to_stays_behind_the_next_one(tmp_path, make_contents):
    workspace = Workspace(tmp_path / "ws")
    good = workspace.publish(make_contents(), "build").name
    bad = workspace.publish(make_contents(), "build").name
    workspace.rollback()
    assert workspace.previous_build(good) == bad
    workspace.publish(make_contents(), "build")
    assert workspace.rollback().name == good
    assert workspace.builds()[0].name == good


def test_a_rollback_to_a_damaged_build_is_refused(workspace, make_contents):
    former = workspace.open().base.folder
    workspace.publish(make_contents(NEW, numbers=np.zeros(1)), "build")
    now = state(workspace)
    data = bytearray((former / "numbers.npy").read_bytes())
    data[-1] ^= 1
    (former / "numbers.npy").write_bytes(data)
    with pytest.raises(DamagedError, match=r"numbers\.npy"):
        workspace.rollback()
    assert state(workspace) == now


def test_a_manifest_of_another_build_is_found(workspace, make_contents):
    first = workspace.open().base.folder / "manifest.json"
    workspace.publish(make_contents(NEW, numbers=np.zeros(1)), "build")
    shutil.copy(first, workspace.open().base.folder / "manifest.json")
    with pytest.raises(DamagedError, match="belongs here"):
        workspace.open()


def test_names_that_lead_out_of_the_workspace_are_refused_though_their_checksum_fits(workspace):
    from qkvsearch.store.checksums import read_checksummed, write_checksummed

    found = read_root(workspace.path)
    for name in ("../../etc", "/etc", "20200101-000000-abcdef/../.."):
        bad = root.BuildEntry(**{**found.builds[0].__dict__, "name": name})
        root.write_root(workspace.path, root.Root([bad], name))
        with pytest.raises(DamagedError, match=r"root\.json"):
            workspace.open()
    root.write_root(workspace.path, found)
    manifest = workspace.open().base.folder / "manifest.json"
    sound = read_checksummed(manifest)
    files = {**sound["files"], "../../../secret.npy": {"bytes": 1, "xxh3": "0"}}
    for content in ({**sound, "files": files}, {**sound, "below": [["../../other", "0"]]}):
        checksum = write_checksummed(manifest, content)
        bad = root.BuildEntry(**{**found.builds[0].__dict__, "manifest": checksum})
        root.write_root(workspace.path, root.Root([bad], bad.name))
        with pytest.raises(DamagedError, match="not a manifest"):
            workspace.open()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EFBIG, None])
def test_a_full_disk_keeps_the_former_build(workspace, make_contents, monkeypatch, error):
    before = state(workspace)

    def full(*_, **__):
        raise (
            OSError(error, "No space left on device")
            if error
            else OSError("10 requested, 5 written")
        )

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(WorkspaceError, match="is the disk full"):
        workspace.publish(make_contents(NEW), "build")
    monkeypatch.undo()
    assert state(workspace) == before


@pytest.mark.parametrize("function", ["write_checksummed", "write_catalog", "write_root"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, sqlite3.OperationalError, OSError])
def test_an_interruption_at_any_file_keeps_the_former_build(
    workspace, make_contents, monkeypatch, function, error
):
    before = state(workspace)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(workspace_module, function, fail)
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else WorkspaceError):
        workspace.publish(make_contents(NEW), "build")
    monkeypatch.undo()
    assert state(workspace) == before


def test_a_build_that_became_current_stays_whatever_fails_after(
    workspace, make_contents, monkeypatch
):
    def interrupted(*args):
        root.write_root(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(workspace_module, "write_root", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workspace.publish(make_contents(NEW, numbers=np.zeros(1)), "build")
    monkeypatch.undo()
    assert state(workspace)[0] == ([1], ["New (2020)"])


def test_two_writers_take_turns_and_none_is_lost(workspace, make_catalog):
    """Each reads the current build under the lock and adds to it."""

    def add(first):
        for id_ in range(first, first + 4):
            with Workspace(workspace.path).writing("add"):
                segment(workspace, [(id_, f"t{id_}", None, None, None)], make_catalog)

    threads = [threading.Thread(target=add, args=(first,)) for first in (200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = workspace.open().catalog.names(range(5, 13))[0]
    assert ids == [*range(200, 204), *range(300, 304)]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_to_is_named(workspace, make_contents):
    workspace.path.chmod(0o500)
    try:
        with pytest.raises(WorkspaceError, match=str(workspace.path)):
            workspace.publish(make_contents(NEW), "build")
        assert workspace.open().facts["n_items"] == 5
    finally:
        workspace.path.chmod(0o700)
