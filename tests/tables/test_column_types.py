"""The type of a column is decided from all its cells, and what is done to them is counted."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.tables.column_types import NAMES, inference
from qkvsearch.tables.column_types.inference import typed
from qkvsearch.tables.columns import numbers as number_cells


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def read(*cells, told=None, searched=False, convention=""):
    column = pd.Series(cells, dtype=object)
    return typed(column, told, searched=searched, convention=convention)


def values(column):
    return column.cells.astype(object).where(column.cells.notna(), None).tolist()


def numbers(*cells, **told):
    column = read(*cells, **told)
    assert column.type == "number"
    return values(column)


# --- numbers ---


def test_one_n_a_among_1000_prices_leaves_a_column_of_numbers():
    column = read(*[f"{n}.50" for n in range(999)], "N/A")
    assert column.type == "number"
    assert values(column) == [*[n + 0.5 for n in range(999)], None]
    assert column.changed == {"N/A emptied": 1}
    assert not column.unfit.any()


def test_dollars_with_thousands_and_euros_with_a_decimal_comma_in_one_column():
    column = read("$1,299.00", "66,80 €", "79.99")
    assert values(column) == [1299.0, 66.8, 79.99]
    assert column.changed == {
        "$ removed": 1, "€ removed": 1, "separators removed": 1, "decimal comma read": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    "cell",
    [
        "$12.50", "12.50$", "$ 12.50", "US$12.50", "USD 12.50", "12.50 EUR", "12,50 €", "€12.50",
        "£12.50", "¥12.50", "12,50 kr", "kr. 12,50", "12,50 zł", "Rs. 12.50", "CHF 12.50", "+12.50",
        "12.50\u00a0€", "12.50\u202fEUR", "eur 12.50", "₹12.50", "R$ 12,50", "１２.50",
    ],
)  # fmt: skip
def test_amounts_of_money_are_numbers_with_the_currency_on_either_side(cell):
    assert numbers(cell) == [12.5]


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("1,234,567.89", 1234567.89),
        ("1.234.567,89", 1234567.89),
        ("1 234 567,89", 1234567.89),
        ("1\u00a0234\u202f567.89", 1234567.89),
        ("1'234'567.89", 1234567.89),
        ("1’234’567.89", 1234567.89),
        ("12,34,567.89", 1234567.89),
        ("0,5", 0.5),
        (".5", 0.5),
        ("1,2345", 1.2345),
        ("12345,678", 12345.678),
        ("1e+3", 1000),
        ("1.5E3", 1500),
        ("−7", -7),
        ("-7.5", -7.5),
        ("- 7.5", -7.5),
        ("(1,200.50)", -1200.5),
        ("($5)", -5),
        ("$-5", -5),
        ("-$5", -5),
        ("12%", 12),
        ("-3.5 %", -3.5),
        ("199,-", 199),
        ("  42 ", 42),
        ("￥1299", 1299),
        ("￥５９．５", 59.5),
        ("１２％", 12),
        ("（５）", -5),
        ("١٢٫٥٠", 12.5),
        ("١٬٢٩٩٫٠٠", 1299),
        ("١٢٫٥٠٠ د.ك", 12.5),
        ("\u200f٨٩ ريال", 89),
        ("٢٥٪", 25),
        ("१२.५", 12.5),
    ],
)
def test_a_number_as_it_is_written_somewhere(cell, number):
    assert numbers(cell) == [number]


def test_numbers_with_and_without_a_percent_sign_are_noted():
    (note,) = typed(pd.Series(["10%", "0.1", "0", None])).mixed_percentages("rate")
    assert "rate: 1 of 2 numbers" in note
    with_sign, without = typed(pd.Series(["10%", "0"])), typed(pd.Series(["0.1"]))
    assert not with_sign.mixed_percentages("rate")
    assert not without.mixed_percentages("rate")
    assert not with_sign.other_percentages("rate", with_sign.changed)
    assert "rate" in with_sign.other_percentages("rate", without.changed)[0]
    assert "rate" in without.other_percentages("rate", with_sign.changed)[0]


@pytest.mark.parametrize(
    "cell",
    [
        "1.2.3", "12 34", "1,23,4", "(5", "5)", "5 pm", "5th", "1890s", "1994年", "a5",
        "$5 USD", "--5", "+-5", "5-", "1,2,3",
        "1.23,45", "$", "e5", ",", "5..", "0x10", "1_000", "inf", "NaN!", "1e400", "-1e400", "²",
    ],
)  # fmt: skip
def test_what_is_no_number(cell):
    assert read(cell).type != "number"


def test_separators_are_decided_for_the_column_as_a_whole():
    assert numbers("1.234,56", "1.234") == [1234.56, 1234]
    assert numbers("1.5", "1.234") == [1.5, 1.234]
    assert numbers("1,5", "1,234", "2,5") == [1.5, 1.234, 2.5]
    assert numbers("1,234.5", "1,234") == [1234.5, 1234]
    assert numbers("1,234,567", "1.234") == [1234567, 1.234]


def test_the_majority_decides_where_the_cells_disagree_and_that_is_said():
    column = read("1,50", "2,50", "3.5", "1.234")
    assert values(column) == [1.5, 2.5, 3.5, 1234]
    assert column.changed["ambiguous: 1.234 read as 1234"] == 1


def test_the_majority_is_one_of_cells_not_of_distinct_ones():
    assert numbers(*["1,5"] * 3, "2.5", "3.5", "1.234")[-1] == 1234


@pytest.mark.parametrize(
    ("cells", "expected", "said"),
    [
        (["1.234", "999"], [1.234, 999], "ambiguous: 1.234 read as 1.234"),
        (["1,234", "999"], [1234, 999], "ambiguous: 1,234 read as 1234"),
        (["1.234 €", "999 €"], [1234, 999], "ambiguous: 1.234 € read as 1234"),
        (["1.234", "1,234"], [1.234, 1234], "ambiguous: 1.234 read as 1.234"),
    ],
)
def test_where_no_cell_decides_a_rule_does_and_it_is_said(cells, expected, said):
    column = read(*cells)
    assert values(column) == expected
    assert column.changed[said] == sum("234" in cell for cell in cells)


def test_what_was_decided_once_decides_for_cells_to_come():
    decided = read("1.234,56").convention
    column = read("1.234", told="number", convention=decided)
    assert values(column) == [1234]
    assert not any(change.startswith("ambiguous") for change in column.changed)
    assert values(read("1.5", "1.234", told="number", convention=decided)) == [1.5, 1.234]


WORDS = [
    "N/A", "n/a", "NA", "#N/A", "-", "—", "null", "NULL", "none", "nil", "nan", "NaN", "?",
    "(none)", "[null]", "unknown", "#DIV/0!", "\\N", "  ", "tbd",
]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_a_word_for_nothing_is_empty_among_numbers_and_counted(word):
    column = read("5", word, "7")
    assert (column.type, values(column)) == ("number", [5, None, 7])
    assert (column.changed[f"{word.strip()} emptied"], column.unfit.sum()) == (1, 0)


@pytest.mark.parametrize("word", [word for word in WORDS if word.strip()])
def test_a_word_for_nothing_stays_in_a_text(word):
    assert values(read("Namibia", word)) == ["Namibia", word]


def test_a_few_cells_that_do_not_fit_are_emptied_counted_and_shown():
    column = read(*["5"] * 95, *["call us"] * 4, "soon")
    assert (column.type, column.cells.isna().sum()) == ("number", 5)
    assert column.changed == {"emptied: no number": 5}
    texts = pd.Series([*["5"] * 95, *["call us"] * 4, "soon"])
    ids = pd.Series([f"p{n}" for n in range(100)])
    assert column.emptied("Price", texts, ids) == [
        "column Price: 5 of 100 cells emptied, for they are no number: 'call us' (id p95), "
        "'call us' (id p96), 'call us' (id p97)"
    ]


def test_too_many_cells_that_do_not_fit_leave_the_column_text_and_it_is_said():
    column = read(*["5"] * 94, *["call us"] * 6)
    assert (column.type, values(column)[-1]) == ("text", "call us")
    assert column.changed == {"kept as text: no number, such as 'call us'": 6}


def test_of_words_for_nothing_alone_no_type_is_made():
    assert values(read("N/A", "N/A", None)) == ["N/A", "N/A", None]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["0042", "17", "8"], "codes with leading zeros"),
        ([str(2**64 - 1), "5"], "long codes, whose last digits a number would lose"),
        ([str(2**53 + 1), "5.5"], "long codes, whose last digits a number would lose"),
        (["+4917012345678", "+4917012345679"], "telephone numbers"),
        (["601 234 567", "601 234 568"], "telephone numbers"),
        (["1.2.3", "1.2", "1.3"], "codes with several dots"),
    ],
)
def test_codes_that_look_like_numbers_stay_text(cells, reason):
    column = read(*cells)
    assert (column.type, values(column)) == ("text", cells)
    assert f"kept as text: {reason}" in column.changed


def test_huge_numbers_are_numbers():
    assert numbers("3e+38", "-3.0e38", "5") == [3e38, -3e38, 5]
    assert numbers(str(int(3e38)), "5") == [3e38, 5]
    assert numbers(str(2**63 - 1), str(2**53 + 1)) == [2**63 - 1, 2**53 + 1]


def test_what_is_infinite_is_no_number():
    cells = [*["5"] * 97, "inf", "-inf", "1e+400"]
    column = read(*cells)
    assert values(column)[-3:] == [None, None, None]
    assert column.changed == {"emptied: no number": 3}


# How a number is written in several countries: separator of thousands, decimal separator, around.
LOCALES = [
    (",", ".", "{}"), (".", ",", "{}"), (" ", ",", "{} €"), ("\u202f", ",", "{}"), ("'", ".", "{}"),
    (",", ".", "${}"), (".", ",", "{} kr"), ("", ".", "{}"), ("", ",", "{}"), (",", ".", "{}%"),
]  # fmt: skip


@given(
    st.lists(st.decimals(-(10**9), 10**9, places=2).filter(bool), min_size=1, max_size=20),
    st.sampled_from(LOCALES),
)
def test_a_number_written_as_in_a_country_is_read_back(amounts, locale):
    thousands, decimal, around = locale
    swapped = {",": thousands, ".": decimal}
    cells = [
        around.format("".join(swapped.get(char, char) for char in f"{amount:,}"))
        for amount in amounts
    ]
    assert numbers(*cells) == [float(amount) for amount in amounts]


@given(st.lists(st.text(max_size=12) | st.none(), max_size=30), st.sampled_from([None, *NAMES]))
def test_any_text_at_all_is_read_and_every_gap_is_counted(cells, told):
    column = read(*cells, told=told)
    filled = [cell for cell in cells if cell is not None]
    lost = sum(n for what, n in column.changed.items() if what.split()[-1] == "emptied")
    lost += column.changed["emptied: no " + column.type]
    assert len(column.cells) == len(cells)
    if column.type != "text":
        assert column.cells.notna().sum() + lost == len(filled)


def test_many_cells_of_prose_are_not_read_as_numbers_one_by_one(monkeypatch):
    read_lengths = []
    original = number_cells.read_numbers

    def counted(texts, *args):
        read_lengths.append(len(texts))
        return original(texts, *args)

    monkeypatch.setattr(number_cells, "read_numbers", counted)
    read(*[f"thing {n}" for n in range(5000)])
    assert sum(read_lengths) <= inference.SAMPLE


def test_rare_prose_among_many_numbers_is_not_missed_for_being_drawn_in_a_sample():
    cells = [*[str(n) for n in range(4000)], *[f"about {n}" for n in range(100)]]
    column = read(*cells)
    assert (column.type, column.unfit.sum()) == ("number", 100)
    # Most of the distinct cells are no numbers, but most of the cells are.
    cells = [*["5"] * 100_000, *[f"about {n}" for n in range(4000)]]
    assert read(*cells).unfit.sum() == 4000


# --- dates ---


def test_dates_in_mixed_forms_are_kept_as_iso_text():
    column = read("2024-03-01", "13/03/2024", "March 1, 2024", "N/A")
    assert (column.type, values(column)) == (
        "date", ["2024-03-01", "2024-03-13", "2024-03-01", None],
    )  # fmt: skip
    assert column.changed == {"written as ISO": 2, "N/A emptied": 1}


def test_a_time_of_day_in_any_cell_is_kept_in_all_in_utc():
    column = read("2024-03-01T10:00:00+02:00", "2024-03-02")
    assert values(column) == ["2024-03-01 08:00:00", "2024-03-02 00:00:00"]


def test_one_order_of_day_and_month_is_taken_for_the_column():
    assert values(read("13/02/2024", "01/03/2024")) == ["2024-02-13", "2024-03-01"]
    assert values(read("02/13/2024", "01/03/2024")) == ["2024-02-13", "2024-01-03"]


def test_dates_that_tell_no_day_from_month_are_said_to_be_ambiguous():
    column = read("01/03/2024", "02/03/2024")
    assert column.changed["ambiguous: 01/03/2024 read month first"] == 2
    known = read("01/03/2024", told="date", convention="day first")
    assert values(known) == ["2024-03-01"]
    assert not any(change.startswith("ambiguous") for change in known.changed)


def test_the_order_of_day_and_month_is_known_from_then_on():
    assert read("13/02/2024", "01/03/2024").convention == "day first"
    assert read("02/13/2024", "01/03/2024").convention == "month first"
    assert read("2024-03-01").convention == ""


@pytest.mark.parametrize(
    "cells",
    [
        ["1.2.10", "1.10.3", "2.0.11"], ["01:30:00", "02:10:00"], ["Marvel 3", "May 5"],
        ["1914-18", "1939-45"], ["soon", "later"],
        [*[f"1.{n % 12 + 1}.1{n % 10}" for n in range(40)], "1.2.3"],
    ],
)  # fmt: skip
def test_what_is_no_date(cells):
    assert read(*cells).type == "text"


# --- yes and no ---


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("true", "FALSE"), ("Yes", "no"), ("y", "N"), ("ja", "nein"), ("oui", "non"), ("sí", "no"),
        ("Si", "No"), ("JA", "NEE"), ("да", "нет"), ("tak", "nie"), ("evet", "hayır"),
        ("是", "否"), ("有", "无"), ("有", "没有"), ("はい", "いいえ"), ("예", "아니요"),
        ("نعم", "لا"), ("כן", "לא"), ("हाँ", "नहीं"), ("có", "không"), ("EVET", "HAYIR"),
        ("ΝΑΙ", "ΟΧΙ"), ("Sim", "Na\u0303o"), ("Si\u0301", "No"), ("بله", "خير"), ("हां", "नहीं"),
        ("有り", "無し"), ("ある", "ない"), ("있음", "없음"), ("Já", "Não"), ("Taip", "Ne"),
        ("Jā", "Nē"), ("ＹＥＳ", "ＮＯ"), ("Da", "Nu"),
    ],
)  # fmt: skip
def test_yes_and_no_in_any_language_are_1_and_0(yes, no):
    column = read(yes, no, None, "-")
    assert (column.type, values(column)) == ("yes/no", [1, 0, None, None])
    assert column.changed == {"yes and no to 1 and 0": 2, "- emptied": 1}


def test_one_letter_throughout_is_text():
    assert read("Y", "Y").type == "text"


@pytest.mark.parametrize(
    "codes",
    [
        ["NO", "JA", "NO"], ["no", "ja"], ["SI", "NO"], ["si", "no"], ["N", "S"], ["NO", "NO"],
        ["CO", "NO"], ["No", "Da", "Si"], ["Ja", "No"], ["N", "O", "S"], ["N", "O", "S", "Y"],
        ["No", "Y", "O", "N"],
    ],
)  # fmt: skip
def test_codes_of_languages_and_countries_are_text(codes):
    column = read(*codes)
    assert (column.type, values(column)) == ("text", codes)
    assert any("the type to yes/no" in change for change in column.changed)
    assert read(*codes, told="yes/no").type == "yes/no"


def test_codes_are_text_though_a_few_are_of_other_languages():
    assert read(*["NO"] * 30, *["JA"] * 9, "DE").type == "text"


@pytest.mark.parametrize(
    ("answer", "other"), [("Ja", "auf Anfrage"), ("yes", "sold out"), ("Nein", "вряд ли")]
)
def test_few_other_words_beside_one_answer_are_kept(answer, other):
    column = read(*[answer] * 97, *[other] * 3)
    assert (column.type, values(column)[-1]) == ("text", other)
    assert any(other in change for change in column.changed)
    assert values(read(*[answer] * 97, other, told="yes/no"))[-1] is None


def test_few_other_words_beside_both_answers_are_emptied():
    column = read(*["Ja"] * 60, *["Nein"] * 37, *["auf Anfrage"] * 3)
    assert (column.type, int(column.unfit.sum())) == ("yes/no", 3)


def test_0_and_1_are_yes_and_no_where_told():
    column = read("0", "1", told="yes/no")
    assert (column.type, values(column), column.changed) == ("yes/no", [0, 1], {})


# --- told ---


def test_a_type_that_is_told_is_taken_and_what_does_not_fit_is_emptied():
    column = read("0042", "x", "y", told="number")
    assert (column.type, values(column)) == ("number", [42, None, None])
    assert column.changed == {"leading zeros removed": 1, "emptied: no number": 2}
    assert column.unfit.tolist() == [False, True, True]


def test_a_column_told_to_be_text_is_left_as_it_is():
    column = read("5", "N/A", "7", told="text")
    assert (column.type, values(column), column.changed) == ("text", ["5", "N/A", "7"], {})


@pytest.mark.parametrize("told", ["number", "date", "yes/no", "list"])
def test_a_column_without_cells_is_of_any_type_told(told):
    column = read(None, None, told=told)
    assert (column.type, values(column)) == (told, [None, None])


def test_a_column_that_search_reads_is_text_or_a_list():
    assert read("5", "7", searched=True).type == "text"
    assert read("Rain|Snow", "Rain", searched=True).type == "list"
    assert read("5", "7", searched=True, told="number").type == "number"


def test_html_goes_before_a_column_is_read():
    column = read("<b>12</b>", "&euro;&nbsp;13,50", "7")
    assert values(column) == [12, 13.5, 7]
    assert column.changed["HTML removed"] == 2


def test_what_is_known_of_a_column_names_an_example_and_the_share_of_gaps():
    facts = read(None, "$5", "N/A", "7").facts("Price", "", "Price_2")
    assert facts.to_record() == {
        "name": "Price", "role": "", "type": "number", "empty": 0.5, "example": "5",
        "changed": {"$ removed": 1, "N/A emptied": 1}, "stored": "Price_2", "convention": "",
        "unit": "",
    }  # fmt: skip


def test_cells_keep_their_rows():
    column = typed(pd.Series(["a", None, "b"], index=[7, 3, 9], name="x"))
    assert column.cells.index.tolist() == [7, 3, 9]
    assert np.array_equal(column.cells.isna(), [False, True, False])
