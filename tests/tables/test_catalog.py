"""The catalog: one row an item, nothing lost on the way, names that SQL can hold apart."""

import pandas as pd
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.catalog import catalog_from_frame, catalog_of_ids
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.ids import Ids
from qkvsearch.tables.report import ReadReport


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


@pytest.mark.parametrize(
    ("cells", "combined", "kind"),
    [
        (["x", None, "y", "x"], "x|y", "list"),
        (["x|y", "z", "y|w", "x"], "x|y|w", "list"),
        (["x", "z", "y" * 61, None], "x", "text"),
        ([None, "9", "5", "7"], 5, "number"),
        (["7.50", "9", None, "7.50"], 7.5, "number"),
        (["2024-03-02", "2024-01-01", "2024-03-01", None], "2024-03-01", "date"),
        (["yes", "no", "no", "yes"], 0, "yes/no"),
    ],
)
def test_rows_with_the_same_id_are_one_item_with_all_short_texts_and_the_smallest_number(
    cells, combined, kind
):
    report = ReadReport("items.csv", read=4)
    rows = zip(["1", "2", " 1", "1"], ["old", "b", None, "new"], cells, strict=True)
    made = catalog(*rows, names="id title n", report=report)
    assert (column(made, "title"), column(made, "n")[0]) == (["old", "b"], combined)
    assert made.columns[2].type == kind
    assert (report.merged, report.kept) == (2, 2)
    assert "1 item with several texts of title: the first one counts" in report.notes
    assert any("3 rows were combined into 1 item, such as 1 of 3 rows" in x for x in report.notes)


def test_rows_without_an_id_or_with_a_failed_formula_are_skipped_and_counted():
    report = ReadReport("items.csv", read=6)
    rows = [(None, "a"), ("  ", "b"), ("#NAME?", "c"), ("#REF!", "d"), ("#1", "e"), ("f", "#N/A")]
    made = catalog(*rows, report=report)
    assert list(made.ids) == ["#1", "f"]
    assert report.skipped == {"without an id": 2, "with a spreadsheet error for an id": 2}
    assert report.kept == 2


def test_rows_without_a_column_are_an_error(tmp_path):
    (tmp_path / "items.json").write_text("{}")
    with pytest.raises(DataError, match=r"items\.json: its rows have no columns"):
        read_dataset(tmp_path / "items.json", None)


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
    assert list(made.frame) == ["id", "title", "Genre", "genre_2", "GENRE_2_2", "_position"]
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


def test_the_report_says_how_to_ask_for_columns_whose_names_mean_something_else():
    report = ReadReport("items.csv", read=2)
    rows = [("p1", "Ada", "Dr", "7", "5", "1", "yes"), ("p2", "Alan", "Mr", "8", "4", "2", "no")]
    catalog(
        *rows, names="sku name title ID Price price true", report=report, id="sku", title="name"
    )
    notes = "\n".join(report.notes)
    assert "title is asked for as title, and is items.title in results" in notes
    assert "ID is asked for as ID; the id is column sku" in notes
    assert "Price, price" in notes
    assert "true_2" in notes


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
    made = catalog(("1", title), ("2", "Anchor (1950)"), ("3", "Bell (1951)"))
    assert column(made, "year") == [year, 1950, 1951]
    assert column(made, "title")[0] == title.strip()


@pytest.mark.parametrize(
    ("other", "has_year"),
    [
        ({}, True),
        ({"Year": ["7", "8", "9"]}, False),
        ({"Year-Of-Publication": ["1995", "1950", "1951"]}, False),
        ({"released": ["1995-01-31", "1950-03-01", None]}, False),
        ({"pages": ["120", "80", "1951"]}, True),
    ],
)
def test_a_year_is_a_column_where_most_titles_have_one_and_no_column_says_it(other, has_year):
    titles = ["Kettle (1995)", "Anchor (1950)", "Bell"]
    frame = pd.DataFrame({"id": ["1", "2", "3"], "title": titles, **other}, dtype=object)
    made = catalog_from_frame(frame, Columns(), ReadReport("items.csv", read=3))
    assert ("year" in made.frame) == has_year
    if has_year:
        assert (made.columns[2].empty, made.columns[2].changed) == (0.3333, {"found in titles": 2})
    few = frame.assign(title=["Kettle (1995)", "Anchor", "Bell"])
    assert "year" not in catalog_from_frame(few, Columns(), ReadReport("items.csv", read=3)).frame


def test_without_a_title_column_the_id_is_the_title():
    made = catalog(("b", "x"), ("a", "y"), ("c", "x"), ("d", "x"), names="id colour")
    assert column(made, "title") == column(made, "id") == ["a", "b", "c", "d"]
    assert made.texts() == ["y", "x", "x", "x"]  # an id is no text to search


def test_a_blank_title_is_the_id():
    assert column(catalog(("7", None), ("8", "b")), "title") == ["7", "b"]


def test_named_text_columns_are_read_with_blanks_for_gaps_and_numbers_as_written():
    rows = [("1", "a", "5"), ("2", "b", None)]
    made = catalog(*rows, names="id title n", text=["title", "n"])
    assert made.text_columns == ("title", "n")
    assert made.texts() == ["a\n5", "b\n"]
    assert catalog(*rows, names="id title n").text_columns == ("title",)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["red", "blue", None], ""),
        (["active"] * 3, ""),
        (["Rain|Snow", "Snow", "Sun|Rain"], ""),
        (["Größe S/M", "XL", "38"], ""),
        (["Home/Kitchen", "Home/Garden", "Pets"], ""),
        (["128GB", "128GB", "128GB"], ""),
        (["Müller, H.", "Node.js", "AC/DC"], ""),
        (["猫の本", "犬の本", "本"], ""),
        ([None] * 3, "empty"),
        (["AB-12/34", "AB-12/35", "CD-9/1"], "codes"),
        (["a1001|a1002", "a1003", "a1004|a1005"], "codes"),
        (["https://a.example/x?y=1", "www.b.example", None], "links"),
        (["https://a.example/1, https://a.example/2", "http://b.example", None], "links"),
        (["data:image/png;base64,AAAA", "https://x.example", None], "links"),
        (["img/a.jpg", "b.png", "C:\\My files\\c.gif"], "file paths"),
        (["a@x.example", "b@y.example", "a@x.example"], "e-mail addresses"),
        (["1|2", "2", "2|3"], "numbers"),
        (["10:30", "10:30", "7:05"], "numbers"),
        (["PT12M5S", "PT1H2M", "P1DT40M"], "lengths of time"),
        (["QUJD1" * 30, "REVG1" * 20, "R0hJ" * 17 + "=="], "encoded data"),
        (["d41d8cd98f00b204e9800998ecf8427e"] * 3, "encoded data"),
    ],
)
def test_texts_and_lists_are_searched_but_codes_links_paths_addresses_and_numbers(cells, reason):
    report = ReadReport("items.csv", read=3)
    rows = zip("123", ["a x", "b x", "c x"], cells, strict=True)
    made = catalog(*rows, names="id title thing", report=report)
    assert made.text_columns == (("title",) if reason else ("title", "thing"))
    assert report.chosen.endswith(
        f"not searched: thing ({reason})" if reason else "searched: title, thing"
    )


def test_lengths_of_time_are_no_ids():
    report = ReadReport("talks.csv", read=2)
    rows = [("Tents", "PT40M10S"), ("Ropes", "PT1H2M")]
    assert catalog(*rows, names="title duration", report=report).ids.texts == ["1", "2"]


def test_the_shortest_columns_come_first_after_the_title_and_ignored_ones_are_gone():
    rows = [("1", "Tent", "for two people", "red", "x"), ("2", "Rope", "a long one", "blue", "y")]
    made = catalog(*rows, names="id title description color margin", ignore=["MARGIN"])
    assert made.text_columns == ("title", "color", "description")
    assert "margin" not in made.frame


def test_without_an_id_the_rows_are_numbered_and_rows_of_one_title_stay_apart():
    report = ReadReport("recipes.csv", read=3)
    rows = [("Pancakes", "eggs, milk"), ("Pancakes", "oats"), ("Soup", "basil, tomatoes")]
    made = catalog(*rows, names="Dish Ingredients", report=report)
    assert made.ids.texts == ["1", "2", "3"]
    assert column(made, "title") == ["Pancakes", "Pancakes", "Soup"]
    assert "id: the number of the row (`id_column` names a column)" in report.chosen


@pytest.mark.parametrize(
    "name", ["Accession No.", "accessionNumber", "Inv.-Nr.", "藏品编号", "Objektnummer", "登録番号"]
)
def test_numbers_of_a_collection_are_the_ids_where_each_row_has_its_own(name):
    titles = ["Vase", "Bowl", "Vase"]

    def ids(*numbers):
        frame = pd.DataFrame({"Title": titles, name: list(numbers)})
        return read_dataset(frame, None).catalog.ids.texts

    assert ids("K1", "K2", "K3") == ["K1", "K2", "K3"]
    assert ids("K1", "K1", "K3") == ids("K1", None, "K3") == ["1", "2", "3"]


def test_a_log_given_as_items_is_refused():
    rows = [(user, item, item) for user in ("u1", "u2", "u3") for item in ("a", "b")]
    with pytest.raises(DataError, match=r"4 of 6 rows repeat an id of column item, and .* user "):
        catalog(*rows, names="user item title", id="item")
    assert len(catalog(*rows, names="user item title", id="item", ignore=["user"])) == 2


def test_items_of_a_log_are_titled_by_their_ids():
    made = catalog_of_ids(Ids(["4", "30"]))
    assert column(made, "title") == ["4", "30"]
    assert (made.text_columns, made.texts()) == ((), ["", ""])
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


def test_variants_of_a_shop_are_one_item_of_which_each_price_is_stored():
    report = ReadReport("products.csv", read=4)
    variants = VARIANTS | {"Variant Price": ["9", "7", "5", "7"]}
    made = catalog_from_frame(pd.DataFrame(variants, dtype=object), Columns(), report)
    assert column(made, "title") == ["lamp", "Blue rope", "Red tent"]
    assert column(made, "Variant SKU") == ["004", "003", "001|002"]
    assert column(made, "Variant Price") == [7, 5, 7]
    assert made.variants.to_dict("split") == {
        "index": [2, 2],
        "columns": ["Variant SKU", "Variant Price", "Image"],
        "data": [["001", 9, "a.jpg"], ["002", 7, "b.jpg"]],
    }  # fmt: skip


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


def test_one_object_with_a_list_of_items_is_no_item(tmp_path):
    path = tmp_path / "answer.json"
    path.write_text('{"total": 2, "data": [{"id": 1, "title": "A"}, {"id": 2, "title": "B"}]}')
    dataset = read_dataset(path, None)
    assert len(dataset.catalog) == 2
    assert "its rows are in data; left out: total" in str(dataset.reports[0])
