"""What is done is remembered, and nothing about the file that holds it ever stops a lesson."""

import json

import pytest

from qkvsearch.lessons import LESSONS, progress


@pytest.fixture(autouse=True)
def data_home(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "data_folder", lambda: tmp_path / "data" / "qkvsearch")
    return tmp_path / "data"


def file_in(folder):
    return folder / "qkvsearch" / "lessons.json"


def test_at_first_nothing_is_done_and_the_first_lesson_follows():
    assert progress.done() == frozenset()
    assert progress.following() == LESSONS[0]


def test_what_was_done_is_still_done_later_and_the_first_gap_follows(data_home):
    for name in ("masks", LESSONS[0], "masks"):
        assert progress.remember(name)
    assert progress.done() == {"masks", LESSONS[0]}
    assert progress.following() == LESSONS[1]
    assert json.loads(file_in(data_home).read_text("utf-8")) == {"done": [LESSONS[0], "masks"]}
    assert [path.name for path in file_in(data_home).parent.iterdir()] == ["lessons.json"]


def test_nothing_follows_when_all_are_done():
    for name in LESSONS:
        progress.remember(name)
    assert progress.following() is None


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b'{"done": 3}', b'{"done": [1, null, {}]}', b"\xff\xfe\x00",
        b'{"done": ["no-such-lesson"]}', b"[" * 100_000,
    ],
    ids=lambda content: repr(content[:12]),
)  # fmt: skip
def test_a_damaged_file_counts_as_none_and_is_replaced(data_home, content):
    file_in(data_home).parent.mkdir(parents=True)
    file_in(data_home).write_bytes(content)
    assert progress.done() == frozenset()
    assert progress.remember("masks")
    assert progress.done() == {"masks"}


def test_what_cannot_be_read_is_set_aside_and_the_log_says_so(data_home, caplog):
    file_in(data_home).parent.mkdir(parents=True)
    file_in(data_home).write_bytes(b'{"done": ["masks"')
    assert progress.done() == frozenset()
    assert progress.remember("embeddings")
    assert str(file_in(data_home)) in caplog.text
    aside = file_in(data_home).with_name(progress.SET_ASIDE)
    assert aside.read_bytes() == b'{"done": ["masks"'


def test_where_nothing_can_be_written_that_is_said_and_no_more(data_home):
    data_home.write_text("a file where the folder should be", encoding="utf-8")
    assert progress.remember("masks") is False
    assert progress.done() == frozenset()


def test_a_person_without_a_home_learns_all_the_same(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(progress, "data_folder", homeless)
    assert progress.remember("masks") is False
    assert progress.done() == frozenset()
