"""Which column is which: told in any case, guessed by name or by cells, or asked for."""

import pandas as pd
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns, find_column, require_column
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.ids import Ids
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.role_choice import choose_catalog_columns, choose_log_columns
from qkvsearch.tables.table import table_of


@pytest.mark.parametrize(
    ("role", "names", "found"),
    [
        ("id", ["title", "id"], "id"),
        ("id", ["Video ID", "title"], "Video ID"),
        ("id", ["movie-id", "item"], "movie-id"),
        ("title", ["Original_Title", "x"], "Original_Title"),
        ("user", ["movieId", "userId"], "userId"),
        ("item", ["userId", "movieId"], "movieId"),
        ("item", ["id", "item"], "item"),
        ("rating", ["SCORE"], "SCORE"),
        ("time", ["unix.review.time"], "unix.review.time"),
        ("rating", ["views"], None),
        ("weight", ["price", "Quantity"], "Quantity"),
        ("weight", ["price"], None),
    ],
)
def test_usual_names_are_found_without_case_spaces_and_dashes(role, names, found):
    assert find_column(role, None, names, "f.csv") == found


def test_of_two_equal_spellings_the_first_column_is_taken():
    assert find_column("user", None, ["User_ID", "userid"], "f.csv") == "User_ID"


@pytest.mark.parametrize("told", ["Film", "film", " FILM "])
def test_a_told_name_is_found_in_any_case(told):
    assert find_column("id", told, ["id", "Film"], "f.csv") == "Film"


def test_a_told_name_prefers_its_own_case():
    assert find_column("id", "film", ["Film", "film"], "f.csv") == "film"


def test_a_misspelt_name_is_refused_with_a_suggestion_option_and_columns():
    with pytest.raises(DataError, match=r"f\.csv: no column 'flim' \(`id_column`\)") as error:
        find_column("id", "flim", ["film", "year"], "f.csv")
    assert "did you mean film?" in str(error.value)
    assert "(columns: film, year)" in str(error.value)


def test_a_role_that_cannot_be_guessed_names_the_option():
    with pytest.raises(DataError, match=r"which column is the user; name it with `user_column`"):
        require_column("user", None, ["a", "b"], "f.csv")


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("id", "Artikel-Nr."), ("id", "Référence produit"), ("id", "商品コード"), ("id", "الرقم"),
        ("id", "編號"), ("id", "商品編號"), ("title", "名稱"), ("user", "會員"),
        ("time", "下單時間"),
        ("title", "Bezeichnung"), ("title", "Название"), ("title", "商品名称"), ("title", "שם"),
        ("user", "customer_email"), ("user", "Kunden-Nr."), ("user", "Покупатель"),
        ("item", "external movie id"), ("item", "productId"), ("item", "Lineitem sku"),
        ("rating", "Calificación"), ("rating", "star_rating"), ("rating", "評価"),
        ("weight", "hoursPlayed"), ("weight", "Quantité"), ("weight", "Кол-во"),
        ("time", "ordered_at"), ("time", "date_of_purchase"), ("time", "Дата заказа"),
    ],
)  # fmt: skip
def test_usual_words_of_many_languages_are_found(role, name):
    assert find_column(role, None, ["x", name], "f.csv") == name


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("user", "user_age"), ("user", "customer_segment"), ("item", "order_number"),
        ("item", "product_category"), ("weight", "price"), ("weight", "total_price"),
        ("weight", "like_count"), ("rating", "rating_count"), ("time", "date_of_birth"),
        ("time", "delivery_date"), ("user", "item"), ("id", "channel_id"),
    ],
)  # fmt: skip
def test_words_beside_the_telling_one_make_it_another_thing(role, name):
    assert find_column(role, None, ["x", name], "f.csv") is None


def log_of(columns=None, item_ids=None, **cells):
    report = ReadReport("log.csv")
    frame = pd.DataFrame(cells, dtype=object)
    return choose_log_columns(table_of(frame), columns or Columns(), report, item_ids), report


def test_a_title_without_a_usual_name_is_found_by_its_words():
    found, report = catalog_of(
        nro=["1", "2", "3"],
        laji=["soft goods", "soft goods", "soft goods"],
        tuote=["Red rain jacket", "Blue tent", "Tent, heavy"],
        description=["for the rain", "for two", "for all"],
    )
    assert (found.id, found.title) == (None, "tuote")
    assert "title = tuote (from its contents)" in report.chosen


def test_a_short_description_is_a_title_where_there_is_no_other():
    found, _ = catalog_of(sku=["1", "2"], description=["Red rain jacket", "Blue tent"])
    assert found.title == "description"


def test_a_log_without_a_header_is_an_error_that_says_so():
    with pytest.raises(DataError, match="The first row looks like data: add a row of names"):
        log_of(**{"u1": ["a", "b"], "0007": ["1", "2"], "5": ["1", "2"]})


@pytest.mark.parametrize(
    "cells",
    [
        ["9 €", "8 €"],
        ["1 March 2024", "2 March 2024"],
        ["a", "bc"],
        ["red", "red"],
        ["x1000", "y2000"],
    ],
)
def test_prices_dates_letters_repeated_texts_and_codes_are_no_titles(cells):
    assert catalog_of(sku=["1", "2"], x=cells)[0].title == "sku"


def test_a_file_without_a_header_is_a_warning():
    _, report = catalog_of(**{"0": ["1", "2"], "Red tent": ["Blue tent", "A rope"]})
    assert "the first row looks like data, 0, Red tent, and is read as" in report.warnings[0]


def test_a_year_beside_usual_names_is_a_column():
    assert not catalog_of(**{"sku": ["1", "2"], "2019": ["7", "9"]})[1].warnings


def test_a_log_whose_user_cannot_be_told_lists_all_its_columns():
    with pytest.raises(DataError, match=r"is the user; .* \(columns: who, sku, quantity\)$"):
        log_of(who=["a", "b"], sku=["1", "2"], quantity=["1", "2"])


SHOP = {
    "customer_email": ["a@x.org", "b@x.org"],
    "product_sku": ["1", "2"],
    "quantity": ["1", "-1"],
    "price": ["9.50", "3"],
    "ordered_at": ["2024-03-01", "1.3.24"],
}


def test_a_shops_log_is_guessed_by_name_and_the_price_is_no_weight():
    found, report = log_of(**SHOP)
    assert (found.user, found.item, found.weight) == ("customer_email", "product_sku", "quantity")
    assert (found.rating, found.time) == (None, "ordered_at")
    assert report.chosen == (
        "user = customer_email, item = product_sku, weight = quantity, time = ordered_at (by name)"
        "; unused: price"
    )
    assert [(column.name, column.role, column.type) for column in report.columns] == [
        ("customer_email", "user", "text"),
        ("product_sku", "item", "text"),
        ("quantity", "weight", "number"),
        ("ordered_at", "time", "date"),
    ]


def test_a_log_without_telling_names_is_guessed_by_what_is_in_it():
    cells = dict(zip("abcde", SHOP.values(), strict=True))
    found, report = log_of(item_ids=Ids(["1", "2", "3"]), **cells)
    assert (found.user, found.item, found.time) == ("a", "b", "e")
    assert "user = a, item = b, time = e (from its contents); unused: c, d" in report.chosen


def test_the_items_of_a_log_are_those_of_the_catalog_whatever_their_column_is_called():
    found, report = log_of(item_ids=Ids(["k1"]), user=["u"], item=["Kettle"], code_2=["K1"])
    assert found.item == "code_2"
    assert "column item left out: it is named as the item, and row 0 does not fit" in report.notes


def test_told_and_guessed_columns_are_found_alike():
    told = Columns(user="CUSTOMER_EMAIL ", item="Product_SKU", weight="quantity", time="ordered_at")
    found, report = log_of(told, **SHOP)
    assert found == log_of(**SHOP)[0]
    assert report.columns == log_of(**SHOP)[1].columns
    assert "(your choice)" in report.chosen


def test_a_told_price_is_a_weight():
    assert log_of(Columns(weight="price"), **SHOP)[0].weight == "price"


def test_a_column_that_is_named_as_a_weight_and_has_words_is_none():
    found, report = log_of(user=["u"] * 3, item=["1", "2", "3"], amount=["1", "much", "some"])
    assert found.weight is None
    assert (
        "column amount left out: it is named as the weight, and row 1 does not fit" in report.notes
    )


def test_a_log_with_nothing_like_a_user_says_how_to_name_it():
    with pytest.raises(DataError, match="which column is the user; name it with `user_column`"):
        log_of(x=["1"], item=["2"])


def catalog_of(columns=None, **cells):
    report = ReadReport("items.csv")
    frame = pd.DataFrame(cells, dtype=object)
    return choose_catalog_columns(frame, columns or Columns(), report), report


def test_a_column_with_a_code_of_its_own_in_every_row_is_the_id():
    found, report = catalog_of(
        kind=["a", "a", "b"],
        cost=["1.50", "2.50", "3.50"],
        since=["2024-01-01", "2024-01-02", "2024-01-03"],
        name=["K x", "K y", "K z"],
        count=["1", "2", "3"],
        nr=["k-101", "k-102", "k-103"],
    )
    assert (found.id, found.title) == ("nr", "name")
    assert report.chosen == "title = name (by name); id = nr (from its contents)"


@pytest.mark.parametrize(
    "cells",
    [["k-101", "k-101"], ["k-101", None], ["red tent", "blue tent"], ["tent", "rope"], ["1", "1"]],
)
def test_without_such_a_column_the_rows_are_numbered_unless_a_log_names_the_items(cells):
    found, report = catalog_of(nr=cells, kind=["a", "a"])
    assert found.id is None
    assert report.chosen.endswith("id: the number of the row (`id_column` names a column)")
    items = pd.DataFrame({"nr": cells, "kind": ["a", "a"]}, dtype=object)
    with pytest.raises(DataError, match="which column is the id"):
        read_dataset(items, pd.DataFrame({"user": ["u"], "item": ["gone"]}))


@pytest.mark.parametrize("name", ["Nr", "Nr.", "No.", "№", "Nummer", "Número"])
def test_a_column_named_as_a_number_is_the_id_where_its_cells_tell_the_rows_apart(name):
    assert catalog_of(**{name: ["1", "2"], "kind": ["a", "a"]})[0].id == name
    assert catalog_of(**{name: ["1", "1"], "kind": ["a", "a"]})[0].id is None
    assert catalog_of(**{name: ["1", "2"], "sku": ["a", "b"]})[0].id == "sku"


def test_names_come_before_what_is_in_the_columns():
    assert catalog_of(nr=["k-101", "k-102"], id=["1", "1"])[0].id == "id"


def test_of_several_ids_that_of_the_interactions_is_taken():
    items = pd.DataFrame({"ean": [41, 42, 43], "artikelnummer": ["a-1", "a-2", "a-3"]})
    log = pd.DataFrame({"user": ["u", "u", "v"], "artikelnummer": ["a-1", "a-3", "gone"]})
    dataset = read_dataset(items, log)
    assert dataset.catalog.ids.texts == ["a-1", "a-2", "a-3"]
    assert "id = artikelnummer (by the items of the interactions)" in dataset.reports[0].chosen
    assert read_dataset(items, None).catalog.ids.texts == ["41", "42", "43"]


@pytest.mark.parametrize(
    ("header", "roles"),
    [
        ("userId,movieId,rating,timestamp", "user item rating time"),
        ("user_id,book_id,is_read,rating,is_reviewed", "user item - rating -"),
        ("userID,artistID,weight", "user item weight"),
        ("review_id,user_id,business_id,stars,date,text", "- user item rating time -"),
        ("User-ID;ISBN;Book-Rating", "user item rating"),
        ("user-id,game-title,behavior-name,value", "user item event -"),
        (
            "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country",
            "- item - weight time - user -",
        ),
        ("rating,title,text,asin,parent_asin,user_id,timestamp", "rating - - item - user time"),
        ("Kunden-Nr.;Artikel-Nr.;Menge;Bestelldatum;Preis", "user item weight time -"),
        ("用户ID,商品ID,数量,下单时间", "user item weight time"),
    ],
)
def test_the_headers_of_well_known_logs_are_understood(header, roles):
    names = header.replace(";", ",").split(",")
    row = {"time": "2024-03-01", "rating": "4", "weight": "2"}
    expected = dict(zip(names, roles.split(), strict=True))
    _, report = log_of(**{name: [row.get(role, "x")] for name, role in expected.items()})
    found = {column.name: column.role for column in report.columns}
    assert {name: found.get(name, "-") for name in names} == expected
