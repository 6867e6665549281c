"""Columns of lists: one separator throughout, and prose is none."""

import json

import pandas as pd
import pytest

from qkvsearch.tables.column_types.inference import typed
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.sources import read_source


def read(*cells, told=None, convention=""):
    column = typed(pd.Series(cells, dtype=object), told, convention=convention)
    return column.type, [None if pd.isna(cell) else cell for cell in column.cells]


@pytest.mark.parametrize("sign", ["|", " | ", ";", "; ", ",", ", "])
def test_entries_are_trimmed_and_joined_by_a_bar(sign):
    rows = [["Drama", "War"], ["Drama"], ["War", "Comedy", "Drama"], ["Comedy", "War"]]
    type_, cells = read(*[sign.join(entries) for entries in rows])
    assert (type_, cells) == ("list", ["|".join(entries) for entries in rows])


LISTS = {
    "arrays of JSON and Python": (
        ['["a", "b"]', "['c']", "[]", "[1, 2]"], ["a|b", "c", None, "1|2"]
    ),
    "a bar in an entry of an array": (['["a|b", "c"]', '["d"]'], ["a/b|c", "d"]),
    "quotes around entries": (
        ["Chess|\"Saint Louis\"|'Club'", "Chess"], ["Chess|Saint Louis|Club", "Chess"]
    ),
    # A word may be an entry, a sign for nothing is none.
    "unknown": (
        ["unknown", "Drama|War", "N/A", "War|Drama"], ["unknown", "Drama|War", None, "War|Drama"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LISTS)
def test_entries_are(case):
    cells, expected = LISTS[case]
    assert read(*cells) == ("list", expected)


@pytest.mark.parametrize("cell", ['["a", ]]', f"[0x{'f' * 5000}]"])
def test_an_array_that_cannot_be_read_is_one_cell_that_does_not_fit(cell):
    cells = ['["a"]'] * 30
    assert read(*cells, cell)[1][-1] is None


@pytest.mark.parametrize(
    "cells",
    [
        ["A red jacket, warm, and dry", "Light, but it holds", "Of wool, from Peru, by hand", "x"],
        ["Smith, John", "Doe, Jane", "Smith, Jane", "Doe, John", "Smith, Joe"],
        ["Berlin, Germany", "Hamburg, Germany", "Bonn, Germany", "Paris, France", "Nice, France"],
        ["first; second", "third; fourth; fifth"],
        ["one"] * 50 + ["a|b"],
        [f"{n} words of a sentence that goes on and on until it is too long|next" for n in "ab"],
    ],
)  # fmt: skip
def test_prose_names_and_places_with_commas_are_text(cells):
    assert read(*cells) == ("text", cells)


@pytest.mark.parametrize(
    ("cells", "convention", "expected"),
    [
        (["a, b", "c"], "", ["a|b", "c"]),
        (["a; b, c", "d; e"], "", ["a|b, c", "d|e"]),
        (["salt, pepper"], "|", ["salt, pepper"]),
        (["salt, pepper"], ",", ["salt|pepper"]),
        (["salt|pepper, black"], ",", ["salt|pepper, black"]),
    ],
)
def test_told_lists_are_split_as_the_column_was_or_as_most_cells_are(cells, convention, expected):
    assert read(*cells, told="list", convention=convention) == ("list", expected)


def test_a_few_categories_are_entries_where_one_cell_has_those_of_another():
    cells = ["Outdoor, Rain", "Outdoor", "Camp, Night", "Camp"] * 50
    assert read(*cells)[:1] == ("list",)
    assert read(*cells)[1][0] == "Outdoor|Rain"
    names = ["King, Stephen", "Plato", "Le Guin, Ursula K.", "Homer"] * 50
    assert read(*names)[0] == "text"


def test_an_object_with_a_list_as_a_key_is_no_list():
    assert read("[{[1]: 'a'}]", '["a", "b"]', told="list") == ("list", [None, "a|b"])


def test_an_array_in_a_column_of_other_lists_is_its_entries():
    column = typed(pd.Series(["a, b", "b, c, a", "a", '["a", "b"]', "c, a"]))
    assert (column.type, column.cells[3]) == ("list", "a|b")


def test_an_entry_with_the_sign_between_entries_stays_one_entry_and_is_counted(tmp_path):
    rows = [
        {
            "id": n,
            "title": f"thing {n}",
            "tags": ["A|B", "C"],
            "inner": [["u|v"], ["w"]],
            "of": {"tags": ["c|d", "e"]},
            "makers": [{"name": "p|q"}, {"name": "r"}],
        }
        for n in range(3)
    ]
    files = {"t.json": json.dumps(rows), "t.jsonl": "\n".join(map(json.dumps, rows))}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    flat = pd.DataFrame(rows)[["id", "title", "tags", "inner"]]
    flat.to_parquet(tmp_path / "t.parquet")
    for source in (*(tmp_path / name for name in files), pd.DataFrame(rows)):
        found = read_source(items=source)
        cells = found.catalog.frame[["tags", "inner", "of.tags", "makers.name"]].iloc[0]
        assert list(cells) == ["A/B|C", "u/v|w", "c/d|e", "p/q|r"]
        notes = [note for note in found.reports[0].notes if "3 entries of lists with |" in note]
        assert len(notes) == 4
    found = read_source(items=tmp_path / "t.parquet")
    assert list(found.catalog.frame.tags) == ["A/B|C"] * 3
    assert sum("3 entries of lists with |" in note for note in found.reports[0].notes) == 2


@pytest.mark.parametrize("n_others", [2, 500])
def test_arrays_are_lists_however_few_have_several_entries(n_others, tmp_path):
    rows = [{"id": 0, "title": "Red kettle", "tags": ["red", "sale"], "only": ["a"]}]
    rows += [
        {"id": n, "title": f"Thing {n}", "tags": ["red"], "only": [f"b{n}"]}
        for n in range(1, n_others)
    ]
    (tmp_path / "items.json").write_text(json.dumps(rows))
    for source in (tmp_path / "items.json", pd.DataFrame(rows)):
        dataset = read_dataset(source, None)
        types = {column.name: column.type for column in dataset.catalog.columns}
        assert types["tags"] == "list"
        # Some programs write any value as an array.
        assert types["only"] == "text"
        told = read_dataset(source, None, Columns(types={"tags": "text"}))
        assert told.catalog.frame["tags"].tolist() == dataset.catalog.frame["tags"].tolist()
        assert "list" not in {column.type for column in told.catalog.columns}
