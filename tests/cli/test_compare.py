"""`compare`: what it prints, as what, and when it fails."""

import csv
import io
import json

import pytest

from qkvsearch.engine import Engine


@pytest.fixture
def changed(shop_here, tmp_path):
    """The shop without its red apple; returns the name of the build before."""
    with Engine(shop_here) as engine:
        before = engine.snapshot.name
        engine.remove(1)
    (tmp_path / "q.txt").write_text("apple\nclaw hammer\n", encoding="utf-8")
    return before


def compare(qkv, *args):
    return qkv("compare", *args, "--queries", "q.txt")


def test_the_table_begins_with_the_builds_and_a_sentence(qkv, changed):
    answer = compare(qkv, changed)
    first, second, *lines = answer.stdout.splitlines()
    assert first.startswith(f"{changed} (10 items) → ")
    assert second.endswith("1 of 2 queries changed.")
    assert "1: apple" in lines
    assert any("red apple" in line and "not in the catalog any more" in line for line in lines)
    assert answer.code == 0


def test_json_is_printed_also_where_too_few_hits_stayed(qkv, changed):
    answer = compare(qkv, changed, "--fail-under", ".9", "--format", "json")
    report = json.loads(answer.stdout)
    assert answer.code == 1
    assert report["kept"] < 0.9
    assert answer.stderr.startswith("Error: ")
    assert "--fail-under" in answer.stderr
    (query,) = report["queries"]
    assert (query["id"], query["text"]) == ("1", "apple")
    gone = next(move for move in query["fell"] if move["id"] == 1)
    assert gone == {
        "id": 1,
        "title": "red apple",
        "from": gone["from"],
        "to": None,
        "by": "not in the catalog any more",
    }


def test_it_fails_only_under_the_limit(qkv, changed):
    kept = compare(qkv, changed, "--format", "json").json()["kept"]
    assert compare(qkv, changed, "--fail-under", repr(kept)).code == 0
    assert compare(qkv, changed, "--fail-under", repr(kept + 0.001)).code == 1
    assert compare(qkv, changed, "--fail-under", "90").code == 2


def test_a_page_goes_to_a_file_and_the_sentence_to_stderr(qkv, changed, tmp_path):
    answer = compare(qkv, changed, "-o", "compared.html")
    page = (tmp_path / "compared.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "red apple" in page
    assert (answer.code, answer.stdout) == (0, "")
    assert "1 of 2 queries changed" in answer.stderr
    assert compare(qkv, changed, "--format", "html").stdout == page


def test_a_list_without_changes_has_its_columns(qkv, changed):
    answer = qkv("compare", changed, changed, "--queries", "q.txt", "--format", "csv")
    (names,) = csv.reader(io.StringIO(answer.stdout))
    assert names == ["query", "text", "kept", "id", "title", "from", "to", "by"]


def test_moves_of_one_reason_are_counted_after_the_first_two(qkv, shop_here, tmp_path):
    with Engine(shop_here) as engine:
        before = engine.snapshot.name
        engine.remove("apple hammer")
        expected = engine.compare(before, queries=["apple hammer"]).queries[0].moves
    (tmp_path / "q.txt").write_text("apple hammer\n", encoding="utf-8")
    lines = compare(qkv, before).stdout.splitlines()
    shown = sum(line.startswith(("↑", "↓")) for line in lines)
    others = sum(int(line.split()[1]) for line in lines if line.strip().startswith("and "))
    assert shown + others == len(expected)
    assert others >= 2


def test_a_limit_that_is_no_share_is_wrong_usage(qkv, changed):
    for limit in ("nan", "90", "-1"):
        answer = compare(qkv, changed, "--fail-under", limit)
        assert (answer.code, answer.stdout) == (2, "")
        assert "--fail-under" in answer.stderr


def test_more_than_two_builds_are_wrong_usage(qkv, changed):
    assert compare(qkv, changed, changed, changed).code == 2


def test_a_file_that_is_not_there_is_named(qkv, changed):
    answer = qkv("compare", changed, "--queries", "none.txt")
    assert (answer.code, answer.stdout) == (1, "")
    assert "none.txt: no such file" in answer.stderr
