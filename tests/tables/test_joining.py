"""Tables that add columns to items by their ids: other files, and the sheets of a workbook."""

import openpyxl
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.sources import read_source

BOOKS = {"id": ["b1", "b2", "b3"], "title": ["Rivers", "Kilns", "Bridges"]}
PAGES = {"id": ["b3", "b1", "b9"], "pages": ["120", "90", "7"]}


def joined(*details, items=BOOKS, columns=None):
    """The catalog, by column, and the report on the last table."""
    frames = [pd.DataFrame(each) for each in details]
    dataset = read_dataset(pd.DataFrame(items), None, columns, frames)
    frame = dataset.catalog.frame.astype(object)
    return frame.where(frame.notna(), None).to_dict("list"), dataset.reports[-1]


def test_columns_are_added_by_id_and_items_without_stay():
    cells, report = joined(PAGES)
    assert cells == {"id": BOOKS["id"], "title": BOOKS["title"], "pages": [90, None, 120]}
    assert any("2 of 3 items" in note for note in report.notes)
    assert report.skipped == {"of no item": 1}


@pytest.mark.parametrize("name", ["ID", "book_id", "isbn", "what"])
def test_the_ids_are_found_by_another_name_or_by_their_cells(name):
    cells, _ = joined({name: PAGES["id"][:2], "pages": PAGES["pages"][:2]})
    assert cells["pages"] == [90, None, 120]
    assert list(cells) == ["id", "title", "pages"]


def test_several_rows_of_an_item_become_a_list():
    cells, report = joined({"id": ["b1", "b1", "b2", "b1"], "tag": ["x", "y|z", "w", "x"]})
    assert cells["tag"] == ["x|y|z", "w", None]
    assert report.merged == 2


def test_the_people_of_a_log_are_not_joined_to_items():
    reviews = {
        "id": ["b1", "b1", "b2"],
        "customer": ["ann", "bob", "ann"],
        "stars": ["5", "3", "4"],
    }
    with pytest.raises(
        DataError, match=r"its column 'customer' says who .*or give the file as `int"
    ):
        joined(reviews)
    without = {name: cells for name, cells in reviews.items() if name != "customer"}
    assert "stars" in joined(without)[0]
    # One for each item, as an author is, is something that an item has.
    one_each = {name: cells[1:] for name, cells in reviews.items()}
    assert "customer" in joined(one_each)[0]


def test_cells_of_items_stay_and_empty_ones_are_filled():
    items = BOOKS | {"year": ["1890", None, None]}
    cells, report = joined({"id": ["b1", "b2"], "year": ["1900", "1910"]}, items=items)
    assert [str(year)[:4] for year in cells["year"]] == ["1890", "1910", "None"]
    assert any("1 empty ones filled, 1 differ" in note for note in report.notes)


def test_several_tables_are_joined_one_after_another():
    cells, _ = joined(PAGES, {"id": ["b2"], "subject": ["craft"]})
    assert cells["pages"] == [90, None, 120]
    assert cells["subject"] == [None, "craft", None]


@pytest.mark.parametrize(
    ("details", "named"),
    [({"id": ["z1"], "pages": ["1"]}, "z1"), ({"pages": ["1", "2"]}, "pages")],
)
def test_a_table_of_other_ids_is_an_error(details, named):
    with pytest.raises(DataError, match=named):
        joined(details)


def test_items_without_ids_cannot_be_joined():
    with pytest.raises(DataError, match="id_column"):
        joined(PAGES, items={"title": ["Rivers of the north", "Kilns of the south"]})


def test_titles_may_be_in_the_other_table_and_columns_ignored():
    items = {"id": BOOKS["id"], "price": ["1", "2", "3"]}
    cells, _ = joined(BOOKS | {"x": ["1", "2", "3"]}, items=items, columns=Columns(ignore=["x"]))
    assert cells["title"] == BOOKS["title"]
    assert "x" not in cells


def test_join_needs_items():
    with pytest.raises(DataError, match="`join`"):
        read_dataset(None, pd.DataFrame({"user": ["u"], "item": ["i"]}), None, ["x.csv"])


# --- sheets ---


@pytest.fixture
def book(tmp_path):
    """Writes a workbook with a sheet for each table, hidden if its name begins with a dot."""

    def writer(**sheets):
        workbook = openpyxl.Workbook()
        workbook.remove(workbook.active)
        for name, table in sheets.items():
            sheet = workbook.create_sheet(name)
            for row in [list(table), *zip(*table.values(), strict=True)]:
                sheet.append(row)
            if name.startswith("hidden"):
                sheet.sheet_state = "hidden"
        workbook.save(tmp_path / "book.xlsx")
        return str(tmp_path / "book.xlsx")

    return writer


def test_all_sheets_are_joined_by_id(book):
    path = book(books=BOOKS, pages=PAGES, hidden={"note": ["do not read"]})
    for dataset in (read_dataset(f"{path}#*", None), read_source(f"{path}#*")):
        assert dataset.catalog.ids.texts == BOOKS["id"]
        assert dataset.catalog.frame["pages"].tolist() == [90, pd.NA, 120]


def test_a_build_from_all_sheets_is_changed_from_all_sheets(book, tmp_path):
    with qkv.build(tmp_path / "w", items=f"{book(books=BOOKS, pages=PAGES)}#*") as engine:
        unchanged = engine.sync(f"{tmp_path / 'book.xlsx'}#*")
        assert (unchanged.unchanged, unchanged.removed) == (3, 0)
        other = PAGES | {"pages": ["121", "90", "7"]}
        done = engine.sync(f"{book(books=BOOKS, pages=other)}#*")
        assert (done.added, done.changed, done.removed) == (0, 1, 0)
        assert engine.show("b3")["pages"] == 121
        assert any("2 of 3 items" in note for note in done.notes)
        engine.add(f"{book(books=BOOKS, pages=PAGES)}#*")
        assert engine.show("b3")["pages"] == 120


def test_the_texts_of_items_are_not_those_of_joined_tables(tmp_path):
    (tmp_path / "b1.txt").write_text("Of the river")
    columns = Columns(texts=str(tmp_path / "{id}.txt"))
    cells, report = joined({"isbn": ["b1"], "pages": ["90"]}, columns=columns)
    assert (cells["text"], cells["pages"]) == (["Of the river", None, None], [90, None, None])
    assert not any("text" in note for note in report.notes)


def test_the_documents_of_a_folder_are_joined_by_their_names(tmp_path):
    for name in ("b1", "b3"):
        (tmp_path / f"{name}.md").write_text(f"---\nshelf: {name}x\n---\nOf {name}")
    catalog = read_dataset(pd.DataFrame(BOOKS), None, None, tmp_path).catalog
    assert catalog.frame["shelf"].fillna("").tolist() == ["b1x", "", "b3x"]
    assert catalog.frame["title"].tolist() == BOOKS["title"]


def test_sheets_with_the_same_columns_are_one_table(book):
    more = {"id": ["b4"], "title": ["Mills"]}
    catalog = read_dataset(f"{book(books=BOOKS, pages=PAGES, more=more)}#*", None).catalog
    assert catalog.ids.texts == ["b1", "b2", "b3", "b4"]
    assert catalog.frame["pages"].tolist() == [90, pd.NA, 120, pd.NA]


def test_sheets_about_the_same_items_are_not_numbered_anew(book):
    names = [f"Book {letter} of the north" for letter in "ABCDEF"]
    path = book(
        one={"label": names, "color": ["red"] * 6},
        two={"label": names, "pages": [str(n) for n in range(6)]},
    )
    with pytest.raises(DataError, match=r"column label"):
        read_dataset([f"{path}#one", f"{path}#two"], None)
    with pytest.raises(DataError, match=r"book\.xlsx#\*"):
        read_dataset(path, None)


def test_codes_of_two_files_are_ids(book):
    codes = [f"B-{n:03d}" for n in range(9)]
    path = book(
        one={"code": codes, "color": ["red"] * 9},
        two={"code": codes, "pages": [str(100 + n) for n in range(9)]},
    )
    catalog = read_dataset([f"{path}#one", f"{path}#two"], None).catalog
    assert catalog.ids.texts == codes
    assert catalog.frame["pages"].tolist() == [100 + n for n in range(9)]


@pytest.mark.parametrize("notes", [[("who", "what"), ("Ann", "call")], [("SKU", "x"), ("zz", 1)]])
def test_a_sheet_without_ids_can_be_left_out_as_the_message_says(tmp_path, notes):
    sheets = {
        "Items": [("SKU", "title"), ("A1", "Tent"), ("A2", "Rope")],
        "All prices": [("SKU", "price"), ("A1", 3), ("A2", 4)],
        "Notes": notes,
    }
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    path = tmp_path / "book.xlsx"
    book.save(path)
    with pytest.raises(DataError, match="Notes") as error:
        read_source(items=f"{path}#*")
    said = str(error.value)
    assert "`items` 'book.xlsx#Items' `join` 'book.xlsx#All prices'" in said
    assert "Notes" not in said.split("`items`")[1]
