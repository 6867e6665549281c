"""Amounts with a unit are numbers, and codes that look like numbers are not."""

import numpy as np
import pandas as pd
import pytest

from qkvsearch.tables.column_types.inference import typed
from qkvsearch.tables.columns.searched import holds_codes, why_unsearched


def read(*cells, name=None, **told):
    return typed(pd.Series(list(cells), name=name, dtype=object), **told)


def values(column):
    return [None if pd.isna(cell) else cell for cell in column.cells]


# --- units ---


@pytest.mark.parametrize(
    ("cells", "unit", "amounts"),
    [
        (["117分钟", "96 分钟"], "分钟", [117, 96]),
        (["12 oz", "3.5 oz"], "oz", [12, 3.5]),
        (["3,5 kg", "12,25 kg"], "kg", [3.5, 12.25]),
        (["25m", "7 m"], "m", [25, 7]),
        (["90 min", "91 min.", "2 minutes"], "min", [90, 91, 2]),
        (["1 Season", "2 Seasons", "3 Seasons"], "Seasons", [1, 2, 3]),
        (["8 fl. oz", "12 fl oz", "9 fl oz"], "fl oz", [8, 12, 9]),
        (["-4 °C", "21 °C"], "°C", [-4, 21]),
        (['12"', '7.5"'], '"', [12, 7.5]),
        (["٣٤ كغ", "٧ كغ"], "كغ", [34, 7]),
        (["１２ｇ", "８ｇ"], "ｇ", [12, 8]),
        (["106分钟(香港)", "97分钟"], "分钟", [106, 97]),
        (["$5", "$7.5"], "", [5, 7.5]),
        (["5%", "7%"], "", [5, 7]),
        (["5", "7"], "", [5, 7]),
    ],
)
def test_a_column_with_one_unit_is_a_number(cells, unit, amounts):
    column = read(*cells)
    assert (column.type, column.unit, values(column)) == ("number", unit, amounts)


def test_what_an_amount_was_is_kept():
    column = read("106分钟(香港)", "97", "96分钟")
    assert column.original.tolist() == ["106分钟(香港)", None, "96分钟"]


@pytest.mark.parametrize(
    "cells",
    [
        ["500 g", "1 kg", "200 g"],
        ["25 m", "3 M"],
        ["90 min", "2 Seasons"],
        ["19th century", "18th century"],
        ["1890s", "1920s"],
        ["1994年", "2003年"],
        ["3 pm", "11 pm"],
        ["500 BCE", "30 BCE"],
        ["12 Angry Men", "3 Idiots", "7 Samurai"],
        ["2 lb 3 oz", "4 lb 1 oz"],
        ["1st", "2nd"],
    ],
)
def test_mixed_units_and_what_is_no_amount_stay(cells):
    column = read(*cells)
    assert column.type != "number"
    assert column.unit == ""
    assert values(column) == cells or column.type == "date"


def test_mixed_units_are_said():
    assert "kept as text: mixed units: g, kg" in read("500 g", "20 g", "1 kg").changed


def test_numbers_without_the_unit_are_read_as_if_they_had_it_and_it_is_said():
    column = read(*["12 oz"] * 3, "7")
    assert values(column) == [12, 12, 12, 7]
    assert "1 of 4 numbers" in column.without_unit("mass")[0]
    assert read("12 oz", "7 oz").without_unit("mass") == []


@pytest.mark.parametrize("cells", [["101a", "102a", "7a"], ["12x", "14x"], ["1080p", "720p"]])
def test_a_number_with_a_letter_is_a_code_unless_the_letter_is_a_unit(cells):
    assert read(*cells).type == "text"


def test_numbers_beside_thousands_are_no_thousands():
    column = read("950", "1.2K", "15K")
    assert (column.type, column.unit) == ("text", "")
    assert values(read("1.2K", "15K")) == [1.2, 15]
    added = typed(pd.Series(["950", "3K"], dtype=object), "number", convention=". K")
    assert values(added) == [None, 3]


def test_letters_behind_a_few_numbers_are_no_unit():
    column = read(*[str(n) for n in range(40)], "13 each")
    assert (column.unit, values(column)[-1]) == ("", None)
    assert column.original.iloc[-1] == "13 each"


def test_added_amounts_in_another_unit_are_emptied():
    first = read("12 oz", "3.5 oz")
    cells = ["5 oz", "2 kg", "4 ounces", "9"]
    later = read(*cells, requested="number", convention=first.convention)
    assert values(later) == [5, None, 4, 9]
    assert later.unfit.tolist() == [False, True, False, False]


def test_a_unit_that_is_added_to_plain_numbers_is_said():
    column = read("5 oz", requested="number", convention=".")
    assert "oz" in column.other_unit("mass", "")[0]
    assert column.other_unit("mass", "oz") == []


# --- codes ---


@pytest.mark.parametrize(
    "cells",
    [
        ["06.16.2", "79.66.115", "1931.4.12"],
        ["1E3", "2E5", "17"],
        ["12E9", "7"],
        ["3.1", "3.10", "3.2"],
        ["0042", "17"],
        [*["01.5"] * 5, "12.5"],
    ],
)
def test_codes_are_text_and_are_found_whole(cells):
    column = read(*cells, name="model")
    assert (column.type, values(column)) == ("text", cells)
    assert holds_codes(column.cells)


@pytest.mark.parametrize(
    "cells",
    [
        ["3.10", "3.00", "12.99"],
        ["3.1", "3.2", "4"],
        ["1e+20", "5"],
        ["1.5E3", "5"],
        ["1.234.567", "2.345.678"],
        ["0.5", "0.75"],
        ["$3.1", "$3.10"],
        ["3.1 kg", "3.10 kg"],
    ],
)
def test_amounts_are_no_codes(cells):
    assert read(*cells, name="model").type == "number"


def test_a_column_that_is_named_as_a_price_has_prices():
    assert read("3.1", "3.10", name="Price (EUR)").type == "number"
    assert read("3.1", "3.10", name="version").type == "text"


def test_a_type_that_is_told_has_no_codes():
    assert values(read("3.1", "3.10", requested="number")) == [3.1, 3.1]


# --- native digits ---


@pytest.mark.parametrize("digits", ["٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "０１２３４５６７８９"])
def test_native_digits_are_numbers(digits):
    cells = ["".join(digits[int(digit)] for digit in str(n)) for n in range(1, 40)]
    column = read(*cells)
    assert values(column) == list(range(1, 40))
    assert column.original.tolist() == cells


@pytest.mark.parametrize(
    ("name", "cells", "numbers"),
    [
        ("Height (cm)", ["30", "31 cm", "28", "40", "12"], [30, 31, 28, 40, 12]),
        ("height_cm", ["30", "31cm", "28", "40", "12"], [30, 31, 28, 40, 12]),
        ("Height (cm)", ["30", "31 in", "28", "40", "12"], None),
        ("Height", ["30", "31 cm", "28", "40", "12"], None),
        ("Title (min)", ["12 min", "one night", "two days"], None),
    ],
)
def test_a_few_cells_with_the_unit_of_the_header_are_numbers(name, cells, numbers):
    column = typed(pd.Series(cells, name=name))
    if numbers is None:
        assert (column.type, column.cells.tolist()) == ("text", cells)
        return
    assert (column.type, column.unit, column.cells.tolist()) == ("number", "cm", numbers)
    assert column.changed == {"cm removed": 1}
    assert column.original.tolist() == [None, cells[1], None, None, None]
    more = pd.Series(["5 cm", "7"], name=name)
    assert typed(more, "number", convention=column.convention).cells.tolist() == [5, 7]


@pytest.mark.parametrize(
    ("name", "cell", "why"),
    [
        ("creator.artist_id", "cmoa:parties/43e25ea5", "ids"),
        ("artistID", "p-1042", "ids"),
        ("artist", "cmoa:parties/43e25ea5", ""),
        ("artist_id", "Anna", ""),
        ("video", "cmoa:parties/43e25ea5", ""),
    ],
)
def test_ids_of_something_else_are_no_text(name, cell, why):
    assert why_unsearched(pd.Series([cell, cell, f"{cell}7", None] * 5), name) == why


# --- line breaks ---


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        ([r"One.\n\nTwo", r"a\nb", "c"], ["One.\n\nTwo", "a\nb", "c"]),
        ([r"One.\r\nTwo"], ["One.\nTwo"]),
        ([r"C:\new\notes", "c"], None),
        ([r"One.\n\nTwo", "a\nb"], None),  # the file has line breaks of its own
        ([r"\n\n \alpha \beta \gamma"], None),
    ],
)
def test_line_breaks_that_were_written_as_two_characters_are_read(cells, read):
    column = typed(pd.Series(cells), searched=True)
    assert column.cells.tolist() == (read or cells)
    n_changed = 0 if read is None else sum(map(str.__ne__, cells, read))
    assert sum(column.changed.values()) == n_changed
    if read:
        assert column.original.tolist()[0] == cells[0]


# --- spaces and Unicode forms ---


def test_cells_that_look_equal_are_equal():
    cells = ["red", "red ", "red\u00a0", "\u200bred", "dark\u00a0red", "dark red", "gru\u0308n"]
    column = read(*cells)
    assert values(column) == ["red"] * 4 + ["dark red"] * 2 + ["grün"]
    assert column.original is None
    assert column.changed == {"spaces or decomposed letters": 5}


def test_a_column_without_such_cells_is_not_copied():
    texts = pd.Series(["red", "grün"], dtype=object)
    assert np.array_equal(read("red", "grün").cells, texts)
    assert not read("red", "grün").changed


@pytest.mark.parametrize("name", ["avg_rating", "Review Score", "评分", "豆瓣评分", "Bewertung"])
def test_ratings_are_numbers_however_many_digits_they_have(name):
    column = read("4.5", "4.50", "3.0", name=name)
    assert column.type == "number"
    assert values(column) == [4.5, 4.5, 3]
    assert read("3.1", "3.10", "3.2", name="Section").type == "text"


def test_decades_are_no_seconds():
    assert read("80s", "90s", "60s", "'70s").type == "text"
    seconds = read("80s", "45s", "60s")
    assert (seconds.unit, values(seconds)) == ("s", [80, 45, 60])
    assert read("80 s", "90 s").unit == "s"
