"""What is said of every row: counts that add up, first rows, warnings."""

import pandas as pd
import pytest

from qkvsearch._utils import scratch
from qkvsearch._utils.limits import COLUMNS
from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.report import ReadReport

ITEMS = "id,title\n" + "".join(f"{n},thing {n}\n" for n in range(20))


@pytest.fixture
def read(tmp_path):
    def reader(log, columns=None):
        (tmp_path / "items.csv").write_text(ITEMS)
        (tmp_path / "log.csv").write_text("user,item\n" + log)
        return read_dataset(tmp_path / "items.csv", tmp_path / "log.csv", columns).reports[1]

    return reader


def test_a_skipped_row_is_named_as_a_spreadsheet_numbers_it(read):
    report = read('"an\nn",1\n,2\nbob,77\n\nbob,78\ncy,3,x\ncy,3,x,y,z\ndee,1\n')
    assert str(report).startswith(
        "log.csv: 7 rows read: 1 kept, 0 duplicates combined, 6 skipped (2 with too many columns, "
        "first row 7; 1 without a user, first row 3; 1 with an id that no address"
    )
    assert "first row 2; 2 with an item that is not in the catalog, first row 4)" in str(report)
    assert "1 without a user, first row 4" in str(read("a,1\nb,2,x,y,z\n,2\n"))


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_rows_that_are_too_long_are_counted_behind_all_others(read, monkeypatch, rows):
    monkeypatch.setattr(scratch, "ROWS_AT_ONCE", rows)
    report = read("a,1\nb,2\nc,3,x,y,z\nd,4,x,y,z\n")
    assert "4 rows read: 2 kept, 0 duplicates combined, 2 skipped (2 with too many" in str(report)


def test_more_than_a_tenth_of_the_rows_skipped_is_a_warning(read):
    report = read("ann,1\n" * 5 + "ann,77\n" * 95)
    (warning,) = report.warnings
    assert warning.startswith("log.csv: 95 of 100 rows were skipped: 95 with an item that is not")
    assert f"Warning: {warning}" in report.lines()
    assert read("ann,1\n" * 90 + "ann,77\n" * 10).warnings == []


def test_a_warning_is_an_error_where_one_is_strict(read):
    log = "ann,1\n" * 5 + "ann,77\n" * 95
    with pytest.raises(DataError, match=r"95 of 100 rows were skipped.*`strict`"):
        read(log, Columns(strict=True))
    assert read("ann,1\n" * 5, Columns(strict=True)).kept == 1


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_header_of_one_column_that_is_left_out_is_a_warning(tmp_path, kind):
    rows = [["title"], ["red", "blue"], ["green", "black"], ["white", "grey"]]
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        path.write_text("".join(f"{', '.join(row)}\n" for row in rows))
    else:
        book = pytest.importorskip("openpyxl").Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
    (report,) = read_dataset(path, None).reports
    (warning,) = report.warnings
    assert "'title' was left out as a title, and the row below it may be data, red, blue" in warning
    with pytest.raises(DataError, match=r"was left out as a title.*`strict`"):
        read_dataset(path, None, Columns(strict=True))


def test_a_title_above_named_columns_is_no_warning(tmp_path):
    (tmp_path / "t.csv").write_text("Stock in May\nid,title\n1,red\n2,green\n")
    assert read_dataset(tmp_path / "t.csv", None).reports[0].warnings == []


def test_what_was_repaired_is_said():
    report = ReadReport("me@shop.com.csv", read=1, repaired=6911, notes=["of ann@shop.com"])
    assert str(report) == (
        "me@shop.com.csv: 1 row read: 1 kept, 0 duplicates combined, 0 skipped; 6,911 lines "
        "decoded as Windows-1252; of (e-mail address)"
    )


@pytest.mark.parametrize("kind", ["file", "frame"])
def test_more_columns_than_a_workspace_keeps_are_refused_before_anything_is_read(tmp_path, kind):
    names = ["id", *(f"c{n}" for n in range(2_099))]
    source = pd.DataFrame([range(2_100)], columns=names)
    if kind == "file":
        source.to_csv(tmp_path / "wide.csv", index=False)
        source = tmp_path / "wide.csv"
    with pytest.raises(DataError, match=rf"2,100 columns, and a workspace keeps {COLUMNS.value:,}"):
        read_dataset(source, None)


@pytest.mark.parametrize(
    "text", ["Stock {May}", "{n.__class__.__mro__}", "{n:>2000000000}", "{}", "100 % {", "{0}%s"]
)
def test_text_of_a_file_is_never_a_template(tmp_path, text):
    cells = f'"{text}"'
    path = tmp_path / f"{text[:9]}.csv"
    path.write_text(f"{text}\nid,title,{cells}\n{cells},{cells},{cells}\nx,,\n")
    dataset = read_dataset(path, None)
    assert dataset.catalog.frame.loc[dataset.catalog.frame["id"] == text, text].tolist() == [text]
    assert f"lines above the table, left out: 1 ('{text}')" in str(dataset.reports[0])


def test_long_cells_are_cut_in_what_is_said_of_them(tmp_path):
    long, id_ = "y" * 100_000, "y" * 1_000
    (tmp_path / "items.csv").write_text(f"id,title,price\n{id_},a,{long}\n{id_.upper()},b,1\n")
    (tmp_path / "log.csv").write_text(f"user,item,time\nu,{id_},{long}\n{id_},{id_},2020-01-01\n")
    reports = read_dataset(tmp_path / "items.csv", tmp_path / "log.csv").reports
    said = [text for report in reports for text in (*report.lines(), *map(repr, report.columns))]
    assert all(len(text) < 1_000 for text in said)
