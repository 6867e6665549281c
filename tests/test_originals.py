"""What a cell was in the file is kept where it is not shown as it was, and `show` has it."""

import json

import pandas as pd
import pytest

import qkvsearch
from qkvsearch.engine import Engine
from qkvsearch.learn.add import add_items, remove_items
from qkvsearch.learn.merge import merge_segments
from qkvsearch.store import Workspace

N_ITEMS = 25
SHOP = pd.DataFrame(
    {
        "SKU": [f"a{n}" for n in range(N_ITEMS)],
        "Name": ["Tent &amp; rope", *(f"Lamp {n}" for n in range(1, N_ITEMS))],
        "Price": ["ask in the shop", *(f"{n}.50" for n in range(1, N_ITEMS - 1)), "$7"],
        "Added": ["2024-03-01", "March 2, 2024", *["2024-03-03"] * (N_ITEMS - 2)],
        "Colour": ["red ", "red", *["blue"] * (N_ITEMS - 2)],
    }
)


@pytest.fixture
def path(tmp_path):
    qkvsearch.build(tmp_path / "ws", items=SHOP, encoder="corpus").close()
    return tmp_path / "ws"


def originals(path, *ids):
    with Engine(path) as engine:
        return [engine.show(id_).get("original", {}) for id_ in ids]


def test_emptied_and_changed_cells_are_kept_and_no_others(path):
    assert originals(path, "a0", "a1", "a2", f"a{N_ITEMS - 1}") == [
        {"Name": "Tent &amp; rope", "Price": "ask in the shop"},
        {"Added": "March 2, 2024"},
        {},  # 2.50 is shown as 2.5
        {"Price": "$7"},
    ]


def test_a_column_with_spaces_alone_has_no_original(path):
    with Engine(path) as engine:
        assert engine.show("a0")["Colour"].strip() == "red"


def test_added_and_replaced_items_have_their_own_and_a_merge_keeps_all(path):
    workspace = Workspace(path)
    replaced = SHOP.iloc[:1].assign(Price="3 for 10", Name="Tent")
    new = SHOP.iloc[1:2].assign(SKU="b1", Price="£2", Added="2024-03-01")
    add_items(workspace, pd.concat([replaced, new]))
    remove_items(workspace, ["a1"])
    expected = [{"Price": "3 for 10"}, {"Price": "£2"}, {"Price": "$7"}]
    ids = ("a0", "b1", f"a{N_ITEMS - 1}")
    assert originals(path, *ids) == expected
    merge_segments(workspace)
    assert originals(path, *ids) == expected


def test_of_several_rows_the_original_is_that_of_the_cell_that_is_shown(tmp_path):
    rows = pd.DataFrame(
        {
            "id": ["1", "1", "2", "2", *map(str, range(3, 43))],
            "title": ["Rope", "Rope", "Lamp", "Lamp", *(f"Lamp {n}" for n in range(3, 43))],
            "price": ["$9", "$5", "ask us", "N/A", *(f"{n}" for n in range(3, 43))],
        }
    )
    qkvsearch.build(tmp_path / "ws", items=rows, encoder="corpus").close()
    assert originals(tmp_path / "ws", "1", "2", "3") == [{"price": "$5"}, {"price": "ask us"}, {}]


def test_an_owners_column_of_that_name_is_not_hidden(tmp_path):
    rows = pd.DataFrame({"id": ["1", "2"], "title": ["a", "b"], "original": ["ja", "nein"]})
    with qkvsearch.build(tmp_path / "ws", items=rows, encoder="corpus") as engine:
        card = engine.show("1")
    assert card["items.original"] == 1
    assert card["original"] == {"items.original": "ja"}


def test_show_lists_them(path, qkv):
    card = json.loads(qkv("-w", path, "show", "a0", "--format", "json").stdout)
    assert card["original"]["Price"] == "ask in the shop"
    shown = qkv("-w", path, "show", "a0").stdout
    assert "ask in the shop" in shown
    assert "Tent &amp; rope" in shown


def test_an_item_whose_variants_differ_in_texts_alone_is_shown(tmp_path):
    frame = pd.DataFrame({"id": ["a", "a", "b"], "title": "Mug", "colour": ["red", "blue", "red"]})
    with qkvsearch.build(tmp_path / "w", items=frame, encoder="corpus") as engine:
        assert engine.show("a")["colour"] == "red|blue"
