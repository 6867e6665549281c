"""Small files that would take much memory, much time or a full disk are refused, in one line."""

import gzip
import resource
import sqlite3
import time
from contextlib import closing, suppress
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.files.parquet_pages import _struct
from qkvsearch.tables.files.tables import read_encoded, read_table

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
openpyxl = pytest.importorskip("openpyxl")

TOO_MUCH = r"more than 1,000,000 bytes unpacked \(or 200 times those of the file\) are refused"
# What a refused file may take, and a check of it.
MEMORY, SECONDS = 300 << 20, 30


@pytest.fixture(autouse=True)
def a_low_limit(monkeypatch):
    monkeypatch.setenv("QKVSEARCH_MAX_UNPACKED", "1_000_000")


def refused(path, message, read=read_table, memory=MEMORY):
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(DataError, match=message) as error:
        read(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    assert time.process_time() - began < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < memory >> 10


# --- Parquet ---


def zeros(n):
    return pa.array(np.zeros(n, np.int32))


def shared(n, length):
    """A text for n rows."""
    return pa.DictionaryArray.from_arrays(zeros(n), pa.array(["x" * length]))


def in_one_list(values):
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


PARQUET = {
    "a text of a dictionary": {"id": zeros(1000), "title": shared(1000, 10**6)},
    "runs": {"id": zeros(10**7), "title": shared(10**7, 1)},
    "gaps": {"id": pa.nulls(10**7, pa.string())},
    "a list": {"id": zeros(1), "tags": in_one_list(zeros(2 * 10**7))},
    "texts of a list": {"id": zeros(1), "tags": in_one_list(shared(1000, 10**6))},
    "structs": {
        "id": zeros(10**6),
        "by": pa.StructArray.from_arrays([zeros(10**6)] * 20, [f"f{k}" for k in range(20)]),
    },
    "gaps of long lists": {"id": zeros(1000), "v": pa.nulls(1000, pa.list_(pa.int32(), 10_000))},
    "gaps of long lists in a list": {
        "id": zeros(1),
        "v": in_one_list(pa.nulls(1000, pa.list_(pa.int32(), 10_000))),
    },
    "a plain text": {"id": zeros(1), "title": pa.array(["x" * 10**7])},
}


@pytest.mark.parametrize("read", [read_table, read_encoded])
@pytest.mark.parametrize("kind", PARQUET)
def test_parquet_is_measured_before_it_is_decoded(tmp_path, kind, read):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table(PARQUET[kind]), path, compression="zstd")
    assert path.stat().st_size < 300_000
    refused(path, TOO_MUCH, read)


def test_lists_of_a_fixed_size_are_decoded_a_few_rows_at_a_time(tmp_path, monkeypatch):
    monkeypatch.delenv("QKVSEARCH_MAX_UNPACKED")
    path = tmp_path / "t.parquet"
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(3_000.0)), 3)
    parquet.write_table(pa.table({"id": np.arange(1_000), "v": vectors}), path)
    monkeypatch.setattr("qkvsearch.tables.frames.BATCH_BYTES", 8 * 4 * 10)
    rows = []
    iter_batches = parquet.ParquetFile.iter_batches
    monkeypatch.setattr(
        parquet.ParquetFile,
        "iter_batches",
        lambda file, n, *args, **kw: rows.append(n) or iter_batches(file, n, *args, **kw),
    )
    assert read_table(path)[0]["v"].iloc[-1] == "2997|2998|2999"
    assert rows == [10]


@pytest.mark.parametrize("kind", ["title", "tags.list.element"])
def test_texts_that_share_their_beginnings_are_measured(tmp_path, kind):
    texts = pa.array([f"{'x' * 10**5}{k}" for k in range(300)])
    table = {"id": zeros(300), "title": texts}
    if kind != "title":
        table = {"id": zeros(1), "tags": in_one_list(texts)}
    path = tmp_path / "t.parquet"
    encoding = {"column_encoding": {kind: "DELTA_BYTE_ARRAY"}, "use_dictionary": False}
    parquet.write_table(pa.table(table), path, compression="zstd", **encoding)
    refused(path, TOO_MUCH)


def test_metadata_that_says_less_than_there_is_deceives_nobody(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table(PARQUET["a list"]), path, compression="zstd")
    said, little = varint(2 * 2 * 10**7), varint(2)
    little = bytes([little[0] | 128, *[128] * (len(said) - 2), 0])  # as long
    content = path.read_bytes()
    footer_length = int.from_bytes(content[-8:-4], "little") + 8
    head, footer = content[:-footer_length], content[-footer_length:]
    assert said in footer
    path.write_bytes(head + footer.replace(said, little))
    assert parquet.read_metadata(path).row_group(0).column(1).num_values == 1
    refused(path, TOO_MUCH)


def varint(number):
    found = []
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


@pytest.mark.parametrize("data", [b"", b"\x15\x80" * 9, b"\x15" + b"\x80" * 20, b"\x19\x00"])
def test_damaged_headers_of_pages_are_errors(data):
    with pytest.raises((IndexError, ValueError)):
        _struct(data, 0)


def test_a_damaged_parquet_file_is_one_error(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"id": np.arange(50), "title": [f"thing {k}" for k in range(50)]})
    parquet.write_table(table, path)
    content = path.read_bytes()
    for place in range(0, len(content), 9):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        path.write_bytes(damaged)
        for read in (read_table, read_encoded):
            with suppress(DataError):
                read(path)


@pytest.mark.parametrize("options", [
    {"data_page_version": "2.0"}, {"dictionary_pagesize_limit": 2_000}, {"use_dictionary": False},
    {"use_dictionary": False, "column_encoding": {
        "title": "DELTA_BYTE_ARRAY", "tags.list.element": "DELTA_LENGTH_BYTE_ARRAY"}},
])  # fmt: skip
@pytest.mark.parametrize("compression", ["zstd", "snappy", "none"])
def test_parquet_of_every_make_is_read(tmp_path, options, compression):
    n, path = 2_000, tmp_path / "t.parquet"
    rows = {
        "id": list(range(n)),
        "title": [f"thing {k % 700}" for k in range(n)],
        "tags": [[f"t{k % 9}", f"u{k}"] for k in range(n)],
        "by": [{"name": f"n{k}"} for k in range(n)],
    }
    options |= {"row_group_size": 900, "data_page_size": 3_000, "compression": compression}
    parquet.write_table(pa.table(rows), path, **options)
    for frame in (read_table(path)[0], read_encoded(path)[0].frame()):
        assert frame["title"].tolist() == rows["title"]
        assert frame["tags"].tolist() == ["|".join(tags) for tags in rows["tags"]]
        assert frame["by"].iloc[-1] == f'{{"name": "n{n - 1}"}}'


@pytest.mark.parametrize("read", [read_table, read_encoded])
@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "db"])
def test_a_row_with_a_cell_longer_than_a_book_is_skipped(tmp_path, monkeypatch, kind, read):
    monkeypatch.delenv("QKVSEARCH_MAX_UNPACKED")
    path, long = tmp_path / f"t.{kind}", "x" * 10_000_001
    if kind == "parquet":
        parquet.write_table(pa.table({"id": [1, 2], "title": ["a", long]}), path)
    elif kind == "db":
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE t (id, title)")
            database.executemany("INSERT INTO t VALUES (?, ?)", [(1, "a"), (2, long)])
            database.commit()
    else:
        text = {"csv": f"id,title\n1,a\n2,{long}\n", "jsonl": f'{{"id":1}}\n{{"id":"{long}"}}\n'}
        path.write_text(text[kind])
    table, report = read(path)
    assert len(table) == 1
    assert report.skipped == {"with a cell of more than 10,000,000 characters": 1}


# --- text, JSON, spreadsheets ---

WIDE = ",".join(f"c{k}" for k in range(1900))
TEXTS = {
    "t.csv": WIDE + "\n" + "1\n" * 10_000,
    "t.csv.gz": "id,title\n" + "1,2\n" * 10**6,
    "blank.csv.gz": "id,title\n1,2\n" + "\n" * 900_000,
    "blank cells.csv.gz": "id,title\n1,2\n" + ",\n" * 450_000,
    "many.jsonl": "".join(f'{{"c{k}": 1}}\n' for k in range(1900)),
    "empty.json.gz": f"[{'{},' * 10**6}{{}}]",
    "lists.json.gz": f'[{{"id": 1, "tags": [{"[]," * 10**6}[]]}}]',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_of_much_more_cells_than_letters_is_refused(tmp_path, name):
    path, text = tmp_path / name, TEXTS[name].encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    refused(path, TOO_MUCH)


def test_a_file_packed_twice_is_measured_by_the_outer_one(tmp_path):
    path = tmp_path / "t.csv.gz.gz"
    path.write_bytes(gzip.compress(gzip.compress(b"id,title\n" + b"1,2\n" * 10**7)))
    refused(path, TOO_MUCH)


def test_keys_without_end_are_too_many_columns(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f'{{"c{k}": 1}}\n' for k in range(5_000)))
    refused(path, "columns, and a workspace keeps 1,990 at most")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_the_name_of_a_column_has_a_limit(tmp_path, kind):
    path, name = tmp_path / f"t.{kind}", "x" * 1001
    if kind == "parquet":
        parquet.write_table(pa.table({"id": [1], name: [2]}), path)
    else:
        path.write_text(f"id,{name}\n1,2\n" if kind == "csv" else f'{{"id": 1, "{name}": 2}}\n')
    refused(path, "more than 1,000 characters of a column's name are refused")


KEYS = ", ".join(f'{{"item": "a", "k{k}": 1}}' for k in range(2_500))
LOGS = {
    "a long user of a line": ("lists", "u" * 10**6 + " a" * 10**5),
    "a long user of a matrix": ("matrix", f"user,{WIDE}\n{'u' * 10**6}{',1' * 1900}"),
    "a matrix of empty cells": ("matrix", f"user,{WIDE}\nu{',1' * 1900}\n" + "v\n" * 800),
    "objects of many keys": ("rows", f'{{"user": "u", "items": [{KEYS}]}}'),
    "a list in Python": ("rows", f"user,items\nu,\"[{{'item': 'a'}}{',1' * 10**6}]\""),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOGS)
def test_a_log_in_any_layout_takes_few_bytes_and_seconds(tmp_path, monkeypatch, kind):
    def read(path):
        with suppress(DataError):
            read_dataset(None, path, Columns(layout=LOGS[kind][0]))
        raise DataError(f"{path} is read")

    monkeypatch.delenv("QKVSEARCH_MAX_UNPACKED")
    (tmp_path / "log.txt").write_text(LOGS[kind][1])
    refused(tmp_path / "log.txt", "log.txt", read)


NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def packed(path, rows, strings="", styles=""):
    """A spreadsheet as no program writes it: with more rows, texts and styles."""
    book = openpyxl.Workbook()
    book.active.append(["id", "title"])
    book.save(path)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    part = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/>'
    more = {"sheetData": rows, "styleSheet": styles, "Types": part}
    with ZipFile(path) as whole:
        parts = {name: whole.read(name).decode() for name in whole.namelist()}
    parts["xl/sharedStrings.xml"] = f"<sst xmlns='{NAMESPACE}'>{strings}</sst>"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            for tag, text in more.items():
                content = content.replace(f"</{tag}>", f"{text}</{tag}>")
            archive.writestr(name, content)


@pytest.mark.slow
def test_a_text_that_cells_of_a_spreadsheet_share_is_measured(tmp_path):
    rows = (f'<row r="{k}"><c r="A{k}" t="s"><v>0</v></c></row>' for k in range(2, 20_000))
    packed(tmp_path / "t.xlsx", "".join(rows), f"<si><t>{'x' * 800_000}</t></si>")
    refused(tmp_path / "t.xlsx", TOO_MUCH)


def test_a_cell_far_to_the_right_of_each_row_is_refused(tmp_path):
    rows = (f'<row r="{k}"><c r="XFD{k}"><v>1</v></c></row>' for k in range(2, 2_000))
    packed(tmp_path / "t.xlsx", "".join(rows))
    refused(tmp_path / "t.xlsx", "16,384 columns, and a workspace keeps 1,990 at most")


@pytest.mark.parametrize(
    ("name", "message"),
    [("xl/workbook.xml", "sheets without a part"), ("xl/other.xml", "no workbook in xl/workbook")],
)
def test_many_sheets_of_one_part_are_refused(tmp_path, name, message):
    path, usual = tmp_path / "t.xlsx", "xl/workbook.xml"
    packed(path, "")
    with ZipFile(path) as whole:
        parts = {name: whole.read(name).decode() for name in whole.namelist()}
    book = parts[usual]
    sheet = book[book.index("<sheet ") : book.index("</sheets>")]
    parts[name] = book.replace(sheet, sheet * 100)
    types = parts["[Content_Types].xml"]
    parts["[Content_Types].xml"] = types.replace(f'"/{usual}"', f'"/{name}"')
    with ZipFile(path, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    refused(path, f"not a spreadsheet, or damaged: {message}")


ELEMENTS = {
    "cells": ("<row>" + "<c/>" * 1_200_000 + "</row>", ""),
    "rows": ("<row/>" * 1_200_000, ""),
    "pieces of a text": (f'<row><c t="inlineStr"><is>{"<r/>" * 1_200_000}</is></c></row>', ""),
    "what is no row": ("<x/>" * 1_200_000, ""),
    "texts": ("", "<si/>" * 1_200_000),
    "pieces of a shared text": ("", f"<si>{'<r/>' * 1_200_000}</si>"),
}


@pytest.mark.parametrize("kind", ELEMENTS)
def test_elements_of_a_spreadsheet_are_counted_before_they_are_read(tmp_path, monkeypatch, kind):
    monkeypatch.delenv("QKVSEARCH_MAX_UNPACKED")
    monkeypatch.setattr(openpyxl, "load_workbook", None)
    packed(tmp_path / "t.xlsx", *ELEMENTS[kind])
    refused(tmp_path / "t.xlsx", TOO_MUCH.replace("1,000,000", "100,000,000"))


def test_styles_of_a_spreadsheet_have_a_limit(tmp_path, monkeypatch):
    monkeypatch.delenv("QKVSEARCH_MAX_UNPACKED")
    packed(tmp_path / "t.xlsx", "", styles="<fonts>" + "<font/>" * 1_500_000 + "</fonts>")
    refused(tmp_path / "t.xlsx", "more than 10,000,000 bytes of a spreadsheet besides its cells")


def test_a_list_that_claims_more_items_than_there_are_bytes_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"id": ["aaa", "bbb"], "title": ["x" * 40, "y" * 40]})
    parquet.write_table(table, path, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    start = parquet.read_metadata(path).row_group(0).column(0).data_page_offset
    claim = bytes([0x19, 0xF1]) + b"\xff" * 8 + b"\x3f"  # 2^62 booleans
    content[start : start + len(claim)] = claim
    path.write_bytes(content)
    refused(path, "not a Parquet file, or damaged")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            '<row r="100000000000"><c r="A100000000000"><v>1</v></c></row>',
            "more than 1,100,000 rows of a sheet",
        ),
        ('<row><c r="XFD4"/></row>' * 20_000, TOO_MUCH),
    ],
)
def test_rows_and_cells_that_a_sheet_leaves_out_count(tmp_path, rows, message):
    packed(tmp_path / "t.xlsx", rows)
    refused(tmp_path / "t.xlsx", message)
