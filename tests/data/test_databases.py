"""Databases as tables: a SQLite file, and a real PostgreSQL where one is installed."""

import os
import shutil
import socket
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from qkvsearch.data.files import databases
from qkvsearch.data.files.tables import read_table
from qkvsearch.errors import DataError

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


@pytest.mark.parametrize("part", ["products", "PRODUCTS", "SELECT * FROM products"])
def test_a_table_or_a_query_of_a_file(shop, part):
    assert cells(f"{shop}#{part}") == PRODUCTS
    assert cells(f"sqlite:///{shop}#{part}") == PRODUCTS


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
    with pytest.raises(DataError, match="no such column: nope"):
        read_table(f"{shop}#SELECT nope FROM orders")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM orders", "SELECT 1; DELETE FROM orders", "PRAGMA user_version = 7",
        "WITH x AS (SELECT 1) DELETE FROM orders", "SELECT load_extension('x')", "ATTACH 'x' AS y",
    ],
)  # fmt: skip
def test_nothing_but_reading_is_done(shop, statement):
    before = Path(shop).read_bytes()
    with pytest.raises(DataError):
        read_table(f"{shop}#{statement}")
    assert Path(shop).read_bytes() == before
    assert len(cells(f"{shop}#orders")) == 2


def test_a_query_of_many_words_is_no_path(shop):
    assert cells(f"{shop}#SELECT sku FROM products WHERE {' AND '.join(['1 = 1'] * 200)}") == [
        ["007"],
        ["008"],
    ]


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
    "address",
    [
        "postgresql+pg8000://ann:{}@127.0.0.1:1/shop#orders",
        "postgresql+nodriver://ann:{}@127.0.0.1/shop#orders",
        "nosuch://ann:{}@127.0.0.1/shop",
        "postgresql://ann:{}@:port:/shop",
        "https://ann:{}@example.org/orders.csv",
        "sqlite:////nowhere/{}.db",
    ],
)
def test_no_message_has_the_password(address):
    pytest.importorskip("sqlalchemy")
    with pytest.raises(DataError) as error:
        read_table(address.format(PASSWORD))
    assert address.startswith("sqlite") or PASSWORD not in str(error.value)


@pytest.fixture
def postgres():
    """The address of a database of its own, on a port of its own, stopped at the end."""
    pytest.importorskip("pg8000")
    pytest.importorskip("sqlalchemy")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    # The server refuses to run as root, and its user may not enter the folders of pytest.
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    # Of an address of its own, no other test takes a port before the server does.
    with socket.socket() as free:
        free.bind(("127.0.0.2", 0))
        port = free.getsockname()[1]
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        data = Path(folder, "data")

        def run(program, *args):
            command = [*as_user, programs[-1].with_name(program), "-D", data, *args]
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=600)

        Path(folder, "password").write_text(PASSWORD)
        run("initdb", "-U", "ann", "--auth=scram-sha-256", "-E", "UTF8", "--no-sync",
            "--pwfile", Path(folder, "password"))  # fmt: skip
        options = f"-h 127.0.0.2 -p {port} -c unix_socket_directories= -c fsync=off"
        run("pg_ctl", "start", "-w", "-t", "300", "-o", options, "-l", Path(folder, "server.log"))
        try:
            yield f"postgresql+pg8000://ann:{PASSWORD}@127.0.0.2:{port}/postgres"
        finally:
            run("pg_ctl", "stop", "-w", "-m", "immediate")  # the one whose id is in its own folder


@pytest.mark.slow
def test_a_real_postgresql(postgres):
    import sqlalchemy

    engine = sqlalchemy.create_engine(postgres)
    with engine.begin() as connection:
        for statement in (TABLES + ORDERS).split(";")[:-1]:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql("CREATE SCHEMA old")
        connection.exec_driver_sql("CREATE TABLE old.orders AS SELECT now() AS at, ARRAY[1,2] AS n")
    engine.dispose()
    assert cells(f"{postgres}#products") == PRODUCTS
    assert (
        cells(f"{postgres}#SELECT * FROM products WHERE name LIKE 'k%' AND 1 = 1;") == PRODUCTS[:1]
    )
    assert cells(f"{postgres}#old.orders")[0][1] == "1|2"
    frame, report = read_table(f"{postgres}#orders")
    assert list(frame) == ["customer_email", "product_sku", "quantity"]
    assert PASSWORD not in report.file
    for statement in (
        "WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone",
        "SELECT 1; DROP TABLE orders",
        "SELECT nextval('x'), pg_sleep(0); COMMIT; DROP TABLE orders",
        "SELECT nope FROM orders",
    ):
        with pytest.raises(DataError) as error:
            read_table(f"{postgres}#{statement}")
        assert PASSWORD not in str(error.value)
    with pytest.raises(DataError, match="2 tables are in it; say which"):
        read_table(postgres)
    with pytest.raises(DataError) as error:
        read_table(postgres.replace(PASSWORD, f"not-{PASSWORD}") + "#orders")
    assert PASSWORD not in str(error.value)
    assert "password authentication failed" in str(error.value)
    assert len(cells(f"{postgres}#orders")) == 2


def test_what_is_a_url_and_what_a_path():
    assert databases.is_url("postgresql+psycopg://x/y#z")
    assert not any(
        map(databases.is_url, ["a/b.csv", "C:\\x.csv", "c:/x.csv", "sample:videos", "-"])
    )
