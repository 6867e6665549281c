"""`--where` and the types of columns: what goes together, what does not, and what is said of it."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

from qkvsearch.errors import QkvError
from qkvsearch.store import BuildContents, CatalogRows, Workspace
from qkvsearch.tables.catalog import Catalog
from qkvsearch.tables.ids import Ids

ITEMS = [
    ("000467", "Rain jacket", 12.5, "2024-03-01", "Drama|War", 1, "12", 3.0, "2024-03-01 10:00:00"),
    ("000468", "École de nuit", 80.0, "2023-12-31", "Comedy", 0, "N/A", 4.0, "2024-12-31 23:00:00"),
    ("000469", "blue", None, None, None, None, "$1,299.00", 5.0, None),
    ("000470", "Straße ΟΔΟΣ", 500.0, "2024-01-01", "drama | War", 1, "66,80 €", None, None),
]
NAMES = ["id", "title", "Price", "Added", "genres", "stock", "List price", "Größe", "seen"]
# Owner's name, stored name, type.
FACTS = [
    ("SKU", "id", "text"), ("Name", "title", "text"), ("Price", "", "number"),
    ("Added", "", "date"), ("genres", "", "list"), ("in stock", "stock", "yes/no"),
    ("List price", "", "text"), ("Größe", "", "number"), ("seen", "", "date"),
]  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Row numbers of the items above for which a condition holds."""
    catalog = Catalog(
        Ids(item[0] for item in ITEMS), pd.DataFrame(ITEMS, columns=NAMES), ("title",)
    )
    facts = [
        {"name": name, "stored": stored, "type": type_, "role": stored if stored != "stock" else ""}
        for name, stored, type_ in FACTS
    ]
    workspace = Workspace(tmp_path_factory.mktemp("shop"))
    n_items = {"n_items": len(catalog), "columns": facts}
    contents = BuildContents(CatalogRows.of(catalog), Ids([]), facts=n_items)
    workspace.publish(contents, "build")
    catalog = workspace.open().catalog
    return lambda where: np.flatnonzero(catalog.conditions.mask(where)).tolist()


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        # types, and the owner's names
        ("price < 80", [0]),
        ("PRICE <= 80 AND sku LIKE '0004%'", [0, 1]),
        ("SKU = '000467' OR Name = 'blue'", [0, 2]),
        ("id = '000467' OR title = 'blue'", [0, 2]),
        ('"in stock"', [0, 3]),
        ('"In Stock" = 0', [1]),
        ('[in stock] IS NOT TRUE', [1, 2]),
        ("GRÖSSE > 3", [1, 2]),
        ('"größe" > 3', [1, 2]),
        ("price > Größe * 10", [1]),
        ("Name IS NULL", []),
        ("Price IS NULL", [2]),
        ("coalesce(price, 0) = 0", [2]),
        ("max(price, 50) > 50", [1, 3]),
        ("CASE WHEN price > 50 THEN 'dear' ELSE 'cheap' END = 'cheap'", [0, 2]),
        ("CASE name WHEN 'blue' THEN 1 END", [2]),
        ("iif(price > 50, 1, 0)", [1, 3]),
        ("nullif(price, 80) IS NULL", [1, 2]),
        ("price % 2 = 0 AND -price < -100", [3]),
        ("(price > 50) + (stock = 1) = 2", [3]),
        ("price BETWEEN 12 AND 80", [0, 1]),
        ("price IN (80, 12.5)", [0, 1]),
        ("CAST(price AS TEXT) LIKE '8%'", [1]),
        ("name || '!' = 'blue!'", [2]),
        ("price IS NOT 80", [0, 2, 3]),
        ("substr(added, 1, 4) = '2024'", [0, 3]),
        ("added LIKE '2024%'", [0, 3]),
        ("genres = 'Comedy'", [1]),
        ("0x10 < price", [1, 3]),
        # dates are compared as far as both are given
        ("added >= '2024'", [0, 3]),
        ("added > '2024'", []),  # after the year, not after its first moment
        ("added > '2024-01'", [0]),
        ("added <= '2023'", [1]),
        ("added = '2024-03'", [0]),
        ("added != '2024'", [1]),
        ("'2024' <= added", [0, 3]),
        ("added BETWEEN '2023' AND '2024-01'", [1, 3]),
        ("added IN ('2024-03', '2023')", [0, 1]),
        ("added IS '2024-01-01'", [3]),
        ("seen = '2024-12-31'", [1]),  # whatever the time of day
        ("seen <= '2024-12-31'", [0, 1]),
        ("seen < '2024-12-31 22:00'", [0]),
        ("CASE added WHEN '2024' THEN 1 END", [0, 3]),
        ("added = seen", [0]),
        # membership in a list
        ("has(genres, 'Drama')", [0, 3]),
        ("HAS(Genres, 'WAR')", [0, 3]),
        ("has(genres, 'ram')", []),
        ("has(genres, '')", []),
        ("NOT has(genres, 'Drama')", [1, 2]),  # an item without any has not this one
        ("has(genres, 'Drama') AND price > 100", [3]),
        ("has(genres, lower('COMEDY'))", [1]),
        # letters of any case and composition
        ("name LIKE 'école%'", [1]),
        ("name LIKE '%ÉCOLE%'", [1]),
        ("name LIKE 'e\u0301cole%'", [1]),  # the same letters, composed of two signs
        ("name LIKE 'ecole%'", []),
        ("name LIKE '_cole%'", [1]),
        ("name LIKE '%DE_NUIT'", [1]),
        ("name NOT LIKE '%e%'", []),
        ("name LIKE 'strasse%'", [3]),
        ("name LIKE 'stra_e%οδοσ'", [3]),
        ("lower(name) = 'école de nuit'", [1]),
        ("upper(name) = 'ÉCOLE DE NUIT'", [1]),
        ("name = 'ÉCOLE DE NUIT'", []),
        ("name = 'ÉCOLE DE NUIT' COLLATE NOCASE", [1]),
        ("name LIKE '50!%' ESCAPE '!'", []),
        ("name GLOB 'É*'", [1]),
        ("name GLOB 'é*'", []),
        # bound parameters
        (("price < ?", [80]), [0]),
        (("price < ? OR name = ?", (80, "blue")), [0, 2]),
        (("price < :top", {"top": 80}), [0]),
        (("price > :a AND price < :b AND price > :a", {"a": 20, "b": 100}), [1]),
        (("name = '?' OR price < ? -- ?", [80]), [0]),
        (("price /* ? */ < ?", [np.float32(80)]), [0]),
        (("price = ?", [np.int64(80)]), [1]),
        (("price IS ?", [None]), [2]),
        (("added >= ?", [date(2024, 1, 1)]), [0, 3]),
        (("added = ?", ["2024-03"]), [0]),
        (("seen > ?", [datetime(2024, 3, 1, 11, tzinfo=timezone(timedelta(hours=2)))]), [0, 1]),
        (("seen > ?", [datetime(2024, 3, 1, 11, tzinfo=UTC)]), [1]),
        (("stock = ?", [True]), [0, 3]),
        (("has(genres, ?)", ["comedy"]), [1]),
        (("name LIKE ?", ["%é%"]), [1]),
        (("sku IN (?, ?)", ["000467", "000470"]), [0, 3]),
        (("name = ?", ["') OR (1"]), []),
        (("price < 80",), [0]),
    ],
)  # fmt: skip
def test_which_items_a_condition_holds_for(kept, where, rows):
    assert kept(where) == rows


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("name > 5", "'École de nuit', 'blue', and 5 is a number: compare it with '5'"),
        ('"list price" < 80', "letter by letter, so build with `types` List price:number, from"),
        ("\"list price\" = 80", "compare it with '80', or build with `types` List price:number"),
        ("80 > \"list price\"", "column 'List price' is text, such as 'N/A'"),
        ("price > 'abc'", "and 'abc' is text: compare it with a number, without quotes"),
        ("price < '80'", "write 80 without quotes"),
        ("sku = 467", "and 467 is a number: compare it with '467' (columns"),
        ("name = price", "both have to be of one type"),
        ("name IN ('blue', 5)", "column 'Name' is text"),
        ("price BETWEEN 1 AND 'x'", "column 'Price' is a number"),
        ("price BETWEEN 'x' AND 1", "column 'Price' is a number"),
        ("CASE WHEN price > 5 THEN name ELSE 0 END = 'x'", "column 'Name' is text"),
        ("CASE price WHEN 'x' THEN 1 END", "column 'Price' is a number"),
        ("CASE WHEN name THEN 1 END", "a condition is needed"),
        ("iif(price > 5, name, 3) = 'a'", "and 3 is a number"),
        ("iif(name, 1, 0)", "a condition is needed"),
        ("coalesce(price, 'none') = 80", "'none' is text"),
        ("ifnull(name, 0) = 'x'", "column 'Name' is text"),
        ("nullif(price, 'x') = 1", "'x' is text"),
        ("max(price, name) > 5", "column 'Price' is a number"),
        ("min(5, 'x') > 5", "'x' is text"),
        ("name + 1 > 2", "'École de nuit', 'blue', and name + 1 needs a number"),
        ("-name < 5", "needs a number"),
        ("price + name > 5", "column 'Name' is text"),
        ("round(name) = 5", "needs a number"),
        ("abs(genres) = 5", "needs a number"),
        ("CAST(name AS REAL) > 5", "needs a number"),
        ("lower(price) = 'x'", "CAST(price AS TEXT)"),
        ("price LIKE '8%'", "CAST(price AS TEXT)"),
        ("glob('8*', price)", "CAST(price AS TEXT)"),
        ("length(5) = 1", "write '5'"),
        ("name", "a condition is needed"),
        ("NOT name", "a condition is needed"),
        ("price > 5 AND name", "a condition is needed"),
        ("name IS TRUE", "a condition is needed"),
        ("'blue'", "a condition is needed"),
        ("added > 2024", "and 2024 is a number: write the date in quotes, '2024'"),
        ("added > 5", "write a date as '2024-03-01', or its beginning: '2024-03', '2024'"),
        ("added > 'March 1, 2024'", "write a date as '2024-03-01'"),
        ("added > '2024-13-01'", "write a date as"),
        ("added > '2024-02-30'", "write a date as"),
        ("added > '2024-03-01T10:00'", "write a date as"),
        ("added > '202'", "write a date as"),
        ("added > ''", "write a date as"),
        ("added > name", "write a date as"),
        ("added IN ('2024', '2024-03')", "'2024' already includes '2024-03'"),
        ("added + 1 > '2024'", "needs a number"),
        ("coalesce(added, '2024-01-01') <= '2024'", "compare columns of dates themselves"),
        ('"in stock" = \'yes\'', 'write "in stock" = 1 for yes, "in stock" = 0 for no'),
        ("stock > 5", "write stock = 1 for yes"),
        ("genres > 5", "look for an entry by has(genres, 'ENTRY')"),
        ("price = NULL", "write IS NULL"),
        ("price NOT IN (80, NULL)", "write IS NULL"),
        ("1 = '1'", "1 is a number"),
        # membership in what is no list
        ("has(name, 'x')", "'École de nuit', 'blue'; build with `types` Name:list"),
        ("has('a|b', 'a')", "has() looks into a column of lists"),
        ("has(genres, 5)", "write '5'"),
        ("has(genres, 'Drama|War')", "one entry"),
        # values of bound parameters
        (("price < ?", ["80"]), "'80' is text: write 80 without quotes"),
        (("name = ?", [5]), "column 'Name' is text"),
        (("added > ?", [2024]), "'2024'"),
        (("name = ?", [date(2024, 1, 1)]), "column 'Name' is text"),
        (("price < ?", [None]), "write IS NULL"),
        (("price < ?", []), "no value for ? number 1 (0 given)"),
        (("price < ?", [80, 1]), "a value for ? number 2"),
        (("price < :a", {"b": 1}), "no value for :a"),
        (("price < :a", {"a": 1, "b": 1}), "a value for :b"),
        (("price < :a", [80]), "no value for :a"),
        (("price < ?", [float("nan")]), "value 1 is nan"),
        (("price < ?", [float("inf")]), "value 1 is inf"),
        (("price < :a", {"a": [1]}), "value a is [1]"),
        (("name = ?", [b"x"]), "value 1 is b'x'"),
        (("price < ?", 80), "a list, such as [80]"),
        (("name = ?", "blue"), "a list, such as [80]"),
        (5, "not int"),
        ((), "not tuple"),
        ((5, [1]), "not tuple"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_an_error_that_says_what_to_write(kept, where, said):
    with pytest.raises(QkvError) as error:
        kept(where)
    assert said in str(error.value)
    assert str(error.value).startswith(f"`where` {where!r}: " if type(where) is str else "`where`")


@pytest.mark.parametrize(
    "where",
    ["strftime('%Y', added) = '2024'", "max(price) > 5", "$x > 1", "@x > 1", "?1 > 1", "price AS p",
     "(1, 2) = (1, 2)", "x'00' = name", "items_1.price > 5", "rowid = 1", "_position = 1",
     "current_date > added", "genres -> '$' = 1", "name MATCH 'x'", "name REGEXP 'x'",
     "price > 5; 1", "id IN users_1", "name COLLATE nowhere = 'x'", "trim(name, sku) = 'x'",
     "name LIKE 'a' ESCAPE 'bb'", "has(genres)", "count(*) > 1"],
)  # fmt: skip
def test_what_cannot_be_checked_is_refused(kept, where):
    with pytest.raises(QkvError, match="`where`"):
        kept(where)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("instock", r'no such column: instock; did you mean "in stock"\?'),
        ("Name = Rain", r"no such column: Rain \(texts stand in single quotes\)"),
        ("List price < 5", r'cannot be read .*\(columns: SKU, Name, Price, .*, "in stock", "List'),
    ],
)
def test_names_of_several_words_are_shown_in_the_quotes_they_need(kept, where, said):
    with pytest.raises(QkvError, match=said):
        kept(where)
