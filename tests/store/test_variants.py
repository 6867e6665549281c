"""Items of several rows: a condition matches an item if it matches one of its variants."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import DataError

SHOP = pd.DataFrame(
    [
        ("a", "Rain jacket", "Red", 50.0, "2024-01-01", "no"),
        ("a", None, "Blue", 80.0, "2024-03-01", "yes"),
        ("b", "Wool hat", "Red", 60.0, "2024-02-01", "no"),
        ("c", "Tent", "Green", 10.0, "2024-02-01", "yes"),
        ("c", None, "Green", None, None, None),
        ("c", None, "Green", 99.0, "2024-02-01", "yes"),
    ],
    columns=["handle", "title", "color", "price", "since", "stocked"],
)
WHERE = {
    "price < 20": "c",
    "price > 75": "ac",
    "price = 60": "b",
    "price BETWEEN 55 AND 70": "b",
    "price > 75 AND stocked": "ac",
    "price < 60 AND since >= '2024-03'": "",  # no variant of a is both
    "NOT price < 60": "abc",
    "price IS NULL": "",
    "since = '2024-03'": "a",
    "stocked": "ac",
    "has(color, 'Blue') AND price < 60": "",
    "has(color, 'Blue') AND price > 60": "a",
    "color = 'Blue'": "a",
    "has(color, 'Red')": "ab",
    "NOT has(color, 'Red')": "ac",  # another variant of a
    "price + 1 = 81": "a",
}


def matching(engine, where):
    return "".join(
        np.array(engine.catalog.ids("items").texts)[engine.catalog.conditions.mask(where)]
    )


def ids(ranking):
    return [hit["id"] for hit in ranking.to_records()]


def assert_answers(engine):
    assert {where: matching(engine, where) for where in WHERE} == WHERE


@pytest.mark.parametrize("first", ["a", "b", "bc"])
def test_a_condition_matches_one_variant_in_a_build_a_segment_and_after_a_merge(tmp_path, first):
    types = {"stocked": "yes/no", "since": "date", "price": "number", "color": "list"}
    is_first = SHOP["handle"].isin(list(first))
    columns = qkv.Columns(id="handle", types=types)
    with qkv.build(
        tmp_path / "ws", items=SHOP[is_first], columns=columns, encoder="corpus"
    ) as engine:
        engine.add(SHOP[~is_first | (SHOP["handle"] == "c")])
        assert_answers(engine)
        engine.compact()
        assert_answers(engine)


def test_the_smallest_number_is_shown_and_a_search_finds_each_color_code_and_range(tmp_path):
    shop = SHOP.assign(sku=["A-100", "A-200", "B-100", "C-100", "C-200", "C-300"])
    with qkv.build(
        tmp_path / "ws", items=shop, columns=qkv.Columns(id="handle"), encoder="corpus"
    ) as engine:
        assert_answers(engine)
        assert engine.show("a")["price of variants"] == "50, 80"
        assert engine.show("a")["since of variants"] == "2024-01-01, 2024-03-01"
        assert "price of variants" not in engine.show("b")
        assert matching(engine, "price < 20 AND NOT stocked") == ""
        row = engine.items["a"]
        assert (row["price"], row["color"], row["sku"]) == (50, "Red|Blue", "A-100|A-200")
        for query, hits in {"blue": ["a"], "A-200": ["a"], "price:>75": ["a", "c"]}.items():
            assert sorted(ids(engine.search(query))) == hits, query


def test_rows_without_ids_are_numbered_and_others_do_not_replace_them(tmp_path):
    dishes = pd.DataFrame({"Dish": ["Pancakes", "Pancakes", "Soup"], "Of": ["egg", "oats", "peas"]})
    with qkv.build(tmp_path / "ws", items=dishes, encoder="corpus") as engine:
        assert list(engine.catalog.ids("items").texts) == ["1", "2", "3"]
        with pytest.raises(DataError, match=r"numbers of the rows .* `id_column`"):
            engine.add(dishes.assign(id=["1", "2", "3"]))
        engine.add(dishes.assign(id=["1", "x", "y"]), qkv.Columns(id="id"))
        assert len(engine.catalog.ids("items")) == 5


def test_a_word_that_only_a_column_has_that_is_not_searched_is_noted(tmp_path):
    items = pd.DataFrame(
        {
            "id": [1, 2],
            "title": ["Tent", "Rope"],
            "color": ["red", "red"],
            "mail": ["a@acme.example", "b@zedzed.example"],
            "sku": ["AC-100/1", "AC-100/2"],
            "accession": ["94.1.1", "94.1.2"],
        }
    )
    with qkv.build(tmp_path / "ws", items=items, encoder="corpus") as engine:
        for query, note in (
            ("tent 94.1", "No text has “94.1”."),  # a piece of a code
            ("tent acme", "column mail, which is not searched, has: mail:acme asks for it, and a"),
            ("acme", "column mail, which is not searched, has: mail:acme asks for it"),
            ("tent zed", "No text has “zed”."),
            ("tent zed zod", "No text has “zed”, “zod”."),
            # Letters that a code has are no word of it.
            ("tent c AC-100/1", "No text has “c”."),
        ):
            assert note in " ".join(engine.search(query).notes)
        for query in ("tent AC-100/1", "tent red"):
            assert not engine.search(query).notes


def test_items_of_a_log_alone_have_no_texts_and_are_found_by_id_only(tmp_path):
    log = pd.DataFrame([(f"u{u}", f"i{i}") for u in range(9) for i in range(u, u + 4)])
    log.columns = ["user", "item"]
    with qkv.build(tmp_path / "ws", interactions=log, encoder="corpus") as engine:
        assert engine.search("i 3").notes[0].startswith("These items have no texts to search")
        assert ids(engine.search("i3", snippet=True)) == ["i3"]
        assert len(engine.search("red").notes) == 1
        assert engine.search("i3").explained_records()[0]["id"] == "i3"
        assert len(ids(engine.similar("i3"))) == 10
        assert len(ids(engine.recommend(user="u1")))
