"""Some columns of items change, and everything else of them stays."""

import shutil

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.engine import Engine
from qkvsearch.errors import DataError, UnknownIdError

TENTS = pd.DataFrame(
    {
        "sku": ["t1", "t2", "t2", "t3"],
        "title": ["Tent (1999)", "Rope", "Rope", "Lamp, red"],
        "text": ["For rain & snow", "Strong", "Strong", "Bright"],
        "year": [2001, 2002, 2002, 2003],
        "price": [10.5, 20, 30, None],
        "size": ["S", "M", "L", "S"],
    }
)


@pytest.fixture(scope="module")
def tents_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("tents") / "ws"
    qkv.build(path, items=TENTS, encoder="corpus").close()
    return path


@pytest.fixture
def tents(tents_path, tmp_path):
    with Engine(shutil.copytree(tents_path, tmp_path / "ws")) as engine:
        yield engine


def update(engine, rows, **options):
    return engine.add(pd.DataFrame(rows), update=True, **options)


def found(engine, where):
    return [row["id"] for row in engine.items.list(where=where)]


def test_the_given_columns_change_and_the_others_stay(tents):
    before, keys = tents.show("t1"), tents.encode("tent rain")
    done = update(tents, [{"sku": "t1", "price": 7}])
    assert (done.added, done.replaced, done.n_items) == (0, 1, 3)
    assert tents.show("t1") == before | {"price": 7}
    np.testing.assert_array_equal(tents.encode("tent rain"), keys)
    assert tents.search("rain", k=1)[0].id == "t1"


def test_a_new_text_is_found_and_the_columns_beside_it_stay(tents):
    update(tents, [{"sku": "t3", "text": "For caves"}])
    assert tents.search("caves", k=1)[0].id == "t3"
    assert tents.show("t3")["year"] == 2003


def test_the_variants_of_other_columns_stay(tents):
    update(tents, [{"sku": "t2", "text": "Stronger"}])
    assert found(tents, "price = 30 AND size = 'L'") == ["t2"]
    assert found(tents, "price = 30 AND size = 'M'") == []
    update(tents, [{"sku": "t2", "price": 25}])
    assert found(tents, "price = 25 AND size = 'L'") == ["t2"]
    assert found(tents, "price = 30") == []


def test_a_year_of_the_owner_is_not_replaced_by_that_of_a_title(tents):
    update(tents, [{"sku": "t1", "title": "Tent (1987)"}])
    assert tents.show("t1")["year"] == 2001


def test_a_new_id_refuses_all(tents):
    with pytest.raises(UnknownIdError, match=r"2 ids are not in the catalog.*'x1', 'x2'"):
        update(tents, [{"sku": each, "price": 7} for each in ("t1", "x1", "x2")])
    assert tents.show("t1")["price"] == 10.5


def test_what_is_lost_is_said(tents):
    done = update(tents, [{"sku": "t1", "price": None}, {"sku": "t2", "price": "cheap"}])
    assert any("price: 1 cell emptied" in note for note in done.notes)
    assert any("Warning" in note and "'cheap' (id t2)" in note for note in done.notes)
    assert found(tents, "price IS NULL") == ["t1", "t2", "t3"]
    with pytest.raises(DataError, match=r"year.*'soon'"):
        update(tents, [{"sku": "t1", "year": "soon"}], columns=qkv.Columns(strict=True))


def test_a_file_without_a_column_of_the_catalog_is_refused(tents):
    with pytest.raises(DataError, match=r"changes nothing.*price"):
        update(tents, [{"sku": "t1", "colour": "red"}])


def test_what_was_in_the_file_stays_with_the_cells_that_stay(tmp_path):
    lamps = pd.DataFrame({"id": [1, 2], "title": ["a", "b"], "price": ["$5", "$6"], "made": "n/a"})
    with qkv.build(tmp_path / "ws", items=lamps.assign(kg=[1, 2]), encoder="corpus") as engine:
        before = engine.show(1)
        assert before["original"]["price"] == "$5"
        update(engine, [{"id": 1, "kg": 3}])
        assert engine.show(1) == before | {"kg": 3}
        update(engine, [{"id": 1, "price": 7}])
        assert "price" not in engine.show(1).get("original", {})
        # The same number that is written otherwise is no change, and a note says so.
        done = engine.sync(lamps.assign(kg=[3, 2], price=["7", "6 USD"]))
        assert (done.changed, done.unchanged) == (0, 2)
        assert any("price of 2 was '$6' and is '6 USD'" in note for note in done.notes)
        assert engine.show(2)["original"]["price"] == "$6"
