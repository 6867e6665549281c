"""Amounts with a unit, codes that look like numbers, and names in another Unicode form."""

import unicodedata

import pandas as pd
import pytest

import qkvsearch
from qkvsearch.engine import Engine
from qkvsearch.learn.add import add_items
from qkvsearch.store import Workspace

N_ITEMS = 40
GOODS = pd.DataFrame(
    {
        "id": [f"ä{n}" for n in range(N_ITEMS)],
        "title": [
            f"{'Lamp Rope Tent Phone'.split()[n % 4]} {chr(97 + n % 26)}" for n in range(N_ITEMS)
        ],
        "storage": [f"{2 ** (n % 8)}GB" for n in range(N_ITEMS)],
        "length": [f"{n + 5} min" for n in range(N_ITEMS)],
        "price": [f"${n}.50" for n in range(N_ITEMS)],
        "version": [f"{n // 12 + 3}.{n % 12}" for n in range(N_ITEMS)],
        "model": [f"{n + 1}E{n % 9 + 1}" for n in range(N_ITEMS)],
        "accession": [f"{n:02d}.16.{n % 7 + 1}" for n in range(N_ITEMS)],
        "größe": ["größer" if n % 2 else "klein " for n in range(N_ITEMS)],
    }
)


def decomposed(text):
    return unicodedata.normalize("NFD", text)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("units") / "ws"
    frame = GOODS.rename(columns=decomposed).map(decomposed)
    qkvsearch.build(path, items=frame, encoder="corpus").close()
    return path


@pytest.fixture(scope="module")
def engine(path):
    with Engine(path) as engine:
        yield engine


def ids(rows):
    return [row["id"] if isinstance(row, dict) else row.id for row in rows]


def test_the_unit_is_known(engine):
    units = {column["name"]: column["unit"] for column in engine.info()["columns"]}
    assert (units["storage"], units["length"], units["price"], units["version"]) == (
        "GB", "min", "$", "",
    )  # fmt: skip
    assert (engine.items.unit("storage"), engine.items.unit("length")) == ("GB", "minutes")


def test_amounts_are_compared_and_are_still_searched(engine):
    assert len(engine.items.list(where="storage >= 64")) == 10
    hits = engine.search("phone 128 GB", k=3)
    assert set(ids(hits)) <= {f"ä{n}" for n in range(N_ITEMS) if n % 8 == 7}
    assert engine.search("128GB", k=1)[0].match == "strong"


@pytest.mark.parametrize(
    ("column", "code", "found"),
    [
        ("version", "3.1", "ä1"),
        ("version", "3.10", "ä10"),
        ("model", "12E3", "ä11"),
        ("model", "1E1", "ä0"),
        ("accession", "06.16.7", "ä6"),
    ],
)
def test_a_code_is_found_whole(engine, column, code, found):
    assert ids(engine.items.list(where=f"{column} = '{code}'")) == [found]
    hits = engine.search(code)
    assert (ids(hits), hits[0].match) == ([found], "strong")


def test_added_codes_are_found_as_well(path, tmp_path):
    copy = Workspace(tmp_path / "ws")
    qkvsearch.build(copy.path, items=GOODS.iloc[:20], encoder="corpus").close()
    add_items(copy, GOODS.iloc[:1].assign(id="new", version="3.20", storage="5 TB"))
    with Engine(copy.path) as engine:
        assert ids(engine.search("3.20")) == ["new"]
        assert engine.show("new")["original"]["storage"] == "5 TB"
        assert engine.show("new")["storage"] is None


@pytest.mark.parametrize("form", [str, decomposed])
def test_names_cells_ids_and_conditions_are_compared_in_one_form(engine, form):
    half = N_ITEMS // 2
    assert len(engine.items.list(where=form("größe = 'größer'"))) == half
    assert len(engine.items.list(where=(form("größe = ?"), [form("größer")]))) == half
    assert len(engine.items.list(where="größe = 'klein'")) == half
    assert engine.items.facets(form("größe")) == {"größe": {"größer": half, "klein": half}}
    assert engine.show(form("ä3"))["größe"] == "größer"
    assert form("ä3") in engine.items
    assert "größe" not in engine.show("ä3")["original"]
