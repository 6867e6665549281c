"""Items that join or leave keep the types of the catalog's columns, and every other cell."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qkvsearch as qkv
from qkvsearch.engine import Engine
from qkvsearch.errors import QkvError
from qkvsearch.learn.add import add_items, remove_items
from qkvsearch.store import Workspace

PRODUCTS = pd.DataFrame(
    {
        "SKU": ["001", "002", "003"],
        "Name": ["Tent", "Rope &amp; hook", "Lamp"],
        "Preis": ["1.234,50 €", "12,00 €", "n/a"],
        "Added": ["13/02/2024", "01/03/2024", "02/03/2024"],
        "New": ["ja", "nein", "ja"],
        "Tags": ["camp; night", "climb", "night; camp"],
        "Code": ["0042", "17", "8"],
        "Views": [str(2**53 + 1), "5", "7"],
    }
)
CELLS = [
    ("001", "Tent", 1234.5, "2024-02-13", 1, "camp|night", "0042", 2**53 + 1),
    ("002", "Rope & hook", 12.0, "2024-03-01", 0, "climb", "17", 5),
    ("003", "Lamp", None, "2024-03-02", 1, "night|camp", "8", 7),
]


@pytest.fixture
def path(tmp_path):
    qkv.build(tmp_path / "ws", items=PRODUCTS, encoder="corpus").close()
    return tmp_path / "ws"


def cells(path):
    with Engine(path) as engine:
        return list(engine.catalog.all_cells())


def types(path):
    with Engine(path) as engine:
        return {column["name"]: column["type"] for column in engine.info()["columns"]}


def facts(path, name):
    with Engine(path) as engine:
        return next(column for column in engine.info()["columns"] if column["name"] == name)


def product(**changed):
    first = PRODUCTS.iloc[:1].assign(SKU="004")
    return first.assign(**changed)


def test_a_build_stores_each_column_as_its_type(path):
    assert cells(path) == CELLS
    assert types(path) == {
        "SKU": "text", "Name": "text", "Preis": "number", "Added": "date", "New": "yes/no",
        "Tags": "list", "Code": "text", "Views": "number",
    }  # fmt: skip


def test_new_cells_are_read_as_the_columns_were(path):
    more = product(Preis="1.299", Added="04/05/2024", New="y", Tags="camp", Code="99", Views="6")
    add_items(Workspace(path), more)
    assert cells(path) == [
        *CELLS, ("004", "Tent", 1299, "2024-05-04", 1, "camp", "99", 6)
    ]  # fmt: skip


def test_new_cells_that_do_not_fit_are_emptied_counted_and_shown(path):
    before = types(path)
    (note,) = add_items(
        Workspace(path), product(Preis="call us", Added="soon", New="perhaps")
    ).notes
    assert "column Preis: 1 of 1 cell emptied, for it is no number: 'call us' (id 004)" in note
    assert "'soon' (id 004)" in note
    assert "'perhaps' (id 004)" in note
    assert cells(path)[-1][2:5] == (None, None, None)
    assert types(path) == before
    assert facts(path, "Preis")["changed"]["emptied: no number"] == 1


def test_removing_what_made_a_column_text_leaves_it_text(path):
    remove_items(Workspace(path), "001")
    assert cells(path) == CELLS[1:]
    assert types(path)["Code"] == "text"


def test_what_is_known_of_a_column_follows_its_items(path):
    assert facts(path, "Preis")["empty"] == pytest.approx(1 / 3, abs=1e-3)
    add_items(Workspace(path), product(Preis="5,00 €"))
    assert facts(path, "Preis")["empty"] == 0.25
    assert facts(path, "Preis")["changed"]["€ removed"] == 3
    remove_items(Workspace(path), ["001", "003"])
    after = facts(path, "Preis")
    assert after["empty"] == 0


def test_own_names_for_the_id_and_the_title_are_known(tmp_path):
    items = pd.DataFrame({"Artikelnummer": ["a1"], "Ware": ["Zelt"]})
    columns = qkv.Columns(id="Artikelnummer", title="Ware")
    qkv.build(tmp_path / "ws", items=items, columns=columns, encoder="corpus").close()
    add_items(Workspace(tmp_path / "ws"), pd.DataFrame({"ware": ["Seil"], "ARTIKELNUMMER": ["a2"]}))
    assert cells(tmp_path / "ws") == [("a1", "Zelt"), ("a2", "Seil")]


def test_what_is_stored_can_be_added_again_and_changes_nothing(path):
    with Engine(path) as engine:
        stored = engine.items.to_frame()
    add_items(Workspace(path), stored)
    assert cells(path) == CELLS


prices = st.none() | st.floats(-1e12, 1e12).map(lambda price: round(price, 2))


@settings(max_examples=5)  # each builds
@given(
    st.lists(st.tuples(prices, st.booleans()), min_size=2, max_size=6),
    st.lists(st.tuples(prices, st.booleans()), min_size=1, max_size=3),
)
@pytest.mark.slow
def test_numbers_survive_additions_and_removals_exactly(tmp_path_factory, first, more):
    path = tmp_path_factory.mktemp("any") / "ws"

    def frame(rows, start):
        return pd.DataFrame(
            {
                "id": [f"{start}{n}" for n in range(len(rows))],
                "title": "thing",
                "price": [price for price, _ in rows],
                "new": [is_new for _, is_new in rows],
            }
        )

    columns = qkv.Columns(types={"price": "number", "new": "yes/no"})
    qkv.build(path, items=frame(first, "a"), columns=columns, encoder="corpus").close()
    before = cells(path)
    assert [row[2:] for row in before] == [(price, int(is_new)) for price, is_new in first]
    add_items(Workspace(path), frame(more, "b"))
    assert cells(path)[: len(first)] == before
    assert [row[2:] for row in cells(path)[len(first) :]] == [
        (price, int(is_new)) for price, is_new in more
    ]
    remove_items(Workspace(path), [f"b{n}" for n in range(len(more))])
    assert cells(path) == before


def test_a_condition_compares_numbers_whatever_joined(path):
    add_items(Workspace(path), product(Preis="99,90"))
    assert remove_items(Workspace(path), where="preis > 1000").removed == 1
    with pytest.raises(QkvError):
        remove_items(Workspace(path), where="preis > 'cheap'")
