"""The log of searches beside a workspace: what is written, read, deleted, and what never breaks."""

import errno
import json
import multiprocessing
import os
from datetime import date, timedelta

import pytest

from qkvsearch.errors import WorkspaceError
from qkvsearch.store import search_log
from qkvsearch.store.logged_searches import forget_in_log, read_log
from qkvsearch.store.search_log import SearchLog, log_files, log_folder, shared_secret, today


class Said(list):
    """What the owner was told."""

    def __call__(self, text):
        self.append(text)


@pytest.fixture
def said():
    return Said()


@pytest.fixture
def workspace(tmp_path):
    path = tmp_path / "shop"
    path.mkdir()
    return path


@pytest.fixture
def log(workspace, said):
    return SearchLog(workspace, 30, said)


def searched(log, query="tent", visitor="v", **more):
    return log.add_search(visitor, query, **{"total": 2, "shown": [7, "b"], **more})


def queries(workspace):
    return [search.query for search in read_log(workspace).searches]


def test_a_search_and_its_click_are_read_as_they_were(log, workspace):
    no_hits = {"reason": "unknown_words", "words": ["zelt"]}
    query_id = searched(
        log, "zelt 帐篷\n\u2028", total=0, offset=20, no_hits=no_hits, is_typing=True
    )
    assert log.add_click(query_id, 7, 3)
    read = read_log(workspace)
    (search,) = read.searches
    assert (search.id, search.visitor, search.query) == (query_id, "v", "zelt 帐篷\n\u2028")
    assert (search.total, search.shown, search.offset) == (0, ("7", "b"), 20)
    assert (search.is_typing, search.has_options, search.no_hits) == (True, False, no_hits)
    assert read.clicks == {query_id: {"7": 3}}
    assert read.notes() == []


def test_a_click_counts_once_for_a_search_and_an_item(log, workspace, said):
    first, second = searched(log), searched(log)
    another_process = SearchLog(workspace, 30, said)
    for writer, position in ((log, 1), (another_process, 9)):
        for _ in range(3):
            writer.add_click(first, 7, position)
    log.add_click(first, "b", 2)
    log.add_click(second, 7, 5)
    assert read_log(workspace).clicks == {first: {"7": 1, "b": 2}, second: {"7": 5}}


def test_one_who_remembers_writes_the_click_once(log, workspace):
    query_id = searched(log)
    for _ in range(50):
        log.add_click(query_id, 7, 1)
    (file,) = log_files(log_folder(workspace))
    assert file.read_text().count('"click"') == 1


def test_it_is_beside_the_workspace_and_only_the_owner_reads_it(log, workspace):
    searched(log)
    folder = log_folder(workspace)
    assert folder.parent == workspace.parent
    assert list(workspace.iterdir()) == []
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_ids_are_known_to_every_server_and_others_to_none(log, workspace, said):
    query_id = searched(log)
    assert SearchLog(workspace, 30, said).is_known(query_id)
    other = query_id[:-1] + ("0" if query_id[-1] != "0" else "1")
    assert not any(map(log.is_known, (other, "", "nonsense", query_id + "0", f" {query_id}")))


def test_an_id_is_known_until_the_end_of_the_next_day(log, monkeypatch):
    query_id, day = searched(log), today()
    for later, is_known in ((0, True), (1, True), (2, False), (-1, False)):
        monkeypatch.setattr(search_log, "today", lambda later=later: day + timedelta(later))
        assert log.is_known(query_id) is is_known


def test_a_day_has_a_file_and_a_large_one_another(log, workspace, monkeypatch):
    monkeypatch.setattr(search_log, "MAX_FILE", 300)
    for n in range(5):
        searched(log, f"query {n}")
    day = today()
    monkeypatch.setattr(search_log, "today", lambda: day + timedelta(1))
    searched(log, "tomorrow")
    names = [path.name for path in log_files(log_folder(workspace))]
    assert names[0] == f"{day}-1.jsonl"
    assert names[-1] == f"{day + timedelta(1)}-1.jsonl"
    assert len(names) > 2
    assert queries(workspace) == [*(f"query {n}" for n in range(5)), "tomorrow"]


def files_of(workspace, *days_ago, content=b"x" * 100):
    folder = log_folder(workspace)
    folder.mkdir(exist_ok=True)
    for n in days_ago:
        (folder / f"{today() - timedelta(n)}-1.jsonl").write_bytes(content)
    return folder


def test_no_file_is_older_than_the_days(workspace, said):
    folder = files_of(workspace, 0, 1, 29, 30, 31, 400)
    (folder / "notes.txt").write_text("the owner's")
    SearchLog(workspace, 30, said).prepare()
    kept = [date.fromisoformat(path.name[:10]) for path in log_files(folder)]
    assert [(today() - day).days for day in kept] == [29, 1, 0]
    assert (folder / "notes.txt").exists()


def test_the_oldest_files_go_where_all_are_too_large(workspace, said, monkeypatch):
    folder = files_of(workspace, 0, 1, 2, 3)
    monkeypatch.setattr(search_log, "MAX_ALL", 250)
    SearchLog(workspace, 30, said).prepare()
    assert [path.name for path in log_files(folder)] == [
        f"{today() - timedelta(n)}-1.jsonl" for n in (1, 0)
    ]


def test_no_new_file_goes_between_old_ones(log, workspace, said, monkeypatch):
    """A server that starts or was idle while others wrote goes on where these are."""
    searched(log, "first")
    folder = log_folder(workspace)
    (folder / f"{today()}-1.jsonl").unlink()
    (folder / f"{today()}-10.jsonl").touch()
    searched(log, "idle")
    searched(SearchLog(workspace, 30, said), "started")
    assert [path.name for path in log_files(folder)] == [f"{today()}-10.jsonl"]
    assert queries(workspace) == ["idle", "started"]
    monkeypatch.setattr(search_log, "MAX_FILE", 1)
    searched(log, "in another")
    assert [path.name for path in log_files(folder)][1:] == [f"{today()}-11.jsonl"]


def test_a_server_that_starts_again_goes_on_in_the_newest_file(workspace, said, monkeypatch):
    # The first files of the day are deleted by then: what went into new ones of their names would
    # be read as the oldest, and be deleted next.
    monkeypatch.setattr(search_log, "MAX_FILE", 1_000)
    monkeypatch.setattr(search_log, "MAX_ALL", 4_000)
    first, idle = SearchLog(workspace, 30, said), SearchLog(workspace, 30, said)
    searched(idle, "earliest")
    for number in range(40):
        searched(first, f"old {number}")
    assert not (first.folder / f"{today()}-1.jsonl").exists()
    for number, server in enumerate((SearchLog(workspace, 30, said), idle)):
        searched(server, f"new {number}")
    assert queries(workspace)[-2:] == ["new 0", "new 1"]
    assert not said


def test_a_line_that_was_cut_short_costs_no_other_one(log, workspace):
    first = searched(log, "first")
    (file,) = log_files(log_folder(workspace))
    line = file.read_text()
    with file.open("ab") as opened:
        opened.write(b'\n{"search":"cut sh')
    searched(log, "second")
    with file.open("ab") as opened:
        spoilt = json.loads(line) | {"no_hits": 5}
        opened.write(b"\n" + json.dumps(spoilt).encode())
        opened.write(b'\n[1]\n{"search": 5}\n\xff\n{"click": "x", "item": [], "position": 1}')
    read = read_log(workspace)
    assert [search.query for search in read.searches] == ["first", "second"]
    assert read.searches[0].id == first
    assert read.n_unreadable == 6
    assert "6 lines" in read.notes()[0]


def test_a_full_disk_breaks_no_search_and_is_said_once(log, workspace, said, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    query_id = searched(log)
    with monkeypatch.context() as patch:
        patch.setattr(search_log.os, "write", full)
        assert [searched(log) for _ in range(3)] == [None] * 3
        assert not log.add_click(query_id, 7, 1)
    assert len(said) == 1
    assert "No space left" in said[0]
    assert searched(log, "later") is not None
    assert log.add_click(query_id, 7, 1)
    assert queries(workspace) == ["tent", "later"]


def test_half_a_line_counts_as_none(log, said, monkeypatch):
    write = os.write
    monkeypatch.setattr(search_log.os, "write", lambda file, content: write(file, content[:10]))
    assert searched(log) is None
    assert "no room" in said[0]


@pytest.mark.parametrize("obstacle", ["file", "pipe", "link", "key"])
def test_what_cannot_be_written_is_said_and_followed_nowhere(
    obstacle, log, workspace, said, tmp_path
):
    folder, target = log_folder(workspace), tmp_path / "elsewhere"
    if obstacle == "file":
        folder.write_text("")
    else:
        folder.mkdir()
        path = folder / f"{today()}-1.jsonl"
        if obstacle == "pipe":
            os.mkfifo(path)
        elif obstacle == "link":
            path.symlink_to(target)
        else:
            (folder / "key").write_bytes(b"short")
    log.prepare()
    assert searched(log) is None
    assert searched(log) is None
    assert len(said) == 1
    assert not target.exists()


def test_a_folder_that_the_owner_deletes_is_made_again(log, workspace, said):
    first = searched(log)
    folder = log_folder(workspace)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert not log.is_known(first)
    assert log.is_known(searched(log, "again"))
    assert queries(workspace) == ["again"]
    assert said == []


def write_many(path, writer):
    log = SearchLog(path, 30, print)
    for n in range(200):
        searched(log, f"{writer} {n} " + "long " * (n % 50))


def test_several_processes_write_whole_lines(workspace):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_many, args=(workspace, n)) for n in range(3)]
    for process in writers:
        process.start()
    for process in writers:
        process.join(120)
    read = read_log(workspace)
    assert (len(read.searches), read.n_unreadable) == (600, 0)
    for writer in range(3):
        mine = [q.split()[1] for q in queries(workspace) if q.startswith(f"{writer} ")]
        assert mine == [str(n) for n in range(200)]


def test_processes_that_come_at_once_share_a_secret(tmp_path):
    path = tmp_path / "key"
    assert len({shared_secret(path) for _ in range(3)}) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["key"]


def test_a_secret_is_made_where_files_cannot_be_linked(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    path = tmp_path / "salt"
    assert len({shared_secret(path) for _ in range(3)}) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["salt"]
    monkeypatch.setattr("qkvsearch.store.search_log.SECONDS_TO_WRITE", 0.05)
    path.write_bytes(b"short")
    with pytest.raises(OSError, match="it is no key"):
        shared_secret(path)


class TestForget:
    def test_searches_that_name_the_user_are_deleted_with_their_clicks(self, log, workspace):
        named = searched(log, "orders of ANN@example.org, please")
        other = searched(log, "joann@example.org, ann@example.organic")
        for query_id in (named, other):
            log.add_click(query_id, 7, 1)
        assert forget_in_log(workspace, "ann@example.org", dry_run=True) == 1
        assert len(queries(workspace)) == 2
        assert forget_in_log(workspace, "ann@example.org") == 1
        read = read_log(workspace)
        assert read.clicks == {other: {"7": 1}}
        assert b"ANN@" not in b"".join(
            path.read_bytes() for path in log_files(log_folder(workspace))
        )

    def test_a_name_in_chinese_is_found_without_spaces_around_it(self, log, workspace):
        searched(log, "给张三的信")
        searched(log, "张先生")
        assert forget_in_log(workspace, "张三") == 1
        assert queries(workspace) == ["张先生"]

    def test_a_click_in_another_file_goes_too(self, log, workspace, monkeypatch):
        monkeypatch.setattr(search_log, "MAX_FILE", 1)
        query_id = searched(log, "ann")
        log.add_click(query_id, 7, 1)
        assert len(log_files(log_folder(workspace))) == 2
        forget_in_log(workspace, "ann")
        assert all(path.read_bytes() == b"" for path in log_files(log_folder(workspace)))

    def test_lines_that_cannot_be_read_go_too(self, log, workspace):
        searched(log, "kept")
        (file,) = log_files(log_folder(workspace))
        with file.open("ab") as opened:
            opened.write(b'\n{"search":"x","query":"ann')
        assert forget_in_log(workspace, "ann") == 0
        assert b"ann" not in file.read_bytes()
        assert queries(workspace) == ["kept"]

    def test_what_names_nobody_stays_to_the_byte(self, log, workspace):
        searched(log, "cannon")
        (file,) = log_files(log_folder(workspace))
        before, inode = file.read_bytes(), file.stat().st_ino
        assert forget_in_log(workspace, "ann") == 0
        assert (file.read_bytes(), file.stat().st_ino) == (before, inode)

    def test_a_server_goes_on_in_the_new_file(self, log, workspace):
        searched(log, "ann")
        forget_in_log(workspace, "ann")
        searched(log, "later")
        assert queries(workspace) == ["later"]

    def test_words_of_the_log_are_none_of_a_search(self, log, workspace):
        reasons = {"reason": "unknown", "words": ["a\\b"]}
        log.add_search("v", "tent", total=0, shown=[], no_hits=reasons)
        for word in ("reason", "unknown", "words"):
            assert forget_in_log(workspace, word) == 0
        assert forget_in_log(workspace, "a\\b") == 1

    def test_no_log_is_nothing_to_forget(self, workspace):
        assert forget_in_log(workspace, "ann") == 0
        assert not log_folder(workspace).exists()


def test_a_log_that_cannot_be_read_is_an_error_that_names_it(log, workspace):
    searched(log)
    (log_folder(workspace) / f"{today()}-2.jsonl").mkdir()
    for read in (read_log, lambda path: forget_in_log(path, "ann")):
        with pytest.raises(WorkspaceError, match=f"{today()}-2.jsonl"):
            read(workspace)


def test_a_line_is_what_the_documentation_says(log, workspace):
    searched(log, has_options=True)
    (file,) = log_files(log_folder(workspace))
    line = json.loads(file.read_text())
    assert list(line) == ["search", "time", "visitor", "query", "total", "shown", "options"]
