"""Workbooks of .xls and .ods: what .xlsx says is said of them too."""

import contextlib
import random

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.files.old_excel import sheets_of_excel
from qkvsearch.tables.files.tables import read_table
from tests.tables.other_books import XLS, ods, row, typed

pytest.importorskip("python_calamine")


@pytest.fixture
def read(tmp_path):
    def reader(content, fragment="", name="book.bin"):
        path = tmp_path / name
        path.write_bytes(content)
        return read_table(f"{path}{fragment}")

    return reader


def test_an_old_workbook_shows_what_a_spreadsheet_shows(read):
    frame, report = read(XLS, "#items")
    assert frame.index.tolist() == [3, 4, 5]
    assert frame["id"].tolist() == ["000", "001", "002"]
    assert frame["title"].tolist() == ["Kettle é 0", "Kettle é 1", "Kettle é 2"]
    assert frame["share"].tolist()[:2] == ["10%", "20%"]
    assert frame["when"].tolist() == ["2024-01-02", "2024-01-03", "2024-01-04"]
    assert frame["ok"].tolist() == ["False", "True", "True"]
    assert frame["dur"].tolist() == ["30:00:00"] * 3
    assert report.above == "Prices in May"


def test_sheets_of_an_old_workbook_are_named_and_joined(read, tmp_path):
    with pytest.raises(DataError, match=r"book\.bin#\*.*items, details, hid"):
        read(XLS)
    catalog = read_dataset(f"{tmp_path / 'book.bin'}#*", None).catalog
    pages = catalog.frame["pages"].tolist()
    assert pages[:2] == [100, 101.5]
    assert "x" not in catalog.frame


HEADER = row("id", "title", "share", "when", "dur")
FIRST = row(
    "007",
    "Kettle & pot",
    typed("percentage", 0.07),
    typed("date", "2024-01-02"),
    typed("time", "PT30H00M00S"),
)


def test_an_open_document_shows_what_a_spreadsheet_shows(read):
    frame, report = read(ods(HEADER + FIRST + row(8, "Lamp") + row(None, repeated=1_048_573)))
    assert frame.to_numpy(object).tolist()[0] == [
        "007", "Kettle & pot", "7%", "2024-01-02", "30:00:00",
    ]  # fmt: skip
    assert frame.to_numpy(object).tolist()[1][:2] == ["8", "Lamp"]
    assert not report.warnings


def test_errors_and_merged_cells_are_warnings(read):
    error = '<table:table-cell office:value-type="string" calcext:value-type="error"/>'
    merged = typed("float", 5, 'table:number-rows-spanned="2"')
    rows = HEADER + row("1", error, merged) + row("2", "Lamp")
    _, report = read(ods(rows))
    assert len(report.warnings) == 2
    assert "1 cell with an error" in report.warnings[0]
    assert "1 range of merged cells" in report.warnings[1]


@pytest.mark.parametrize(
    "rows",
    [
        row("id") + row("x", repeated=1_000_000) + row("y"),
        row("id") + row(typed("percentage", 1, 'table:number-columns-repeated="16384"')) * 400,
        row("id") + row(None, repeated=1_000_000) + row(*[None] * 20, "far"),
        row("id") + row(typed("percentage", 1), repeated=1_000_000_000),
    ],
)
def test_cells_that_are_repeated_are_counted_before_they_are_read(read, rows, monkeypatch):
    monkeypatch.setenv("QKVSEARCH_MAX_UNPACKED", "10000000")
    with pytest.raises(DataError, match=r"book\.bin: more than 10,000,000 bytes unpacked"):
        read(ods(rows))


def test_two_cells_far_apart_are_counted_before_an_old_workbook_is_read(read, monkeypatch):
    monkeypatch.setenv("QKVSEARCH_MAX_UNPACKED", "10000000")
    last = XLS.rindex(b"\x03\x02\x0e\x00")  # the record of the last number
    far = XLS[: last + 4] + b"\xff\xff\xff\x00" + XLS[last + 8 :]
    with pytest.raises(DataError, match="bytes unpacked"):
        read(far, "#details")


@pytest.mark.parametrize(
    ("stream", "what"),
    [("WordDocument", "old Word"), ("EncryptedPackage", "password"), ("Other", "old Office")],
)
def test_other_documents_of_an_old_office_are_named(read, stream, what):
    at = XLS.index("Workbook".encode("utf-16-le"))
    name = stream.encode("utf-16-le").ljust(64, b"\0")
    length = (2 * len(stream) + 2).to_bytes(2, "little")
    with pytest.raises(DataError, match=rf"book\.bin: this is .*{what}"):
        read(XLS[:at] + name + length + XLS[at + 66 :])


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_old_workbook_is_read_or_is_one_error(read, seed, capfd):
    rng = random.Random(seed)
    for _ in range(30):
        content = bytearray(XLS)
        for _ in range(rng.choice([1, 3, 30])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        content = bytes(content[: rng.choice([len(content), rng.randrange(len(content))])])
        with contextlib.suppress(DataError):
            read(content, "#items")


def test_sectors_in_a_circle_are_an_error():
    table = int.from_bytes(XLS[76:80], "little")
    at = (table + 1) * 512
    circle = XLS[:at] + b"\0\0\0\0" * 128 + XLS[at + 512 :]
    with pytest.raises(DataError, match="no end"):
        sheets_of_excel(circle, "book.xls")
