"""The catalog: one row an item, nothing lost on the way, names that SQL can hold apart."""

from __future__ import annotations

import pandas as pd
import pytest

from qkvsearch.data.catalog import catalog_from_frame, catalog_of_ids
from qkvsearch.data.columns import Columns
from qkvsearch.data.dataset import read_dataset
from qkvsearch.data.ids import Ids
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError


def catalog(*rows, names="id title", report=None, **columns):
    frame = pd.DataFrame(rows, columns=names.split(), dtype=str)
    report = report or ReadReport("items.csv", read=len(rows))
    return catalog_from_frame(frame, Columns(**columns), report)


def column(made, name):
    cells = made.frame[name]
    return cells.astype(object).where(cells.notna(), None).tolist()


def test_rows_are_ordered_by_id_as_numbers():
    made = catalog(("30", "c"), ("4", "a"), ("5", "b"))
    assert list(made.ids) == [4, 5, 30]
    assert column(made, "id") == ["4", "5", "30"]
    assert column(made, "title") == ["a", "b", "c"]


def test_of_one_id_the_last_row_stays_with_its_blanks_filled_from_earlier():
    report = ReadReport("items.csv", read=4)
    rows = [("1", "old", "x"), ("2", "b", None), (" 1", None, "y"), ("1", "new", None)]
    made = catalog(*rows, names="id title tags", report=report)
    assert (column(made, "title"), column(made, "tags")) == (["new", "b"], ["y", None])
    assert (report.merged, report.kept) == (2, 2)


def test_rows_without_an_id_or_with_a_failed_formula_are_skipped_and_counted():
    report = ReadReport("items.csv", read=6)
    rows = [(None, "a"), ("  ", "b"), ("#NAME?", "c"), ("#REF!", "d"), ("#1", "e"), ("f", "#N/A")]
    made = catalog(*rows, report=report)
    assert list(made.ids) == ["#1", "f"]
    assert report.skipped == {"without an id": 2, "with a spreadsheet error for an id": 2}
    assert report.kept == 2


def test_nothing_but_rows_without_an_id_is_an_error():
    with pytest.raises(DataError, match=r"items\.csv: no rows with an id in column 'id'"):
        catalog((None, "a"))


def test_id_and_title_columns_besides_the_chosen_ones_get_a_number():
    made = catalog(
        ("v1", "Name", "7", "T"),
        names="code name id title",
        id="code",
        title="name",
        text=["title", "name", "id", "code"],
    )
    assert made.frame.iloc[0].to_dict() == {
        "id": "v1",
        "title": "Name",
        "id_2": "7",
        "title_2": "T",
    }
    assert made.text_columns == ("title_2", "title", "id_2", "id")
    assert made.texts() == ["T\nName\n7\nv1"]


def test_columns_that_differ_only_in_case_are_told_apart():
    names = "id title Genre genre GENRE_2 _position"
    made = catalog(("1", "t", "p", "q", "r", "s"), names=names)
    assert list(made.frame) == ["id", "title", "Genre", "genre_2", "GENRE_2_2", "_position_2"]
    assert made.frame.iloc[0, 2:].tolist() == ["p", "q", "r", "s"]


@pytest.mark.parametrize(
    ("cells", "expected", "kind"),
    [
        (["5", None, "12"], [5, None, 12], "i"),
        (["5.5", "2", None], [5.5, 2.0, None], "f"),
        ([str(2**63 - 1), str(2**53 + 1), None], [2**63 - 1, 2**53 + 1, None], "i"),
        (["1994", "x", "7"], ["1994", "x", "7"], "O"),
        (["inf", "5", None], ["inf", "5", None], "O"),
        ([None, None, None], [None, None, None], "O"),
    ],
)
def test_numbers_are_numbers_where_every_cell_is_one_that_can_be_stored(cells, expected, kind):
    made = catalog(*[(str(i), "t", cell) for i, cell in enumerate(cells)], names="id title n")
    assert column(made, "n") == expected
    assert made.frame["n"].dtype.kind == kind


def test_titles_stay_text_though_they_look_like_numbers():
    assert column(catalog(("1", "300"), ("2", "1984")), "title") == ["300", "1984"]


@pytest.mark.parametrize(
    ("title", "year"),
    [
        ("Kettle (1995)", 1995),
        ("Kettle (1995-1999) ", 1995),
        ("Kettle (1995–)", 1995),
        ("Kettle (Two) (2001)", 2001),
        ("Kettle 1995", None),
        ("Kettle (1995) again", None),
        ("Kettle (१९९५)", None),
    ],
)
def test_year_is_derived_from_the_end_of_the_title_which_stays_verbatim(title, year):
    made = catalog(("1", title), ("2", "Anchor (1950)"))
    assert column(made, "year") == [year, 1950]
    assert column(made, "title")[0] == title


def test_a_year_is_a_column_where_titles_have_one_and_no_column_is_named_so():
    year = catalog(("1", "Kettle (1995)"), ("2", "Anchor")).columns[2]
    assert (year.name, year.type, year.empty, year.changed) == (
        "year", "number", 0.5, {"found in titles": 1},
    )  # fmt: skip
    assert list(catalog(("1", "Kettle")).frame) == ["id", "title"]
    assert column(catalog(("1", "Kettle (1995)", "2001"), names="id title Year"), "Year") == [2001]


def test_without_a_title_column_the_id_is_the_title():
    made = catalog(("b", "x"), ("a", "y"), names="id colour")
    assert column(made, "title") == column(made, "id") == ["a", "b"]
    assert made.texts() == ["a", "b"]


def test_a_blank_title_is_the_id():
    assert column(catalog(("7", None), ("8", "b")), "title") == ["7", "b"]


def test_texts_join_the_columns_read_with_blanks_for_gaps_and_numbers_as_written():
    made = catalog(("1", "a", "5"), ("2", "b", None), names="id title category")
    assert made.text_columns == ("title", "category")
    assert made.texts() == ["a\n5", "b\n"]


def test_items_of_a_log_are_titled_by_their_ids():
    made = catalog_of_ids(Ids(["4", "30"]))
    assert column(made, "title") == made.texts() == ["4", "30"]
    assert len(made) == 2


def test_a_type_is_told_by_the_name_that_the_owner_has_for_a_column():
    rows = [("1", "t", "5", "x"), ("2", "u", "7", "5")]
    made = catalog(*rows, names="id title Price price", types={"Price": "text", "price": "number"})
    assert column(made, "Price") == ["5", "7"]
    assert column(made, "price_2") == [None, 5]
    assert [(known.name, known.stored, known.type) for known in made.columns[2:]] == [
        ("Price", "", "text"), ("price", "price_2", "number"),
    ]  # fmt: skip


def test_a_told_column_without_a_cell_that_fits_is_an_error_with_file_and_cells():
    with pytest.raises(DataError, match=r"items\.csv: column 'n' .* number .*: 'x' \(id 1\)"):
        catalog(("1", "t", "x"), ("2", "u", None), names="id title n", types={"n": "number"})


def test_an_unknown_type_is_an_error_that_lists_those_there_are():
    with pytest.raises(DataError, match=r"'numbr'; did you mean number.*types: number, date"):
        catalog(("1", "t", "5"), names="id title n", types={"n": "numbr"})


def test_a_type_of_items_that_were_not_given_is_an_error():
    log = pd.DataFrame({"user": ["a"], "item": ["b"]})
    with pytest.raises(DataError, match="`types` is of the columns of `items`"):
        read_dataset(None, log, Columns(types={"price": "number"}))


def test_html_goes_from_titles_and_texts_and_one_that_was_html_alone_is_blank():
    made = catalog(
        ("1", "<b>Tent</b> &amp; rope", "<p>a</p><p>b</p>"),
        ("2", "<p></p>", "&nbsp;"),
        names="id title description",
    )
    assert column(made, "title") == ["Tent & rope", "2"]
    assert column(made, "description") == ["a b", None]
    assert made.columns[1].changed == {"HTML removed": 2, "empty: the id instead": 1}
    assert made.texts() == ["Tent & rope\na b", "2\n"]


def test_constant_and_empty_columns_and_those_without_a_name_are_kept():
    frame = pd.DataFrame(
        {"id": ["1", "2"], "title": ["a", "b"], "Unnamed: 2": ["x", "x"], "none": None}
    )
    made = catalog_from_frame(frame, Columns(), ReadReport("items.csv", read=2))
    assert list(made.frame) == ["id", "title", "Unnamed: 2", "none"]
    assert [(known.type, known.empty) for known in made.columns[2:]] == [("text", 0), ("text", 1)]


VARIANTS = {
    "Handle": ["tent", "tent", "rope", "lamp"],
    "Title": ["Red tent", None, "Blue rope", None],
    "Vendor": ["Acme", None, None, None],
    "Variant SKU": ["001", "002", "003", "004"],
    "Variant Price": ["9", None, "5", "7"],
    "Variant Barcode": ["4001", None, None, None],
    "Image": ["a.jpg", "b.jpg", None, None],
}


def test_variants_take_what_the_row_of_their_product_says():
    report = ReadReport("products.csv", read=4)
    frame = pd.DataFrame(VARIANTS, dtype=object)
    catalog = catalog_from_frame(frame, Columns(id="variant sku"), report)
    kept = catalog.frame.astype(object).where(catalog.frame.notna(), None)
    assert list(kept["title"]) == ["Red tent", "Red tent", "Blue rope", "004"]
    assert list(kept["Vendor"]) == ["Acme", "Acme", None, None]
    assert list(kept["Variant Barcode"])[1] is None
    assert list(kept["Image"])[:2] == ["a.jpg", "b.jpg"]
    assert report.notes == ["1 rows took the cells of their product, by Handle"]
    assert frame["Title"].isna().sum() == 2


def test_without_interactions_a_handle_is_a_product():
    catalog = catalog_from_frame(
        pd.DataFrame(VARIANTS, dtype=object), Columns(), ReadReport("products.csv", read=4)
    )
    assert catalog.ids.texts == ["lamp", "rope", "tent"]


def test_a_last_row_that_sums_up_the_others_is_no_item():
    report = ReadReport("items.csv", read=3)
    made = catalog(
        ("1", "Tent", "9"), ("2", "Rope", "5"), ("Total", None, "14"),
        names="id title price", report=report,
    )  # fmt: skip
    assert made.ids.texts == ["1", "2"]
    assert report.skipped == {"that is a total": 1}


@pytest.mark.parametrize("rows", [[("Total", None), ("1", "Tent")], [("1", "T"), ("Sum", "Game")]])
def test_a_total_in_the_middle_or_with_a_title_is_an_item(rows):
    assert len(catalog(*rows)) == 2


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (("$5", "6 €", "£7"), ["column price: amounts in $, €, £ are compared as bare numbers"]),
        (("5 €", "6 EUR", "eur 7"), []),
    ],
)
def test_amounts_in_several_currencies_are_said(cells, said):
    report = ReadReport("items.csv", read=3)
    rows = [(str(place), f"Tent {place}", cell) for place, cell in enumerate(cells)]
    catalog(*rows, names="id title price", report=report)
    assert report.notes == said


def test_the_sign_between_the_entries_of_a_list_is_not_read():
    items = pd.DataFrame({"id": [1, 2], "title": ["a|b", "c"], "tags": ["Rain|Snow", "Snow|Ice"]})
    catalog = read_dataset(items, None).catalog
    assert catalog.frame["tags"].tolist() == ["Rain|Snow", "Snow|Ice"]
    assert catalog.fields() == [["a|b", "c"], ["Rain Snow", "Snow Ice"]]
