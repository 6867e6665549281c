"""Columns of lists: one separator throughout, and prose is none."""

from __future__ import annotations

import pandas as pd
import pytest

from qkvsearch.data.columns.column_types import typed


def read(*cells, told=None, convention=""):
    column = typed(pd.Series(cells, dtype=object), told, convention=convention)
    return column.type, [None if pd.isna(cell) else cell for cell in column.cells]


@pytest.mark.parametrize("sign", ["|", " | ", ";", "; ", ",", ", "])
def test_entries_are_trimmed_and_joined_by_a_bar(sign):
    rows = [["Drama", "War"], ["Drama"], ["War", "Comedy", "Drama"], ["Comedy", "War"]]
    type_, cells = read(*[sign.join(entries) for entries in rows])
    assert (type_, cells) == ("list", ["|".join(entries) for entries in rows])


def test_json_arrays_and_lists_as_python_writes_them_are_lists():
    assert read('["a", "b"]', "['c']", "[]", "[1, 2]") == ("list", ["a|b", "c", None, "1|2"])


def test_an_entry_of_an_array_keeps_no_bar_of_its_own():
    assert read('["a|b", "c"]', '["d"]') == ("list", ["a/b|c", "d"])


@pytest.mark.parametrize("cell", ['["a", ]]', f"[0x{'f' * 5000}]"])
def test_an_array_that_cannot_be_read_is_one_cell_that_does_not_fit(cell):
    cells = ['["a"]'] * 30
    assert read(*cells, cell)[1][-1] is None


def test_quotes_around_entries_go():
    assert read("Chess|\"Saint Louis\"|'Club'", "Chess") == (
        "list",
        ["Chess|Saint Louis|Club", "Chess"],
    )


def test_a_word_may_be_an_entry_where_a_sign_for_nothing_is_none():
    type_, cells = read("unknown", "Drama|War", "N/A", "War|Drama")
    assert (type_, cells) == ("list", ["unknown", "Drama|War", None, "War|Drama"])


@pytest.mark.parametrize(
    "cells",
    [
        ["A red jacket, warm, and dry", "Light, but it holds", "Of wool, from Peru, by hand", "x"],
        ["Smith, John", "Doe, Jane", "Smith, Jane", "Doe, John", "Smith, Joe"],
        ["Berlin, Germany", "Hamburg, Germany", "Bonn, Germany", "Paris, France", "Nice, France"],
        ["first; second", "third; fourth; fifth"],
        ["one"] * 50 + ["a|b"],
    ],
)  # fmt: skip
def test_prose_names_and_places_with_commas_are_text(cells):
    assert read(*cells) == ("text", cells)


def test_long_parts_are_sentences():
    prose = [
        f"{n} words of a sentence that goes on and on until it is far too long|next" for n in "ab"
    ]
    assert read(*prose)[0] == "text"


def test_told_lists_are_split_at_the_separator_that_most_cells_have():
    assert read("a, b", "c", told="list") == ("list", ["a|b", "c"])
    assert read("a; b, c", "d; e", told="list") == ("list", ["a|b, c", "d|e"])


def test_cells_to_come_are_split_as_the_column_was():
    assert read("salt, pepper", told="list", convention="|") == ("list", ["salt, pepper"])
    assert read("salt, pepper", told="list", convention=",") == ("list", ["salt|pepper"])
    assert read("salt|pepper, black", told="list", convention=",") == (
        "list",
        ["salt|pepper, black"],
    )


def test_a_few_categories_are_entries_where_one_cell_has_those_of_another():
    cells = ["Outdoor, Rain", "Outdoor", "Camp, Night", "Camp"] * 50
    assert read(*cells)[:1] == ("list",)
    assert read(*cells)[1][0] == "Outdoor|Rain"
    names = ["King, Stephen", "Plato", "Le Guin, Ursula K.", "Homer"] * 50
    assert read(*names)[0] == "text"
