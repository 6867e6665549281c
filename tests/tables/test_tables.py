"""Tables of any make into frames of text; what is wrong with a file is said of that file."""

import csv
import io
import pickle
import zipfile

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.errors import DataError
from qkvsearch.tables.files.tables import read_table
from qkvsearch.tables.frames import as_text


@pytest.fixture
def read(tmp_path):
    """Writes text or bytes to a file and reads it: rows as lists, None where missing, report."""

    def reader(content, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        frame, report = read_table(path, **options)
        return cells(frame), report

    return reader


def cells(frame):
    header = list(frame.columns)
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    return [header, *rows]


def zipped(name):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        # Without the time of day, which would give each worker other names of tests.
        archive.writestr(zipfile.ZipInfo(name), "id,title\n1,a\n")
    return packed.getvalue()


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_delimiter_is_guessed_from_the_header(read, delimiter):
    text = delimiter.join(["id", '"title, year; x|y"']) + f"\n1{delimiter}a\n"
    assert read(text)[0] == [["id", "title, year; x|y"], ["1", "a"]]


def test_a_tsv_is_split_at_tabs_only(read):
    rows, _ = read("id\ta,b,c,d\n1\tx\n", "table.tsv")
    assert rows == [["id", "a,b,c,d"], ["1", "x"]]


def test_lines_before_the_header_may_be_blank(read):
    assert read("\n \nid;title\n1;a\n\n2;b\n")[0] == [["id", "title"], ["1", "a"], ["2", "b"]]


TABLE = "SKU;Name;Price\n1;Tent;2,50\n2;Rope;3\n"


@pytest.mark.parametrize("above", ["Products of 1 March;;\n", "Products, of 1 March\n\nAll\n"])
def test_a_title_above_the_table_is_left_out_and_said(tmp_path, above):
    (tmp_path / "table.csv").write_text(above + TABLE)
    frame, report = read_table(tmp_path / "table.csv")
    assert cells(frame) == [["SKU", "Name", "Price"], ["1", "Tent", "2,50"], ["2", "Rope", "3"]]
    lines = above.count("\n")
    assert list(frame.index) == [lines + 2, lines + 3]
    assert report.notes[0].startswith(f"lines above the table, left out: {lines} ('Products")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_ending_is_understood(read, end):
    rows, report = read(end.join(["id,title", "1,a", "2,b", ""]))
    assert rows == [["id", "title"], ["1", "a"], ["2", "b"]]
    assert report.read == 2


def test_utf_16_cut_in_the_middle_of_a_letter_is_still_read(read):
    assert read("id,title\n1,aé".encode("utf-16")[:-1])[0][1][0] == "1"


def test_lines_in_two_encodings_are_each_read_in_their_own_and_counted(read):
    text = "id,title\n1,café\n".encode() + "2,caf\xe9 – x\n3,naïve\n".encode("cp1252")
    rows, report = read(text)
    assert [row[1] for row in rows[1:]] == ["café", "café – x", "naïve"]
    assert report.repaired == 2
    assert report.kept == 3


def test_a_quoted_cell_may_span_lines_and_hold_quotes(read):
    rows, report = read('id,title\n1,"two\nlines, ""quoted"""\n2,b\n')
    assert rows[1:] == [["1", 'two\nlines, "quoted"'], ["2", "b"]]
    assert report.read == 2


def test_a_space_after_a_delimiter_is_no_part_of_the_cell(read):
    """Else a quote after it would be a letter, and the delimiter inside it would end the cell."""
    rows, report = read('id, title, year\n1, "Kettle, The", 1999\n2,  b,\n')
    assert rows == [["id", "title", "year"], ["1", "Kettle, The", "1999"], ["2", "b", None]]
    assert not report.skipped
    assert read('id, "title, year"\n1, a\n')[0] == [["id", "title, year"], ["1", "a"]]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("extra", [",x", ",x,y,z"])
def test_a_row_with_too_many_cells_is_skipped_and_counted_wherever_it_is(read, place, extra):
    lines = ["1,a", "2,b", "3,c"]
    lines[place] += extra
    rows, report = read("\n".join(["id,title", *lines]))
    assert [row[0] for row in rows[1:]] == [n for n in "123" if n != str(place + 1)]
    assert report.skipped == {"with too many columns": 1}
    assert (report.read, report.kept) == (3, 2)


def test_an_empty_cell_at_the_end_of_every_line_is_not_too_many(read):
    rows, report = read("id,title\n1,a,\n2,b,\n")
    assert rows == [["id", "title"], ["1", "a"], ["2", "b"]]
    assert not report.skipped


def test_a_short_row_lacks_its_last_cells(read):
    assert read("id,title,tags\n1\n2,b\n")[0][1:] == [["1", None, None], ["2", "b", None]]


def test_codes_and_words_for_nothing_stay_text(read):
    assert read("id,title\n007,NA\n1e5,null\n")[0][1:] == [["007", "NA"], ["1e5", "null"]]


def test_columns_of_one_name_stay_apart_once_spaces_are_gone(read):
    assert read("id,tag,tag ,tag,\n1,a,b,c,d\n")[0] == [
        ["id", "tag", "tag.1", "tag.2", "Unnamed: 4"],
        ["1", "a", "b", "c", "d"],
    ]


@pytest.mark.parametrize("delimiter", ["::", "\t"])
def test_without_a_header_columns_are_as_told_and_quotes_are_letters(read, delimiter):
    rows, _ = read(f'1{delimiter}"A" b\n2{delimiter}"c\n', delimiter=delimiter, names=["id", "t"])
    assert rows == [["id", "t"], ["1", '"A" b'], ["2", '"c']]


@pytest.mark.parametrize("place", [0, 1])
def test_a_row_too_long_is_counted_without_a_header_too(read, place):
    lines = ["1::a", "2::b", "3::c"]
    lines[place] += "::x"
    rows, report = read("\n".join(lines), delimiter="::", names=["id", "t"])
    assert len(rows) == 3
    assert report.skipped == {"with too many columns": 1}


def test_json_lines_join_lists_and_leave_gaps(read):
    text = '{"id": 7, "tags": ["a", "b"]}\n\n{"id": 8.0, "title": "x", "tags": []}\n'
    assert read(text, "t.jsonl")[0] == [
        ["id", "tags", "title"],
        ["7", "a|b", None],
        ["8", None, "x"],
    ]


def test_long_json_numbers_beside_a_gap_are_not_rounded(read):
    text = f'{{"id": {2**53 + 1}}}\n{{"id": null}}\n{{"id": {2**53}}}\n'
    assert read(text, "t.jsonl")[0][1:] == [[str(2**53 + 1)], [None], [str(2**53)]]


def test_half_an_emoji_in_json_becomes_a_question_mark(read):
    assert read(r'{"id": 1, "t": "a\ud83d"}', "t.jsonl")[0][1] == ["1", "a\\ud83d"]


def test_half_an_emoji_in_a_key_of_json_becomes_its_number(read):
    text = r'{"id": 1, "a\ud800": 2, "a\udfff": 3, "a?": 4}'
    assert read(text, "t.jsonl")[0] == [["id", r"a\ud800", r"a\udfff", "a?"], ["1", "2", "3", "4"]]


@pytest.mark.parametrize("bad", ['{"id": }', "[1]", "7"])
def test_bad_json_names_the_file_and_the_line(read, bad):
    with pytest.raises(DataError, match=r"t\.jsonl, line 3: "):
        read(f'{{"id": 1}}\n\n{bad}\n', "t.jsonl")


def test_parquet_reads_as_the_frame_does(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"id": [1.0, 2.5, None], "tags": [["a", "b"], [], None], "b": [b"x"] * 3})
    frame.to_parquet(tmp_path / "t.parquet")
    read, report = read_table(tmp_path / "t.parquet")
    assert cells(read) == cells(as_text(frame))
    assert cells(read)[1:] == [["1", "a|b", "x"], ["2.5", None, "x"], [None, None, "x"]]
    assert report.read == 3


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.csv", "", "the file is empty"),
        ("t.csv", "\n\n", "no line has anything in it"),
        ("t.csv", 'id,title\n1,"a\n2,b\n', "row 2, the header counted, opens a quote that"),
        ("t.csv", '"' + "x" * 200_000, "not a table"),
        ("t.parquet", "no such thing", "not a Parquet file"),
        ("t.csv", b"\x1f\x8b\x08\x00abc", "damaged, or cut short"),
        ("t.csv", b"PK\x03\x04abc", "cannot be unpacked"),
        (
            "t.zip",
            zipped("é.csv").replace("é".encode(), b"\x83\xa9"),
            "cannot be unpacked: 'utf-8'",
        ),
        ("t.csv", b"\xd0\xcf\x11\xe0abc", "not a spreadsheet, or damaged"),
        ("t.arrow", b"ARROW1\0\0", "an Arrow or Feather file; save it as Parquet or CSV"),
        ("t.pkl", pickle.dumps([{"id": 7}]), "a pickle; save it as Parquet or CSV"),
        ("t.csv", b"%PDF-1.7", "a PDF"),
        ("t.xls", " <HTML>\n<table>\n<tr><td>id</td></tr>\n", "HTML or XML, not a table; save"),
        ("t.csv", b'\xef\xbb\xbf<?xml version="1.0"?>\n<items/>\n', "HTML or XML, not a table"),
    ],
)
def test_what_is_no_table_is_an_error_naming_the_file(read, name, content, reason):
    with pytest.raises(DataError, match=rf"{name}: (.*)?{reason}"):
        read(content, name)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(DataError, match=r"gone\.csv: no such file"):
        read_table(tmp_path / "gone.csv")
    with pytest.raises(DataError, match="not a file"):
        read_table(tmp_path)


def test_a_frame_in_memory_becomes_text_without_rounding():
    frame = pd.DataFrame(
        {
            "ints": pd.array([2**53 + 1, None], dtype="Int64"),
            "floats": [7.0, None],
            "blank": ["", "x"],
            "kind": pd.Categorical(["a", None]),
        }
    )
    assert cells(as_text(frame))[1:] == [[str(2**53 + 1), "7", None, "a"], [None, None, "x", None]]


def test_equal_column_names_in_memory_are_numbered():
    assert list(as_text(pd.DataFrame([[1, 2]], columns=["id", "id"]))) == ["id", "id.1"]


# Any text but half surrogates; a space where a cell begins is not kept (`a, b` reads as `a,b`).
cell = st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(lambda text: text.lstrip())
tables = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(cell, min_size=width, max_size=width), max_size=5)
)


@given(tables, st.sampled_from(",;|\t"))
def test_any_cells_survive_writing_and_reading(tmp_path_factory, rows, delimiter):
    path = tmp_path_factory.getbasetemp() / "round_trip.csv"
    header = [f"column {i}" for i in range(len(rows[0]) if rows else 2)]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])
    frame, report = read_table(path)
    rows = [row for row in rows if any(row)]  # a row of nothing is no row
    assert cells(frame) == [header, *[[text or None for text in row] for row in rows]]
    assert (report.read, report.kept, report.repaired) == (len(rows), len(rows), 0)


def test_a_quote_that_opens_a_title_swallows_no_lines_of_a_tsv(tmp_path):
    text = 'id\ttitle\n1\t"Weird Al" tour\n2\tFargo\n3\t"Heroes" live\n4\tAlien\n'
    frame, report = read_table(save(tmp_path / "films.tsv", text))
    assert frame["title"].tolist() == ['"Weird Al" tour', "Fargo", '"Heroes" live', "Alien"]
    assert report.kept == 4
    frame, _ = read_table(save(tmp_path / "films.tsv", 'id\ttitle\n1\t"He said ""so"""\n'))
    assert frame["title"].tolist() == ['He said "so"']


def test_an_object_in_a_cell_keeps_its_values(tmp_path):
    frame, _ = read_table(save(tmp_path / "ITEMS.JSONL", '{"id": 1, "by": {"author": "Bob"}}\n'))
    assert frame["by"].tolist() == ['{"author": "Bob"}']


def test_nothing_in_a_list_is_no_entry(tmp_path):
    lists = [["a", None], [None], [float("nan"), "b"]]
    frame = pd.DataFrame({"id": [1, 2, 3], "tags": lists})
    assert as_text(frame)["tags"].fillna("").tolist() == ["a", "", "b"]
    text = '{"id": 1, "tags": ["a", null]}\n'
    assert read_table(save(tmp_path / "t.jsonl", text))[0]["tags"].tolist() == ["a"]


def save(path, text):
    path.write_text(text, encoding="utf-8")
    return path


ESCAPED = r"""id;title
1;"Old; and more"
2;"The \"Sea\" House"
3;"\"Quoted\""
4;"ends in \"quotes\""
5;C:\plain\"file
"""


def test_a_quote_behind_a_backslash_is_a_quote(read):
    expected = ["Old; and more", 'The "Sea" House', '"Quoted"', 'ends in "quotes"']
    rows, _ = read(ESCAPED)
    assert [row[1] for row in rows[1:5]] == expected


def test_a_backslash_at_the_end_of_a_quoted_cell_stays(read):
    text = 'id,title\n1,"C:\\"\n2,"D:\\dir\\"\n3,"says ""hi"" \\ there"\n'
    rows, _ = read(text)
    assert [row[1] for row in rows[1:]] == ["C:\\", "D:\\dir\\", 'says "hi" \\ there']


def test_a_backslash_at_the_end_of_a_cell_stays_beside_quotes_behind_backslashes(read):
    lines = [
        "id,title,x",
        r'1,"C:\dir\",a',
        '2,"plain",b',
        r'3,"The \"Sea\" House",c',
        r'4,"D:\",d',
        r'5,"a\","b"',
        r'6,"27\"",f',
        r'7,"last",g',
    ]
    rows, _ = read("\n".join(lines) + "\n")
    titles = ["C:\\dir\\", "plain", 'The "Sea" House', "D:\\", "a\\", '27"', "last"]
    assert [row[1] for row in rows[1:]] == titles
    assert [row[2] for row in rows[1:]] == list("abcdbfg")


def test_a_quote_behind_a_backslash_is_found_far_into_a_file(read):
    rows = "".join(f'{n};"Plain title {n}"\n' for n in range(20_000))
    text = f'id;title\n{rows}20000;"Real \\"J. P.\\" here"\n'
    rows, _ = read(text)
    assert rows[-1][1] == 'Real "J. P." here'


@pytest.mark.parametrize(
    ("name", "text", "row", "key"),
    [
        ("t.json", '[{"id": 1, "id": 2}]', 1, "id"),
        ("t.jsonl", '\n{"id": 1, "id": 2}\n{"id": 3, "id": 4}\n', 2, "id"),
        ("t.json", '{"q1": "red kettle", "q1": "blue"}', 1, "q1"),
        ("t.jsonl", '{"id": 1, "by": [{"x": 1, "x": 2}]}\n', 1, "x"),
        ("t.jsonl", '{}\n{"id": 1, "id": 2}\n', 2, "id"),
    ],
)
def test_json_whose_rows_all_have_a_key_twice_names_key_and_row(tmp_path, name, text, row, key):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=f"{name}, row {row}: the key '{key}' occurs twice"):
        read_table(tmp_path / name)
