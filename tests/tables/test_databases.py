"""Tables of a SQLite file."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.files.tables import read_table

TABLES = """
CREATE TABLE products (sku TEXT, name TEXT, price NUMERIC);
INSERT INTO products VALUES ('007', 'kettle', 12.5), ('008', NULL, 3);
"""
ORDERS = """
CREATE TABLE orders (customer_email TEXT, product_sku TEXT, quantity INTEGER);
INSERT INTO orders VALUES ('ann@example.org', '007', 2), ('bob@example.org', '008', -1);
"""


@pytest.fixture
def shop(tmp_path):
    """The path of a database of two tables."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.executescript(TABLES + ORDERS)
    return str(tmp_path / "shop.db")


def cells(source):
    return read_table(source)[0].fillna("").to_numpy().tolist()


PRODUCTS = [["007", "kettle", "12.5"], ["008", "", "3"]]


@pytest.mark.parametrize("part", ["products", "PRODUCTS"])
def test_a_table_of_a_file(shop, part):
    assert cells(f"{shop}#{part}") == PRODUCTS


def test_a_file_is_known_by_its_content(shop, tmp_path):
    shutil.copy(shop, tmp_path / "shop.csv")
    assert cells(f"{tmp_path}/shop.csv#products") == PRODUCTS


def test_the_only_table_needs_no_name(tmp_path):
    with closing(sqlite3.connect(tmp_path / "one.db")) as database:
        database.executescript(TABLES)
    assert cells(tmp_path / "one.db") == PRODUCTS


def test_a_wrong_name_of_a_table_or_a_column_is_told(shop):
    with pytest.raises(DataError, match=r"2 tables are in it; say which, such as .*#orders"):
        read_table(shop)
    with pytest.raises(DataError, match=r"no table 'product' in it; did you mean products\?"):
        read_table(f"{shop}#product")


@pytest.mark.parametrize("statement", ["SELECT sku FROM products", "DELETE FROM orders"])
def test_no_statement_runs(shop, statement):
    with pytest.raises(DataError, match="no table"):
        read_table(f"{shop}#{statement}")


PROGRAMS = {
    "a view": "CREATE VIEW items AS SELECT 1 AS id, hex(zeroblob(400000000)) AS title",
    "a view without end": "CREATE VIEW items AS WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL "
    "SELECT id + 1 FROM c) SELECT id, 'x' AS title FROM c",
    "a column": "CREATE TABLE items (id, title AS (hex(zeroblob(400000000))))",
    "a stored column": "CREATE TABLE items (id, title AS (id + 1) STORED)",
    "a virtual table": "CREATE VIRTUAL TABLE items USING fts5(id, title)",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_computed_is_refused_before_it_runs(tmp_path, program):
    with closing(sqlite3.connect(tmp_path / "t.db")) as database:
        database.execute(program)
        database.commit()
    with pytest.raises(DataError, match=r"t\.db#items: items is computed .*export it as CSV"):
        read_table(f"{tmp_path}/t.db#items")


def test_a_single_table_needs_no_name_beside_views(tmp_path):
    with closing(sqlite3.connect(tmp_path / "t.db")) as database:
        database.execute("CREATE TABLE items AS SELECT '1' AS id, 'Tent' AS title")
        database.execute("CREATE VIEW v AS SELECT * FROM items")
        database.commit()
    assert cells(tmp_path / "t.db") == [["1", "Tent"]]


def test_a_damaged_database_is_named(shop, tmp_path):
    content = bytearray(Path(shop).read_bytes())
    content[100:4000] = bytes(3900)
    (tmp_path / "bad.db").write_bytes(content)
    with pytest.raises(DataError, match=r"bad\.db"):
        read_table(f"{tmp_path}/bad.db#orders")


def test_bytes_that_are_no_utf_8_are_read_all_the_same(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        database.execute("CREATE TABLE t AS SELECT CAST(x'61FF' AS TEXT) AS a, x'62FF' AS b")
        database.commit()
    assert cells(tmp_path / "x.db") == [["a\ufffd", "b\ufffd"]]
    warnings = read_table(tmp_path / "x.db")[1].warnings
    assert warnings == [f"x.db: 1 cell of column {n} with bytes that are not UTF-8" for n in "ab"]


def test_a_database_in_wal_mode_is_read_and_its_folder_stays_as_it_is(shop, tmp_path):
    with closing(sqlite3.connect(shop)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    before = sorted(tmp_path.iterdir())
    assert cells(f"{shop}#products") == PRODUCTS
    assert sorted(tmp_path.iterdir()) == before
    with closing(sqlite3.connect(shop)) as database:  # what is not in the file itself yet
        database.execute("UPDATE products SET name = 'pot' WHERE sku = '008'")
        database.commit()
        assert cells(f"{shop}#products")[1] == ["008", "pot", "3"]


PASSWORD = "top-s3cret"


@pytest.mark.parametrize(
    "address", ["postgresql+pg8000://ann:{}@127.0.0.1:1/shop#orders", "https://ann:{}@x.org/?a=1"]
)
@pytest.mark.parametrize("read", [read_table, lambda source: read_dataset(source, None)])
def test_an_address_is_refused_without_its_password(address, read):
    with pytest.raises(DataError, match=r"(https|postgresql\+pg8000)://…: not a file") as error:
        read(address.format(PASSWORD))
    assert PASSWORD not in str(error.value)
