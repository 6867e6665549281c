"""CSV keeps one cell a field, and none of them runs as a formula."""

import csv
import io

import pytest

from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.writers import CsvLines, one_cell


def written(cell, raw=False):
    lines = CsvLines(["id", "cell"], raw)
    text = lines.heading() + lines.text([["a", cell]])
    return text, lines.guarded


@pytest.mark.parametrize(
    "cell", ["=1+1", "+49 170", "-1+1", "@sum(a1)", "\t=1", "\r=1", '=HYPERLINK("x")']
)
def test_a_cell_that_a_spreadsheet_would_run_begins_with_an_apostrophe(cell):
    text, guarded = written(cell)
    assert list(csv.reader(io.StringIO(text, newline="")))[1] == ["a", f"'{cell}"]
    assert guarded == {"cell": 1}
    text, guarded = written(cell, raw=True)
    assert list(csv.reader(io.StringIO(text, newline="")))[1] == ["a", cell]
    assert not guarded


@pytest.mark.parametrize("cell", ["-5", "-5.25", "-.5", "-1e-3", -5, -0.25, "a=1", "", "1-2"])
def test_plain_numbers_and_other_texts_stay(cell):
    text, guarded = written(cell)
    assert text == f"id,cell\na,{cell}\n"
    assert not guarded


@pytest.mark.parametrize("cell", ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", "\r"])
def test_a_line_end_in_a_cell_is_quoted_and_comes_back(cell, tmp_path):
    text, _ = written(cell, raw=True)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["id", "cell"], ["a", cell]]


def test_a_heading_may_be_no_formula_either():
    assert CsvLines(["=1"]).heading() == "'=1\n"


def test_ids_in_raw_csv_come_back_as_they_were(tmp_path):
    lines = CsvLines(["id", "title"], raw=True)
    rows = [["=a", "one"], ["@b", "two\rlines"], ["-5x", "+3"]]
    (tmp_path / "items.csv").write_text(
        lines.heading() + lines.text(rows), encoding="utf-8", newline=""
    )
    catalog = read_dataset(tmp_path / "items.csv", None).catalog
    assert sorted(catalog.ids) == sorted(id_ for id_, _ in rows)


def test_lists_and_dicts_become_texts_by_a_rule():
    reasons = [
        {"id": 7, "title": "Heat", "contribution": 0.25},
        {"id": None, "title": "popularity", "contribution": -0.5},
    ]
    assert one_cell(reasons) == "Heat [7] (+0.25); popularity (-0.5); = -0.25"
    parts = [
        {"head": "lsa", "query": "bank", "key": "river", "value": 1.5},
        {"head": "lexical", "query": "bank", "key": "bank", "value": 0.125},
        {"head": "lsa", "query": None, "key": None, "value": -0.5},
    ]
    assert (
        one_cell(parts) == "lsa: bank ~ river (+1.5); lexical: bank (+0.125); lsa (-0.5); = 1.125"
    )
    assert one_cell({"title": ["rain", "jacket"], "tags": ["rain"]}) == (
        "title: rain, jacket; tags: rain"
    )
    assert one_cell({"ndcg@10": [0.25, 0.5]}) == "ndcg@10: 0.25, 0.5"
    assert one_cell(None) is None
