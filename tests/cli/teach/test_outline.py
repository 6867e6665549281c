"""`teach` alone: the course, what is done, and what is remembered."""

import re

from qkvsearch.lessons import LESSONS, outline, progress

NAME = "self-attention"


def test_alone_it_shows_the_course_how_long_it_takes_and_how_to_begin(qkv):
    answer = qkv("teach")
    assert (answer.code, answer.stderr) == (0, "")
    for line in outline():
        entry = rf"^ *{line.number}  {line.name}: {re.escape(line.title)} \({line.minutes} min\)$"
        assert re.search(entry, answer.stdout, re.M)
    hours = sum(line.minutes for line in outline()) / 60
    assert f"about {hours:.2g} hours" in answer.stdout
    assert f"Begin: qkvsearch teach {LESSONS[0]}\n" in answer.stdout
    assert len(answer.stdout.splitlines()) < 24


def test_the_list_is_an_array_with_what_is_done(qkv):
    progress.remember("masks")
    rows = qkv("teach", "--list", "--format", "json").json()
    assert [row["name"] for row in rows] == list(LESSONS)
    assert list(rows[0]) == [
        "name",
        "number",
        "title",
        "goal",
        "minutes",
        "done",
        "step",
    ]
    assert [row["name"] for row in rows if row["done"]] == ["masks"]
    said = " ".join(qkv("teach", "--list").stdout.split())
    assert all(row["goal"] in said for row in rows)


def test_a_lesson_that_was_shown_to_its_end_is_done_and_the_next_is_named(qkv):
    qkv("teach", LESSONS[0], "--step", 1)
    qkv("teach", LESSONS[0], "--format", "json")
    qkv("teach", LESSONS[0], "-o", "lesson.txt")
    assert progress.done() == frozenset()
    qkv("teach", LESSONS[0])
    assert progress.done() == {LESSONS[0]}
    assert f"Go on: qkvsearch teach {LESSONS[1]}\n" in qkv("teach").stdout
    for name in LESSONS:
        progress.remember(name)
    assert "All lessons are done." in qkv("teach").stdout


def test_what_cannot_be_remembered_is_said_and_stops_nothing(qkv, monkeypatch):
    monkeypatch.setattr(progress, "remember", lambda name: False)
    answer = qkv("teach", NAME)
    assert answer.code == 0
    assert "could not be kept" in answer.stderr
