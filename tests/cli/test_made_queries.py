"""`evaluate search` without queries, as the terminal and scripts get it."""

import csv
import io
import json
import shutil

import pytest

import qkvsearch
from qkvsearch.evaluation.made_queries.kinds import KINDS_BY_NAME
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.learn.tuned_search import use_in_search
from qkvsearch.store import Workspace
from qkvsearch.tables.samples import sample

EVALUATE = ("evaluate", "search")
N_ITEMS = 25


@pytest.fixture(scope="module")
def shelf_path(tmp_path_factory):
    """A few of the bundled videos: their queries are asked in a moment."""
    folder = tmp_path_factory.mktemp("shelf")
    lines = sample("videos").path("videos.csv").read_text(encoding="utf-8").splitlines()
    items = folder / "items.csv"
    items.write_text("\n".join(lines[: N_ITEMS + 1]), encoding="utf-8")
    qkvsearch.build(folder / "ws", items=items, encoder="corpus")
    return folder / "ws"


def test_the_table_begins_with_a_sentence_and_names_kinds_in_words(qkv, shelf_path):
    table = qkv("-w", shelf_path, *EVALUATE).stdout
    assert " of " in table.splitlines()[0]
    assert "first" in table.splitlines()[0]
    assert not [name for name in KINDS_BY_NAME if "_" in name and name in table]
    assert max(map(len, table.splitlines())) <= 80


def test_the_table_has_the_intervals_the_lexical_head_and_the_held_out_half(qkv, shelf_path):
    table = qkv("-w", shelf_path, *EVALUATE).stdout
    report = json.loads(qkv("-w", shelf_path, *EVALUATE, "--format", "json").stdout)
    told = " ".join(table.split())
    for figures in report["kinds"].values():
        low, high = figures["interval"]
        assert f"{figures['first']:.0%} ({100 * low:.0f}–{100 * high:.0f})" in told
    assert f"lexical head alone: {report['baselines']['lexical']['mrr@10']:.3f}." in told
    (line,) = [line for line in table.splitlines() if "held out" in line.lower()]
    held_out = report["held_out"]
    assert f" {held_out['queries']} " in line
    assert f" {held_out['mrr@10']:.3f}." in line


def test_a_note_says_that_searches_are_tuned(qkv, shelf_path, tmp_path):
    path = shutil.copytree(shelf_path, tmp_path / "ws")
    use_in_search(Workspace(path), SearchSettings(families=0.5), 0)
    assert "tune search" in qkv("-w", path, *EVALUATE).stderr
    assert "tune search" not in qkv("-w", shelf_path, *EVALUATE).stderr


def test_found_by_is_a_head_that_has_the_item_first_when_asked_alone(qkv, shelf_path):
    report = json.loads(qkv("-w", shelf_path, *EVALUATE, "--format", "json").stdout)
    known = [row for row in report["worst"] if KINDS_BY_NAME[row["kind"]].looks_for_one_item]
    checked = 0
    for row in known:
        if row["found_by"] is not None and row["others"] == 0:
            asked = ("search", row["query"], "--heads", row["found_by"], "-k", "1")
            (hit,) = json.loads(qkv("-w", shelf_path, *asked, "--format", "json").stdout)
            assert hit["id"] == row["id"]
            checked += 1
    assert checked or not known


def test_csv_has_a_row_for_each_kind_and_shares_that_add_up(qkv, shelf_path):
    out = qkv("-w", shelf_path, *EVALUATE, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["kind"] for row in rows} <= KINDS_BY_NAME.keys()
    for row in rows:
        assert float(row["among_ten"]) + float(row["missing"]) == pytest.approx(1)
        assert float(row["first"]) <= float(row["among_ten"])


@pytest.mark.parametrize("option", ["--queries", "--qrels"])
def test_one_of_two_files_is_an_error(qkv, shelf_path, tmp_path, option):
    file = tmp_path / "file.tsv"
    file.write_text("q1\tapple\n")
    result = qkv("-w", shelf_path, *EVALUATE, option, file)
    assert result.code == 2
    assert "--queries" in result.stderr
    assert "--qrels" in result.stderr


def test_a_log_alone_is_told_what_to_give(qkv, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(
        "user,item,rating\n" + "".join(f"u{n % 5},i{n % 7},{1 + n % 5}\n" for n in range(30))
    )
    qkv("-w", tmp_path / "ws", "build", log)
    result = qkv("-w", tmp_path / "ws", *EVALUATE)
    assert result.code == 1
    assert "--queries" in result.stderr
