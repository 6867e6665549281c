"""`records.db`: every byte answers for itself, and what was acknowledged stays."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from qkvsearch.errors import BusyError, DamagedError, QkvError, WorkspaceError
from qkvsearch.store import locks
from qkvsearch.store.checksums import read_checksummed
from qkvsearch.store.records import (
    NewRecord,
    Origin,
    Record,
    RecordsDatabase,
    committed,
    database,
    records_file,
)
from qkvsearch.store.records.record_rows import RECORD, is_item, is_user
from qkvsearch.store.records.recovery import repair_records

posix = pytest.mark.skipif(os.name != "posix", reason="a process is forked and killed")


def fresh(path):
    """As another process would open it, which has checked nothing yet."""
    return RecordsDatabase(path)


def forget(path, user, *, fold):
    """Forget a user in the two steps of `forget`, and return how many records there were."""
    with fresh(path).forgetting(user, fold=fold) as (n_records, last):
        pass
    fresh(path).forget(user, fold=fold, last=last)
    return n_records


def rows(path, user=None):
    where = "" if user is None else f"WHERE user = '{user}'"
    return fresh(path).rows(f"SELECT {RECORD} FROM recorded {where} ORDER BY number")


def items(path):
    return [row[2] for row in rows(path)]


ME = Origin("local:me")


def write(path, names, user="ann", origin=ME):
    return fresh(path).append([NewRecord(user, name, 4, None, 7) for name in names], origin)


@pytest.fixture
def path(tmp_path):
    """With three batches, of which the last has an id that goes on in other pages."""
    write(tmp_path, ["a", "b"])
    write(tmp_path, ["c"], "Ann")
    write(tmp_path, ["d", "é" * 9000, "f"], "bob")
    return tmp_path


def files(path):
    return {each.name: each.read_bytes() for each in path.iterdir()}


@posix
def test_nobody_else_can_read_records_unless_the_owner_allows_it(path):
    files = sorted(path.glob("records.*"))
    assert [file.name for file in files] == ["records.db", "records.json", "records.lock"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    with fresh(path).writing("look at the journal") as db:
        db.execute("DELETE FROM recorded WHERE number = 1")
        assert (path / "records.db-journal").stat().st_mode & 0o777 == 0o600
        db.execute("ROLLBACK")
        db.execute("BEGIN")
    for file in files:
        file.chmod(0o660)
    write(path, ["g"])
    assert {file.stat().st_mode & 0o777 for file in files} == {0o660}


def test_numbers_are_never_given_twice(path):
    assert [row[0] for row in rows(path)] == [1, 2, 3, 4, 5, 6]
    assert [row[6] for row in rows(path)] == [1, 1, 3, 4, 4, 4]
    assert [record.item[:1] for record in fresh(path).undo()] == ["d", "é", "f"]
    assert [record.number for record in write(path, ["g"])] == [7]
    assert items(path) == ["a", "b", "c", "g"]


@pytest.mark.parametrize(
    ("client", "batch", "undone"),
    [
        ("local:me", None, ["d"]),
        ("http", None, ["c"]),
        ("local:you", None, []),
        ("http", 1, []),
        ("http", 3, ["c"]),
        (None, 1, ["a", "b"]),
        (None, 2, []),
        (None, 9, []),
    ],
)
def test_a_client_undoes_its_last_batch_and_the_owner_any(tmp_path, client, batch, undone):
    write(tmp_path, ["a", "b"])
    write(tmp_path, ["c"], origin=Origin("http"))
    write(tmp_path, ["d"])
    records = fresh(tmp_path).undo(client=client, batch=batch)
    assert [record.item for record in records] == undone
    assert sorted([*items(tmp_path), *undone]) == ["a", "b", "c", "d"]
    assert fresh(tmp_path).undo(batch=batch or records[0].batch if records else 2) == []


def test_a_content_is_recorded_once_until_it_is_gone(tmp_path):
    content = Origin("local:me", "hash", file="may.csv")
    write(tmp_path, ["a", "b"], origin=content)
    with pytest.raises(QkvError, match=r"may.csv: the same content .* batch 1 on 20.*`again`"):
        write(tmp_path, ["a", "b"], origin=content)
    repair_records(fresh(tmp_path))
    with pytest.raises(QkvError, match="batch 1"):
        write(tmp_path, ["a", "b"], origin=content._replace(client="http"))
    write(tmp_path, ["x"], "bob", content._replace(again=True))
    fresh(tmp_path).undo()
    forget(tmp_path, "ann", fold=False)
    assert b"hash" not in (tmp_path / "records.db").read_bytes()
    write(tmp_path, ["a", "b"], origin=content)


def test_what_was_undone_is_in_no_file(path):
    assert "é".encode() in (path / "records.db").read_bytes()
    fresh(path).undo()
    assert "é".encode() not in (path / "records.db").read_bytes()


def test_what_a_build_has_learned_from_is_not_undone(path):
    with pytest.raises(QkvError, match=r"learned from .* rollback"):
        fresh(path).undo(learned=6)
    assert len(rows(path)) == 6
    assert len(fresh(path).undo(learned=3)) == 3
    with pytest.raises(QkvError, match="rollback"):
        fresh(path).undo(learned=3)


def test_a_record_without_a_time_is_after_the_log(tmp_path):
    late = 4_000_000_000
    (one,) = fresh(tmp_path).append([NewRecord("u", "a")], ME, after=5)
    (two,) = fresh(tmp_path).append([NewRecord("u", "a")], ME, after=late)
    (three,) = fresh(tmp_path).append([NewRecord("u", "a")], ME, after=5)
    assert abs(one.time - time.time()) < 60
    assert two.time == three.time == late + 1  # the last one recorded is the last one


def test_where_nothing_was_recorded_nothing_is_made_by_reading(tmp_path):
    assert rows(tmp_path) == []
    fresh(tmp_path).check()
    assert list(tmp_path.iterdir()) == []
    assert repair_records(fresh(tmp_path)).changed is False
    assert fresh(tmp_path).undo() == []


@pytest.mark.parametrize(("condition", "index"), [(is_user, "user"), (is_item, "item")])
def test_records_of_a_user_and_of_an_item_are_found_by_an_index(path, condition, index):
    for fold in (True, False):
        where = f"{condition(fold)} AND number > 2 AND number <= 5"
        plan = fresh(path).rows(f"EXPLAIN QUERY PLAN SELECT * FROM recorded WHERE {where}", "x")
        assert f"USING INDEX recorded_{index}" in plan[0][-1]


def test_damage_of_an_index_alone_loses_no_record(tmp_path):
    write(tmp_path, [f"item {n}" for n in range(2000)])
    expected, whole = rows(tmp_path), (tmp_path / "records.db").read_bytes()
    row = whole.index(b"annitem 777")
    places = [place for place in range(len(whole)) if whole.startswith(b"item 777", place)]
    (in_index,) = (place for place in places if not row <= place < row + 30)
    flip(tmp_path / "records.db", in_index + 5)
    done = repair_records(fresh(tmp_path))
    assert (done.kept, done.lost) == (2000, 0)
    assert rows(tmp_path) == expected


def test_a_reader_sees_each_change_and_keeps_nobody_waiting(path):
    reader, count = fresh(path), "SELECT count(*) FROM recorded"
    assert reader.rows(count) == [(6,)]
    write(path, ["g"])
    assert reader.rows(count) == [(7,)]
    fresh(path).undo()
    assert reader.rows(count) == [(6,)]


@pytest.mark.parametrize("n_changes", [2, committed.ATTEMPTS])
def test_a_reader_reads_again_while_the_files_change_but_not_for_ever(path, monkeypatch, n_changes):
    reader, seen = fresh(path), []

    def changing(_):
        if len(seen) < n_changes:
            os.utime(path / "records.db", (0, len(seen)))
            seen.append(1)
            raise DamagedError(path, "is being written")

    monkeypatch.setattr(committed.CommittedRecords, "require_entry", lambda *a: changing(a))
    monkeypatch.setattr(committed, "PAUSE", 0.001)
    assert len(reader.rows("SELECT * FROM recorded")) == 6


def test_a_reader_that_always_meets_a_writer_says_so(path, monkeypatch):
    reader, number = fresh(path), iter(range(10**6))
    monkeypatch.setattr(reader._committed, "version", lambda: (next(number),))
    monkeypatch.setattr(committed, "PAUSE", 0.001)
    monkeypatch.setattr(committed, "PATIENCE", 0.1)
    with fresh(path).alone("write"), pytest.raises(BusyError, match="try again"):
        reader.rows("SELECT * FROM recorded")


# --- a writer that is at work, for as long as it takes ---


def spill(db):
    """Have SQLite write to the file before it commits."""
    db.execute("PRAGMA cache_size = 1")
    old = db.execute(f"SELECT {RECORD} FROM recorded WHERE number <= 2").fetchall()
    database.delete(db, [Record(*row) for row in old])
    new = [NewRecord("ann", f"n{number}", 4.0, None, 7) for number in range(400)]
    database.insert(db, [Record(7 + n, *row, 7, 7, "c", None) for n, row in enumerate(new)])


def work(path, step, stop):
    """Delete 2 records and write 400, and stop at a step: with the lock, before or in the
    transaction, or when it is committed and not yet signed.
    """
    records = fresh(path)
    with records.alone("record"):
        if step == "locked":
            stop()
        previous = records.require_sound()
        records.write_state("writing", previous)
        if step == "announced":
            stop()
        with closing(records.connect(records.path)) as db:
            db.execute("BEGIN IMMEDIATE")
            spill(db)
            if step == "spilled":
                stop()
            db.execute("COMMIT")
        if step == "committed":
            stop()
        records.mark_clean()


STEPS = pytest.mark.parametrize("step", ["locked", "announced", "spilled", "committed"])


@posix
@STEPS
def test_readers_answer_while_a_writer_is_suspended_at_any_step(path, step, monkeypatch):
    monkeypatch.setattr(committed, "GRACE", 0.02)
    before, whole = rows(path), (path / "records.db").read_bytes()
    reader = fresh(path)
    assert reader.rows(f"SELECT {RECORD} FROM recorded ORDER BY number") == before
    child = os.fork()
    if not child:
        work(path, step, lambda: os.kill(os.getpid(), signal.SIGSTOP))
        os._exit(0)
    try:
        assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
        assert ((path / "records.db").read_bytes() == whole) == (step in ("locked", "announced"))
        n_expected = 404 if step == "committed" else 6
        for records in (reader, fresh(path)):
            for _ in range(2):
                found = records.rows(f"SELECT {RECORD} FROM recorded ORDER BY number")
                assert len(found) == n_expected
                assert found[:4] == (before[2:] if step == "committed" else before[:4])
            records.check()
        with pytest.raises(BusyError, match=rf"record \(process {child}.* 0.1 seconds"):
            RecordsDatabase(path, wait=0.1).append([NewRecord("eve", "z")], ME)
    finally:
        os.kill(child, signal.SIGCONT)
    assert os.waitpid(child, 0)[1] == 0
    assert len(reader.rows("SELECT * FROM recorded")) == 404


@STEPS
def test_readers_of_the_same_process_do_not_wait_for_a_writer(path, step):
    reached, go_on = threading.Event(), threading.Event()

    def stop():
        reached.set()
        go_on.wait(timeout=60)

    writer = threading.Thread(target=work, args=(path, step, stop))
    writer.start()
    try:
        assert reached.wait(timeout=60)
        shared = RecordsDatabase.of(path)
        assert len(shared.rows("SELECT * FROM recorded")) == (404 if step == "committed" else 6)
    finally:
        go_on.set()
        writer.join()
    assert len(shared.rows("SELECT * FROM recorded")) == 404


def test_what_a_writer_gave_up_is_not_read(path, monkeypatch):
    before, reached, go_on = rows(path), threading.Event(), threading.Event()
    copyfile = committed.shutil.copyfile

    def give_up():
        reached.set()
        go_on.wait(timeout=60)
        raise WorkspaceError("the disk is full")

    def write():
        with pytest.raises(WorkspaceError, match="disk is full"):
            work(path, "spilled", give_up)
        fresh(path).require_sound()

    def copy_and_let_go(source, target):
        if source.name == "records.db-journal" and not go_on.is_set():
            go_on.set()
            writer.join(timeout=60)
        copyfile(source, target)

    monkeypatch.setattr(committed.shutil, "copyfile", copy_and_let_go)
    writer = threading.Thread(target=write)
    writer.start()
    assert reached.wait(timeout=60)
    assert rows(path) == before
    assert go_on.is_set()


def test_each_writer_of_a_process_has_its_own_patience_and_its_own_messages(path, monkeypatch):
    monkeypatch.setattr(locks, "MOMENT", 0.05)
    said_patient, said_hasty = [], []
    has_said = threading.Event()

    def say(message):
        said_patient.append(message)
        has_said.set()

    patient = RecordsDatabase.of(path, None, say)
    hasty = RecordsDatabase.of(path, 0.1, said_hasty.append)
    done = []
    with fresh(path).alone("learn"):
        thread = threading.Thread(
            target=lambda: done.extend(patient.append([NewRecord("eve", "z")], ME))
        )
        thread.start()
        with pytest.raises(BusyError, match=r"learn \(process"):
            hasty.append([NewRecord("eve", "y")], ME)
        assert has_said.wait(timeout=60)
        assert not done
    thread.join(timeout=60)
    assert [record.item for record in done] == ["z"]
    assert [len(said_patient), len(said_hasty)] == [1, 1]
    assert "learn (process" in said_hasty[0]


def test_a_writer_has_patience_with_other_programs_and_says_so(path, monkeypatch):
    """A backup or a shell of SQLite does not know `records.lock`."""
    monkeypatch.setattr(database, "BEFORE_A_MESSAGE", 0.05)
    said = []
    before = rows(path)
    with closing(sqlite3.connect(path / "records.db", isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM recorded").fetchone()
        with pytest.raises(BusyError, match="another program"):
            RecordsDatabase(path, 0.2, said.append).append([NewRecord("eve", "z")], ME)
        assert len(said) == 1
        assert rows(path) == before
    RecordsDatabase(path, 0.2, said.append).append([NewRecord("eve", "z")], ME)
    assert len(rows(path)) == len(before) + 1


# --- damage ---


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 8
    path.write_bytes(data)


def damaged_places(data, n, seed=0):
    found = {*range(0, 120, 7), *random.Random(seed).sample(range(len(data)), n)}
    return sorted(place for place in found if place < len(data))


def assert_refused(path, match, *more):
    """Neither read nor written nor checked, and by nobody who has opened it before: `more`."""
    for ask in (lambda: rows(path), lambda: write(path, ["g"]), fresh(path).check, *more):
        with pytest.raises(DamagedError, match=match) as caught:
            ask()
    return caught.value.file


FILES = pytest.mark.parametrize("name", ["records.db", "records.json"])


@FILES
def test_every_damaged_byte_is_found_whoever_asks(path, name):
    whole = (path / name).read_bytes()
    for place in damaged_places(whole, 40 if name == "records.db" else 90):
        flip(path / name, place)
        before = files(path)
        assert assert_refused(path, "repair") == path / name
        assert files(path) == before
        (path / name).write_bytes(whole)
    assert len(rows(path)) == 6


@FILES
@pytest.mark.parametrize("share", [None, 0, 0.01, 0.5])
def test_a_file_that_is_missing_or_cut_is_damaged(path, name, share):
    whole = (path / name).read_bytes()
    (path / name).unlink()
    if share is not None:
        (path / name).write_bytes(whole[: int(share * len(whole))])
    assert_refused(path, "records")


@FILES
def test_a_folder_in_place_of_a_file_is_damaged(path, name):
    reader = fresh(path)
    assert reader.rows("SELECT count(*) FROM recorded") == [(6,)]
    (path / name).unlink()
    (path / name).mkdir()
    assert_refused(path, "a folder or a pipe", reader.check)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="without named pipes")
def test_a_pipe_in_place_of_a_file_is_damaged(path):
    for file in [*path.glob("records.json"), *path.glob("records.lock")]:
        file.unlink()
        os.mkfifo(file)
        with pytest.raises(DamagedError, match="a folder or a pipe"):
            rows(path)


def test_a_process_that_has_checked_a_file_finds_what_is_damaged_later(path):
    reader = fresh(path)
    assert reader.rows("SELECT count(*) FROM recorded") == [(6,)]
    flip(path / "records.db", -5000)
    with pytest.raises(DamagedError):
        reader.rows("SELECT count(*) FROM recorded")


def test_tables_of_somebody_else_are_not_read(path):
    with closing(sqlite3.connect(path / "records.db")) as db:
        db.execute("CREATE TRIGGER t AFTER INSERT ON recorded BEGIN DELETE FROM recorded; END")
    fresh(path).mark_clean()
    assert_refused(path, "not those of records")


def test_a_link_out_of_the_workspace_is_not_followed(path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "records.db"
    (path / "records.db").rename(outside)
    (path / "records.db").symlink_to(outside)
    before = outside.read_bytes()
    assert_refused(path, "a link")
    assert repair_records(fresh(path)).kept == 0
    assert outside.read_bytes() == before
    assert len(write(path, ["g"])) == 1


# --- killed writers ---


def kill_in(path, step, rows):
    """A writer that is killed: "clean" before its transaction, "spilled" in it, when pages have
    gone to the file, "committed" after it.
    """
    child = os.fork()
    if not child:
        die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
        if step == "clean":
            database.create = die
        if step == "committed":
            RecordsDatabase.mark_clean = die
        if step == "spilled":
            insert = database.insert
            database.insert = lambda db, rows: (insert(db, rows), die())
        write(path, [f"n{n}" for n in range(rows)])
        os._exit(3)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@posix
@pytest.mark.parametrize(
    ("step", "rows_written"),
    [
        ("clean", 2),
        pytest.param("spilled", 40_000, marks=pytest.mark.slow),
        ("committed", 2),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_killed_writer_leaves_all_or_nothing(tmp_path, step, rows_written, first):
    expected = [] if first else write(tmp_path, ["a", "b"])
    expected = [record.item for record in expected]
    kill_in(tmp_path, step, rows_written)
    assert read_checksummed(tmp_path / "records.json")["state"] == "writing"
    if step != "clean":
        assert (tmp_path / "records.db-journal").exists() == (step == "spilled")
    if step == "committed":
        expected += ["n0", "n1"]
    before = files(tmp_path)
    reader = fresh(tmp_path)
    for _ in range(2):
        assert [item for (item,) in reader.rows("SELECT item FROM recorded")] == expected
    assert files(tmp_path) == before, "a reader wrote"
    write(tmp_path, ["z"])
    assert items(tmp_path) == [*expected, "z"]
    assert [item for (item,) in reader.rows("SELECT item FROM recorded")] == [*expected, "z"]
    assert read_checksummed(tmp_path / "records.json")["state"] == "clean"


@posix
def test_damage_after_a_killed_writer_is_found_row_by_row(path):
    kill_in(path, "committed", 2)
    expected, whole, found = rows(path), (path / "records.db").read_bytes(), 0
    for place in damaged_places(whole, 150):
        (path / "records.db").write_bytes(whole)
        flip(path / "records.db", place)
        try:
            assert rows(path) == expected  # where nothing is kept, or SQLite's own counters
        except DamagedError:
            found += 1
    assert found > 50


def test_a_writer_that_fails_leaves_what_was_clean(path, monkeypatch):
    before = files(path)

    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(database, "insert", full)
        with pytest.raises(WorkspaceError, match=r"records\.db: cannot record: database or disk"):
            write(path, ["g"])
    assert files(path) == before
    with monkeypatch.context() as patch:
        patch.setattr(
            records_file, "write_checksummed", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
        )
        with pytest.raises(WorkspaceError, match="cannot record"):
            write(path, ["g"])
    assert files(path) == before
    assert len(write(path, ["g"])) == 1


# --- repair ---


def test_repair_signs_what_is_whole(path):
    flip(path / "records.json", 30)
    done = repair_records(fresh(path))
    assert (done.kept, done.lost, done.changed) == (6, 0, True)
    assert "6 records, none lost; checksum written again" in str(done)
    assert len(rows(path)) == 6
    assert repair_records(fresh(path)).changed is False


@pytest.mark.parametrize("is_there", [True, False])
def test_a_file_that_is_gone_or_that_sqlite_cannot_open_is_lost_and_that_is_said(path, is_there):
    flip(path / "records.db", 3) if is_there else (path / "records.db").unlink()
    done = repair_records(fresh(path))
    assert (done.kept, done.lost) == (0, None)
    assert str(done) == "an unknown number of records of records.db; 0 records kept"
    assert rows(path) == []
    assert len(write(path, ["g"])) == 1


def test_the_rows_on_both_sides_of_a_damaged_page_are_kept(tmp_path):
    write(tmp_path, [f"item {n}" for n in range(2000)])
    expected, whole = rows(tmp_path), (tmp_path / "records.db").read_bytes()
    page = whole.index(b"item 777") // 4096 * 4096
    (tmp_path / "records.db").write_bytes(whole[:page] + bytes(4096) + whole[page + 4096 :])
    done = repair_records(fresh(tmp_path))
    kept = rows(tmp_path)
    assert (len(kept), done.lost) == (done.kept, 2000 - done.kept)
    assert 0 < done.lost < 150
    assert str(done) == f"{done.lost} records of records.db; {done.kept:,} records kept"
    assert kept == [row for row in expected if row in kept]
    assert {kept[0][2], kept[-1][2]} == {"item 0", "item 1999"}


def test_repair_counts_what_is_lost_and_keeps_the_rest(tmp_path):
    write(tmp_path, [f"item {n}" for n in range(2000)])
    fresh(tmp_path).undo() and write(tmp_path, [f"item {n}" for n in range(2000)])
    write(tmp_path, ["undone"]) and fresh(tmp_path).undo()
    expected, whole = rows(tmp_path), (tmp_path / "records.db").read_bytes()
    flip(tmp_path / "records.db", whole.index(b"annitem 777") + 8)  # in the row, not in an index
    done = repair_records(fresh(tmp_path))
    assert (done.kept, done.lost) == (1999, 1)
    assert rows(tmp_path) == [row for row in expected if row[2] != "item 777"]
    assert [record.number for record in write(tmp_path, ["g"])] == [4002]


@pytest.mark.parametrize("seed", range(12))
def test_repair_keeps_what_is_whole_wherever_the_damage_is(path, seed):
    chance, expected = random.Random(seed), rows(path)
    size = (path / "records.db").stat().st_size
    for _ in range(chance.randint(1, 40)):
        flip(path / "records.db", chance.randrange(size))
    done = repair_records(fresh(path))
    assert done.lost in (6 - done.kept, None)
    assert set(rows(path)) <= set(expected)
    assert len(rows(path)) == done.kept
    assert write(path, ["g"])[0].number > max([0, *(row[0] for row in rows(path)[:-1])])


@posix
@pytest.mark.parametrize("step", [pytest.param("spilled", marks=pytest.mark.slow), "committed"])
def test_repair_ends_what_a_killed_writer_began(path, step):
    kill_in(path, step, 40_000)
    n = 6 if step == "spilled" else 40_006
    done = repair_records(fresh(path))
    assert (done.kept, done.lost, done.changed) == (n, 0, True)
    assert read_checksummed(path / "records.json")["state"] == "clean"
    assert not (path / "records.db-journal").exists()
    assert len(rows(path)) == n


@posix
def test_a_journal_that_restores_damage_is_not_played_into_what_was_repaired(path):
    expected = rows(path)
    kill_in(path, "spilled", 40_000)
    journal = path / "records.db-journal"
    flip(journal, journal.read_bytes().index("bobé".encode()) + 23)  # in the row, not in an index
    with pytest.raises(DamagedError):
        rows(path)
    done = repair_records(fresh(path))
    assert (done.kept, done.lost) == (5, 1)
    assert not journal.exists()
    assert rows(path) == [row for row in expected if row[0] != 5]


# --- forget ---


@pytest.mark.parametrize("fold", [True, False])
def test_what_is_forgotten_is_in_no_file(tmp_path, fold):
    users = random.Random(0).choices(["Zaphod-77", "zaphod-77", "bob", "eve"], k=300)
    for n, user in enumerate(users):
        write(tmp_path, [f"i{n}"], user)
    others = [row for row in rows(tmp_path) if row[1] in ("bob", "eve")]
    gone = {"Zaphod-77", "zaphod-77"} if fold else {"Zaphod-77"}
    n_gone = sum(row[1] in gone for row in rows(tmp_path))
    assert forget(tmp_path, "Zaphod-77", fold=fold) == n_gone
    content = b"".join(files(tmp_path).values())
    assert b"Zaphod-77" not in content
    assert (b"zaphod-77" not in content) == fold
    assert [row for row in rows(tmp_path) if row[1] in ("bob", "eve")] == others
    assert fresh(tmp_path).rows("PRAGMA freelist_count") == [(0,)]
    fresh(tmp_path).check()


# --- together ---

RECORDER = """
import sys
from pathlib import Path
from qkvsearch.store.records import NewRecord, Origin, RecordsDatabase

database = RecordsDatabase.of(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    new = NewRecord(sys.argv[2], str(number))
    database.append([new, new], Origin("local:me"))
    print(number, flush=True)
"""


def test_recorders_readers_and_one_that_is_killed_lose_nothing(tmp_path):
    start = [sys.executable, "-c", RECORDER, str(tmp_path)]
    steady = [subprocess.Popen([*start, name, "25"], stdout=subprocess.DEVNULL) for name in "ab"]
    reader, killed, seen, n_killed = fresh(tmp_path), 0, 0, 0
    while any(process.poll() is None for process in steady):
        with subprocess.Popen([*start, f"k{n_killed}", "999"], stdout=subprocess.PIPE) as process:
            killed += len([process.stdout.readline() for _ in range(3)])
            process.kill()
            killed += len(process.stdout.readlines())
        n_killed += 1
        found = reader.rows("SELECT number, user, item, batch FROM recorded ORDER BY number")
        assert len(found) % 2 == 0, "half of what was recorded together"
        assert seen <= len(found)
        seen = len(found)
    assert [process.returncode for process in steady] == [0, 0]
    found = rows(tmp_path)
    for name in "ab":
        assert [row[2] for row in found if row[1] == name][::2] == [str(n) for n in range(25)]
    n_of_killed = len([row for row in found if row[1].startswith("k")]) // 2
    assert killed <= n_of_killed <= killed + n_killed
    fresh(tmp_path).check()
    assert [row[0] for row in found] == list(range(1, len(found) + 1))
