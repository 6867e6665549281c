"""`--where` ends: what would take too long, grow too long or go too deep is one clear line."""

import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from itertools import count

import pytest
from sqlglot import parse
from sqlglot.errors import SqlglotError

from qkvsearch._utils.deadline import DeadlineError, deadline
from qkvsearch._utils.limits import Limit
from qkvsearch.errors import QkvError
from qkvsearch.tables.catalog_columns import CatalogColumns
from qkvsearch.where import guarded, matching_in_all
from tests.store.conditions import matching_positions

COLUMNS = CatalogColumns.of([("name", "TEXT"), ("price", "REAL")], [])
LONG = "a" * 1000
MILLION = f"replace('{LONG}', 'a', '{LONG[1:]}')"


@pytest.fixture(scope="module")
def positions():
    db = sqlite3.connect(":memory:")
    columns = "_position INTEGER PRIMARY KEY, column_name TEXT, column_price REAL"
    db.execute(f"CREATE TABLE items ({columns})")
    rows = ((i, f"some words of item {i}", i) for i in range(20_000))
    db.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
    yield lambda where: matching_positions(db, "items", COLUMNS, where)
    db.close()


def said(positions, where):
    with pytest.raises(QkvError) as error:
        positions(where)
    message = str(error.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 600
    return message


def nested(times, text="'a'"):
    for _ in range(times):
        text = f"replace({text}, 'a', 'aaaaaaaaaa')"
    return text


def test_a_nested_replace_grows_no_text_beyond_a_million_characters(positions):
    assert "replace() makes a text of more than 1,000,000" in said(
        positions, f"length({nested(9)}) > 1"
    )
    assert len(positions(f"length({nested(5)}) = 100000")) == 20_000


def test_texts_joined_grow_no_longer_either(positions):
    message = said(positions, f"{' || '.join([nested(5)] * 11)} = 'x'")
    assert "more than 1,000,000 bytes" in message


def allow(monkeypatch, seconds):
    monkeypatch.setattr(guarded, "EXPRESSION_SECONDS", Limit("seconds", seconds))


def test_what_takes_longer_than_its_time_is_stopped(positions, monkeypatch):
    slow = " AND ".join(["name LIKE '%e%i%9%'"] * 30)
    allow(monkeypatch, 0.01)
    assert "stopped after 0.01 seconds" in said(positions, slow)
    allow(monkeypatch, 600)
    assert len(positions(slow)) > 0


def test_it_is_2_seconds_unless_told(monkeypatch, positions):
    clock = iter([0.0, *[1.99] * 5])
    monkeypatch.setattr(guarded.time, "monotonic", lambda: next(clock, 2.01))
    assert "stopped after 2 seconds" in said(positions, "price > 5")


@pytest.mark.parametrize(
    "where",
    [
        "(" * 300 + "price" + ")" * 300 + " > 1",
        "NOT " * 5000 + "price",
        "- " * 5000 + "price > 1",
        " OR ".join(["price > 1"] * 1000),
        "+".join(["price"] * 1000) + " > 1",
        "CASE WHEN price > 1 THEN " * 200 + "1" + " END" * 200,
        f"length({nested(60)}) > 1",
    ],
    ids=["parentheses", "not", "minus", "or", "plus", "case", "functions"],
)
def test_what_is_too_deep_is_refused(positions, where):
    assert "more than 250 parts in one another" in said(positions, where)


@pytest.mark.parametrize("call", ["TEXT(", "date (", '"text"(', "[int](", "`char` (", "x::text("])
def test_a_type_called_as_a_function_is_refused_before_the_parser_doubles_its_work(
    positions, monkeypatch, call
):
    monkeypatch.setattr("qkvsearch.where.tree.parse", None)
    where = f"{call * 40}name{')' * 40} = 'a'"
    assert "there is no such function here (there are abs, coalesce" in said(positions, where)


@pytest.mark.parametrize("where", ["max(price) > 45", "min(price) < 3"])
def test_a_function_over_all_items_is_not_called_missing(positions, where):
    message = said(positions, where)
    assert f"{where[:3]}() compares several values" in message
    assert "no such function" not in message


def test_what_is_too_long_is_refused_and_a_long_list_is_not(positions):
    assert "100,000 are the most" in said(positions, f"name = '{'x' * 100_000}'")
    assert len(positions(f"price IN ({', '.join(map(str, range(5000)))})")) == 5000


@pytest.mark.parametrize(
    "where",
    [
        f"{MILLION} LIKE '%a_{'a' * 200}b%'",  # a regular expression would go through it 200 times
        f"trim({MILLION}, {MILLION}) = ''",
        f"trim({MILLION}, '{'ab' * 51}') = ''",
        f"glob('*a{'?a' * 400}', name)",
    ],
    ids=["like", "trim", "trim of many", "glob"],
)
def test_what_no_clock_could_stop_is_refused(positions, where):
    said(positions, where)


def test_a_text_is_looked_for_in_linear_time(positions):
    assert (
        positions(f"instr({MILLION}, replace('{LONG[:500]}', 'a', '{LONG[1:]}') || 'b') > 0") == []
    )
    assert positions(f"{MILLION} LIKE '%{'a%' * 100}b'") == []


def test_the_time_is_that_of_all_tables_together(monkeypatch):
    with closing(sqlite3.connect(":memory:")) as db:
        for table in ("items", "others"):
            columns = "_position INTEGER PRIMARY KEY, column_name, column_price"
            db.execute(f"CREATE TABLE {table} ({columns})")
            rows = [(i, "x", i) for i in range(1000)]
            db.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)
        looks = count()
        monkeypatch.setattr(guarded.time, "monotonic", lambda: next(looks) / 1000)
        one, two = (db, "items"), (db, "others")

        def ask(seconds, *catalog):
            allow(monkeypatch, seconds)
            return matching_in_all(catalog, COLUMNS, "price >= 0", no_cells)

        assert [len(found) for found in ask(600, one, two)] == [1000, 1000]
        enough_for_one = next(looks) / 1000 * 0.75
        assert len(ask(enough_for_one, one)[0]) == len(ask(enough_for_one, two)[0]) == 1000
        with pytest.raises(QkvError, match="stopped after"):
            ask(enough_for_one, one, two)


def no_cells(column):
    raise AssertionError(column)


def test_a_condition_stops_at_the_deadline(positions, monkeypatch):
    slow = " AND ".join(["name LIKE '%e%i%9%'"] * 30)
    allow(monkeypatch, 600)
    with deadline(0.01), pytest.raises(DeadlineError):
        positions(slow)


@pytest.fixture
def pressed():
    """Presses Ctrl-C again and again, with this handler, and counts what it did."""
    before = signal.getsignal(signal.SIGINT)
    started = []

    def press(handler):
        signal.signal(signal.SIGINT, handler)
        is_over = threading.Event()

        def run():
            while not is_over.wait(0.003):
                os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=run)
        started.append((is_over, thread))
        thread.start()

    yield press
    for is_over, thread in started:
        is_over.set()
        thread.join()
    signal.signal(signal.SIGINT, before)


# In the steps of SQLite, in a function and in an order of ours.
@pytest.mark.parametrize(
    "where", [" AND ".join(["name LIKE '%e%i%9%'"] * 30), f"{MILLION} = 'x'", "lower(name) = 'x'"]
)
@pytest.mark.skipif(os.name == "nt", reason="needs os.kill")
def test_ctrl_c_in_a_condition_is_what_its_handler_raises(positions, pressed, monkeypatch, where):
    class PressedError(Exception):
        pass

    def handler(*_):
        if is_asking:
            raise PressedError

    allow(monkeypatch, 600)
    is_asking = False
    pressed(handler)
    n_pressed = 0
    end = time.monotonic() + 1
    while time.monotonic() < end:
        try:
            is_asking = True
            positions(where)
        except PressedError:
            n_pressed += 1
        finally:
            is_asking = False
    assert n_pressed


@pytest.mark.skipif(os.name == "nt", reason="needs os.kill")
def test_ctrl_c_while_a_condition_is_parsed_is_what_its_handler_raises(positions, monkeypatch):
    class PressedError(Exception):
        pass

    def handler(*_):
        raise PressedError

    def pressed_in_the_parser(*_, **__):
        try:  # as sqlglot's tokenizer does with every exception
            os.kill(os.getpid(), signal.SIGINT)
        except Exception as error:
            raise SqlglotError("an error in the text") from error
        return parse("SELECT 1 WHERE (price > 2)", dialect="sqlite")

    monkeypatch.setattr("qkvsearch.where.tree.parse", pressed_in_the_parser)
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(PressedError):
            positions("price > 2")
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="needs os.kill")
def test_a_handler_of_ctrl_c_that_raises_nothing_stops_nothing(positions, pressed, monkeypatch):
    allow(monkeypatch, 600)
    seen = []
    pressed(lambda *_: seen.append(1))
    found = positions("price >= 0 AND " + " AND ".join(["name LIKE '%e%i%'"] * 10))
    end = time.monotonic() + 0.5
    while time.monotonic() < end or not seen:
        assert positions("price >= 0 AND " + " AND ".join(["name LIKE '%e%i%'"] * 10)) == found
    assert signal.getsignal(signal.SIGINT).__name__ == "<lambda>"
