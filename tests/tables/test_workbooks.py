"""Sheets of a spreadsheet as tables."""

import re
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.files.tables import read_table

openpyxl = pytest.importorskip("openpyxl")

ITEMS = [["id", "title", "since"], [7, "kettle", datetime(2024, 3, 1)], [2.5, None, "x"]]


@pytest.fixture
def book(tmp_path):
    def saved(**sheets):
        made = openpyxl.Workbook()
        made.remove(made.active)
        for name, rows in sheets.items():
            sheet = made.create_sheet(name)
            for row in rows:
                sheet.append(row)
        made.save(tmp_path / "shop.xlsx")
        return str(tmp_path / "shop.xlsx")

    return saved


def test_numbers_days_and_gaps_are_as_they_are_shown(book):
    frame, report = read_table(book(Items=ITEMS))
    assert list(frame) == ["id", "title", "since"]
    assert frame.fillna("").to_numpy().tolist() == [["7", "kettle", "2024-03-01"], ["2.5", "", "x"]]
    assert report.file == "shop.xlsx#Items"


def test_formulas_without_a_stored_value_are_a_warning(book, tmp_path):
    path = book(Items=[["id", "title", "price"], [1, "Tent", "=1+1"], [2, "Rope", "=A2*2"]])
    assert (
        "2 cells with a formula but no stored value read as empty"
        in read_table(path)[1].warnings[0]
    )
    computed = tmp_path / "computed.xlsx"
    stored = {'<c r="C2">': '<c r="C2" t="str">', "<f>A2*2</f><v />": "<f>A2*2</f><v>4</v>"}
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(computed, "w") as file:
        for name in whole.namelist():
            text = whole.read(name).decode().replace("<v></v>", "<v />")
            for before, after in stored.items():
                text = text.replace(before, after)
            file.writestr(name, text)
    frame, report = read_table(computed)
    assert report.warnings == []
    assert frame["price"].fillna("").tolist() == ["", "4"]


def test_a_sheet_without_rows_is_no_table(book):
    path = book(Empty=[], Items=ITEMS)
    assert read_table(path)[1].read == 2
    charts = openpyxl.load_workbook(path)
    charts.create_chartsheet("Charts")
    charts.save(path)
    assert read_table(path)[1].read == 2


def test_of_several_sheets_one_is_asked_for_in_any_case(book):
    path = book(Items=ITEMS, Orders=[["user", "item"], ["ann", 7]])
    with pytest.raises(DataError, match=r"2 sheets are in it; say which, such as .*#Items"):
        read_table(path)
    assert list(read_table(f"{path}#orders")[0]) == ["user", "item"]


def test_a_sheet_that_is_not_there_is_named_beside_those_that_are(book):
    with pytest.raises(
        DataError, match=r"no sheet 'Item' in it; did you mean Items\? \(sheets: Items\)"
    ):
        read_table(book(Items=ITEMS) + "#Item")


def test_rows_keep_their_numbers_and_blank_ones_are_none(book):
    frame, report = read_table(book(Items=[[], *ITEMS[:2], [], [3, "b", None, "too", "much"]]))
    assert frame.index.tolist() == [3]
    assert report.skipped == {"with too many columns": 1}
    assert "first row 5" in str(report)
    assert report.warnings == [
        "shop.xlsx#Items: 1 row skipped, the first of them row 5, with cells to the right of the "
        "last named column; name that column"
    ]


def test_a_title_above_the_table_of_a_sheet_is_left_out_and_said(book):
    frame, report = read_table(book(Items=[["Stock in May"], [], *ITEMS]))
    assert list(frame) == ["id", "title", "since"]
    assert frame.index.tolist() == [4, 5]
    assert report.notes == ["lines above the table, left out: 1 ('Stock in May')"]


def test_a_workbook_of_nothing_says_so(book):
    with pytest.raises(DataError, match="no cell has anything in it"):
        read_table(book(Empty=[]))


def test_a_workbook_cut_short_is_named(book, tmp_path):
    content = Path(book(Items=ITEMS)).read_bytes()
    (tmp_path / "cut.xlsx").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"cut\.xlsx: cannot be unpacked"):
        read_table(tmp_path / "cut.xlsx")


def test_a_damaged_sheet_is_named(book, tmp_path):
    from zipfile import ZipFile

    path = tmp_path / "damaged.xlsx"
    with ZipFile(book(Items=ITEMS)) as whole, ZipFile(path, "w") as damaged:
        for name in whole.namelist():
            content = whole.read(name)
            damaged.writestr(name, content[:50] if "sheet1" in name else content)
    with pytest.raises(DataError, match=r"damaged\.xlsx: not a spreadsheet, or damaged"):
        read_table(path)


SHEET = (
    '<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>id</t></is></c>'
    '<c r="B1" t="inlineStr"><is><t>title</t></is></c></row>{}</sheetData>'
)


def row(number, *references):
    cells = (f'<c r="{cell}" t="inlineStr"><is><t>{cell}</t></is></c>' for cell in references)
    attribute = "" if number is None else f' r="{number}"'
    return f"<row{attribute}>{''.join(cells)}</row>"


@pytest.fixture
def with_rows(book, tmp_path):
    """A book whose sheet has these rows below its header."""

    def saved(rows):
        plain, changed = book(Items=ITEMS), tmp_path / "changed.xlsx"
        with zipfile.ZipFile(plain) as whole, zipfile.ZipFile(changed, "w") as file:
            for name in whole.namelist():
                text = whole.read(name).decode()
                if name.endswith("sheet1.xml"):
                    text = re.sub("<sheetData>.*</sheetData>", SHEET.format(rows), text)
                file.writestr(name, text)
        return str(changed)

    return saved


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (row(-3, "A2", "B2") + row(4, "A4", "B4"), "-3"),
        (row(0, "A2", "B2"), "'0'"),
        (row("two", "A2", "B2"), ""),
        (row("2.5", "A2", "B2"), ""),
        (row("", "A2", "B2"), ""),
        (row(2, "B2", "A2"), "cell A2 comes after"),
        (row(5, "A5", "B5") + row(3, "A3", "B3"), "row 3 comes after row 5"),
        (row(2, "A2", "B2") + row(2, "A2", "B2"), "row 2 comes after row 2"),
        (row(1, "A1", "B1"), "row 1 comes after row 1"),
        (row(2, "A2", "A2"), "cell A2 comes after"),
        (row(2, "A2", "B7"), "cell B7 is in row 2"),
        (row(None, "A2", "B2") * 2 + row(3, "A3", "B3"), "row 3 comes after row 3"),
        (row(2, "A0", "B2"), "A0"),
        (row(2, "A2", "XFE2"), ""),
        (row(2, "A-2", "B2"), "A-"),
        (row(2, "2", "B2"), ""),
    ],
)
def test_rows_and_cells_that_would_be_left_out_are_an_error(with_rows, rows, named):
    path = with_rows(rows)
    with pytest.raises(DataError, match=r"changed\.xlsx") as raised:
        read_table(path)
    assert named in str(raised.value)


@pytest.mark.parametrize(
    "rows",
    [
        row(2, "A2", "B2") + row(40, "A40", "B40"),
        row(None, "A2", "B2") + row(None, "A3", "B3"),
    ],
)
def test_gaps_and_rows_without_a_number_are_read(with_rows, rows):
    frame, report = read_table(with_rows(rows))
    assert report.read == 2
    assert sorted(frame.iloc[0]) == ["A2", "B2"]


NAMES = row(1, "A1", "B1")


def text_cell(reference, text):
    return f'<c r="{reference}" t="inlineStr"><is><t>{text}</t></is></c>'


@pytest.fixture
def with_sheet(book, tmp_path):
    """A book with this XML in place of its rows, encoded, and with one shared text."""

    def saved(rows, encoding="utf-8", before="", shared="<t>kettle</t>"):
        plain, changed = book(Items=ITEMS), tmp_path / "changed.xlsx"
        kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
        strings = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
        with zipfile.ZipFile(plain) as whole, zipfile.ZipFile(changed, "w") as file:
            for name in whole.namelist():
                text = whole.read(name).decode()
                if name.endswith("sheet1.xml"):
                    start, end = text.index("<sheetData>"), text.index("</sheetData>")
                    text = f"{text[:start]}<sheetData>{NAMES}{rows}{text[end:]}"
                    text = f'<?xml version="1.0" encoding="{encoding}"?>{before}{text}'
                    file.writestr(name, text.encode(encoding))
                elif name != "xl/sharedStrings.xml":
                    is_list = name == "[Content_Types].xml" and "sharedStrings" not in text
                    file.writestr(name, text.replace("</Types>", strings) if is_list else text)
            main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
            texts = f'<sst xmlns="{main}"><si>{shared}</si></sst>'
            in_xml = "utf-16" if encoding == "utf-16" else "utf-8"  # which needs no declaration
            file.writestr("xl/sharedStrings.xml", texts.encode(in_xml))
        return str(changed)

    return saved


def row_of(cell):
    return f'<row r="2">{text_cell("A2", "a")}{cell}</row>'


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (f'<row x="a>b" r="-3">{text_cell("A2", "a")}</row>', "-3"),
        (f"<row x='>' r='0'>{text_cell('A2', 'a')}</row>", "'0'"),
        (f'<row r="&#45;3">{text_cell("A2", "a")}</row>', "-3"),
        (row_of(f"<x>{text_cell('B2', 'b')}</x>"), "row 2"),
        (row_of(f"<row r='3'>{text_cell('A3', 'b')}</row>"), "row"),
        (text_cell("A2", "a"), "outside the rows"),
        (row_of('<c r="B2" t="s"><v>-1</v></c>'), "B2"),
        (row_of('<c r="B2" t="s"><v>0_0</v></c>'), "B2"),
        (row_of('<c r="B2" t="q"><v>1</v></c>'), "B2"),
        (row_of('<c r="B2" t=""><v>1</v></c>'), "B2"),
        (row_of('<c r="B2" t="b"><v>2</v></c>'), "B2"),
        (row_of('<c r="B2" t="b"><v>-1</v></c>'), "B2"),
        (row_of('<c r="B2"><v>1_0</v></c>'), "B2"),
        (row_of('<c r="B2" t="n"><v>٣</v></c>'), "B2"),
        (row_of('<c r="B2" t="inlineStr"><v>b</v></c>'), "B2"),
        (row_of('<c r="B2" t="str"><is><t>b</t></is></c>'), "B2"),
        (row_of('<c r="B2"><v>1</v><v>2</v></c>'), "B2"),
        (row_of('<c r="B2" t="str"><v>b<x/>c</v></c>'), "B2"),
        (row_of('<c r="B2">7</c>'), "B2"),
        (row_of("7"), "row 2"),
        (row_of('<c r="B2" t="inlineStr"><is>b</is></c>'), "B2"),
        (row_of('<c r="B2" t="inlineStr"><is><t>b</t><t>c</t></is></c>'), "B2"),
        (row_of('<c r="B2" t="inlineStr"><is><r><t>b</t><t>c</t></r></is></c>'), "B2"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_what_would_be_lost_of_a_sheet_is_an_error_in_every_encoding(
    with_sheet, rows, named, encoding
):
    with pytest.raises(DataError, match=r"changed\.xlsx") as raised:
        read_table(with_sheet(rows, encoding))
    assert named in str(raised.value)


DOCTYPE = '<!DOCTYPE worksheet [<!ENTITY b "lamp">]>'


def test_a_document_type_in_a_sheet_is_an_error(with_sheet):
    with pytest.raises(DataError, match="document type"):
        read_table(with_sheet(row_of(text_cell("B2", "&b;")), before=DOCTYPE))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ('<!-- <row r="2"/> --><c r="B2" t="s"><v>0</v></c>', "kettle"),
        ('<c r="B2" t="b"><v>1</v></c>', "True"),
        ('<c r="B2" t="b"><v> 0 </v></c>', "False"),
        ('<c r="B2"><v>-1.5E3</v></c>', "-1500"),
        ('<c r="B2" t="str"><f>A1</f><v><![CDATA[<row r="1"/>]]></v></c>', '<row r="1"/>'),
        ('<c r="B2" t="inlineStr"><is><r><rPr/><t>a</t></r><r><t>b</t></r></is></c>', "ab"),
        ('<c r="B2" x="/&gt;" t="d"><v>2024-05-06T00:00:00</v></c><extLst/>', "2024-05-06"),
    ],
)
def test_what_is_no_damage_is_read_in_every_encoding(with_sheet, cell, text, encoding):
    frame, report = read_table(with_sheet(row_of(cell), encoding))
    assert frame.to_numpy().tolist() == [["a", text]]
    assert report.warnings == []


@pytest.mark.parametrize("fragment", ["", "#Items"])
def test_two_sheets_of_one_title_are_an_error(book, tmp_path, fragment):
    plain, changed = book(Items=ITEMS, Others=ITEMS), tmp_path / "changed.xlsx"
    with zipfile.ZipFile(plain) as whole, zipfile.ZipFile(changed, "w") as file:
        for name in whole.namelist():
            text = whole.read(name).decode()
            file.writestr(name, text.replace('name="Others"', 'name="Items"'))
    with pytest.raises(DataError, match="title 'Items'"):
        read_table(f"{changed}{fragment}")


def test_a_title_in_another_case_that_fits_two_sheets_is_an_error(book, tmp_path):
    plain, changed = book(Items=ITEMS, Others=ITEMS[:2]), tmp_path / "changed.xlsx"
    with zipfile.ZipFile(plain) as whole, zipfile.ZipFile(changed, "w") as file:
        for name in whole.namelist():
            text = whole.read(name).decode()
            file.writestr(name, text.replace('name="Others"', 'name="items"'))
    with pytest.raises(DataError, match="2 sheets"):
        read_table(f"{changed}#ITEMS")
    assert len(read_table(f"{changed}#items")[0]) == 1


def test_a_sheet_whose_part_is_missing_is_an_error(book, tmp_path):
    plain, changed = book(Items=ITEMS, Others=ITEMS), tmp_path / "changed.xlsx"
    with zipfile.ZipFile(plain) as whole, zipfile.ZipFile(changed, "w") as file:
        for name in whole.namelist():
            if not name.endswith("sheet2.xml"):
                file.writestr(name, whole.read(name))
    with pytest.raises(DataError, match="'Others'"):
        read_table(changed)


def test_a_sheet_that_only_looks_empty_is_an_error(book, tmp_path):
    plain, changed = book(Items=ITEMS, Others=ITEMS), tmp_path / "changed.xlsx"
    with zipfile.ZipFile(plain) as whole, zipfile.ZipFile(changed, "w") as file:
        for name in whole.namelist():
            text = whole.read(name).decode()
            if name.endswith("sheet2.xml"):
                text = re.sub(r'<row r="\d"', '<row r="-1"', text)
            file.writestr(name, text)
    with pytest.raises(DataError, match="'-1'"):
        read_table(changed)


@pytest.mark.parametrize(
    "shared", ["<t>a</t><t>b</t>", "b", "<r><t>a</t>b</r>", "<t>a<x/>b</t>", "<r/><t>a</t>"]
)
def test_a_shared_text_that_would_be_cut_is_an_error(with_sheet, shared):
    with pytest.raises(DataError, match="shared text 1"):
        read_table(with_sheet(row_of('<c r="B2" t="s"><v>0</v></c>'), shared=shared))


def test_a_shared_text_of_pieces_is_read_whole(with_sheet):
    shared = "<r><rPr/><t>ket</t></r><r><t>tle</t></r><rPh sb='0' eb='1'><t>k</t></rPh>"
    frame, _ = read_table(with_sheet(row_of('<c r="B2" t="s"><v>0</v></c>'), shared=shared))
    assert frame.to_numpy().tolist() == [["a", "kettle"]]


def test_a_percentage_is_the_number_that_is_shown_as_in_csv(tmp_path):
    made = openpyxl.Workbook()
    sheet = made.active
    for row in [["id", "rate", "shown"], ["a", 0.07, 12.5], ["b", 0.125, 3], ["c", 1, 4]]:
        sheet.append(row)
    for row in (2, 3, 4):
        sheet.cell(row, 2).number_format = ("0%", "0.00%", "[Red]0.0%;-0.0%")[row - 2]
        sheet.cell(row, 3).number_format = '0.0"%"'  # the sign alone
    made.save(tmp_path / "rates.xlsx")
    frame, _ = read_table(tmp_path / "rates.xlsx")
    assert frame["rate"].tolist() == ["7%", "12.5%", "100%"]
    assert frame["shown"].tolist() == ["12.5", "3", "4"]


def test_merged_cells_below_the_header_are_a_warning(tmp_path):
    made = openpyxl.Workbook()
    sheet = made.active
    for row in [["Shop"], ["id", "title", "kind"], [1, "Tent", "big"], [2, "Rope"], [3, "Mat"]]:
        sheet.append(row)
    sheet.merge_cells("A1:C1")
    sheet.merge_cells("C3:C5")
    made.save(tmp_path / "shop.xlsx")
    _, report = read_table(tmp_path / "shop.xlsx")
    (warning,) = [warning for warning in report.warnings if "merged" in warning]
    assert "C3:C5" in warning
    assert "1 range" in warning


def test_lengths_of_time_and_escaped_characters_are_read_as_they_are_shown(book):
    rows = [["id", "title"], [1, timedelta(days=1, hours=6)], [2, "_x0041_ _x005F_x0042_"]]
    frame, _ = read_table(book(Items=rows))
    assert frame["title"].tolist() == ["30:00:00", "A _x0042_"]


@pytest.mark.parametrize(
    ("cell", "named"),
    [
        ('<c r="A2"><v>NaN</v></c>', "'NaN'"),
        ('<c r="A2"><v>1e400</v></c>', "1e400"),
        ('<c r="A2" t="b"><v>true</v></c>', "'true'"),
        ('<c r="A2" t="s"><v>99</v></c>', "99"),
    ],
)
def test_a_value_that_cannot_be_read_names_its_cell_and_what_to_do(with_rows, cell, named):
    row_2 = f'<row r="2">{cell}</row>'
    with pytest.raises(DataError, match=r"cell A2 .*save the sheet as CSV") as caught:
        read_table(with_rows(row_2))
    assert named in str(caught.value)


def test_a_strict_workbook_says_how_to_save_it(book, tmp_path):
    usual, strict = book(Items=ITEMS), tmp_path / "strict.xlsx"
    namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with zipfile.ZipFile(usual) as whole, zipfile.ZipFile(strict, "w") as file:
        for name in whole.namelist():
            text = whole.read(name).decode()
            file.writestr(
                name, text.replace(namespace, "http://purl.oclc.org/ooxml/spreadsheetml/main")
            )
    with pytest.raises(DataError, match=r"Strict.*CSV"):
        read_table(strict)
