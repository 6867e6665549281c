"""A workspace is named or it is not: nothing about somebody's own data comes from a sample."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "args",
    [
        "recommend --all-users -o recs.csv",
        "recommend --user u001",
        "recommend --like Heat -o recs.csv",
        "search war --user u001",
        "search attention -o hits.json",
        "similar --user u001",
        "similar Heat -o hits.json",
        "attend guitar -o map.csv",
        "record u001 Heat",
        "record --undo",
        "add more.csv",
        "remove m001",
        "history u001",
        "items",
        "users",
        "show Heat",
        "info",
        "tune",
        "evaluate recommend",
    ],
)
def test_without_a_workspace_that_is_said_and_no_file_is_written(qkv, args):
    answer = qkv(*args.split())
    assert (answer.code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("Error: no workspace is named, and this folder has none")
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("args", ["search attention", "recommend --like Heat", "similar Heat"])
def test_a_question_that_is_about_nobodys_data_goes_to_a_sample(qkv, args):
    answer = qkv(*args.split(), "-k", 1)
    assert answer.code == 0
    assert "No workspace here: using the bundled" in answer.stderr


def test_a_sample_can_be_named(qkv):
    answer = qkv("-w", "sample:movies", "recommend", "--user", "u001", "-k", 1)
    assert (answer.code, answer.stderr) == (0, "")
    assert qkv("-w", "sample:videos", "show", "v001").code == 0
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    "args", ["build items.csv", "add items.csv", "remove m001", "record u001 Heat", "tune"]
)
def test_a_sample_stays_as_it_is(qkv, args):
    Path("items.csv").write_text("id,title\n1,a\n")
    answer = qkv("-w", "sample:movies", *args.split())
    assert (answer.code, answer.stdout) == (1, "")
    assert "qkvsearch -w DIR build sample:movies" in answer.stderr


def test_a_sample_that_there_is_not_is_said(qkv):
    answer = qkv("-w", "sample:movie", "items")
    assert answer.code == 1
    assert "no sample 'movie'; there are sample:videos, sample:movies" in answer.stderr
