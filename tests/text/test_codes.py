"""Ids and article numbers: what is one, which columns have them, which words of a query are."""

import pandas as pd
import pytest

from qkvsearch.tables.dataset import read_dataset
from qkvsearch.text.product_codes import CODE, code_columns, code_terms, codes_in, whole_as_id


@pytest.mark.parametrize(
    "word",
    [
        "000467",
        "00467",
        "123456",
        "4006381333931",
        "ab-12/34",
        "t0042",
        "b07xj8c8f5",
        "12.5a",
        "x1y2",
    ],
)
def test_a_word_with_a_digit_that_names_a_thing_is_a_code(word):
    assert CODE.fullmatch(word)


@pytest.mark.parametrize(
    "word",
    [
        "12",
        "300",
        "2001",
        "99999",
        "0",
        "4k",
        "mp3",
        "90s",
        "tent",
        "self-attention",
        "a" * 64 + "1",
        "",
    ],
)
def test_small_numbers_years_and_words_are_no_codes(word):
    assert not CODE.fullmatch(word)


def terms(**columns):
    """The codes of three items, by row."""
    frame = pd.DataFrame({"id": ["a1", "a2", "a3"], "title": ["one", "two", "three"], **columns})
    catalog = read_dataset(frame, None).catalog
    found, rows = code_terms(catalog, code_columns(catalog))
    return sorted(zip(rows.tolist(), (term.decode() for term in found), strict=True))


IDS = [(0, "a1"), (1, "a2"), (2, "a3")]


@pytest.mark.parametrize(
    ("cells", "codes"),
    [
        (["AB-12/34", "AB-12/35", "CD-9/1"], ["ab-12/34", "ab-12/35", "cd-9/1"]),
        (["4006381333931", "4006381333932", "4006381333933"],) * 2,  # numbers
        (["004006", "004007", None], ["004006", "004007"]),
        (["2024-03-01", "2024-03-02", "2024-03-03"], []),
        (["12.5", "80.25", "1000.75"], []),
        (["1200", "8000", "9000"], []),
        (["x200", "x200", "x200"], []),  # nearly always the same
        (["x200", "red", "blue"], []),  # seldom a code
        (["12:30:45", "12:30:46", "9:05"], []),
        (["$12.50", "9.99 €", "£1000.75"], []),
        (["model x200", "model x300", "model x400"], []),
    ],
)
def test_a_column_of_codes_is_known_by_its_cells(cells, codes):
    rows = {(row, form) for row, code in enumerate(codes) for form in (code, code.replace("-", ""))}
    assert terms(thing=cells) == sorted({*IDS, *rows})


def test_each_entry_of_a_list_of_codes_is_one():
    listed = terms(thing=["A100|B200", "C300", None])
    assert listed == sorted([*IDS, (0, "a100"), (0, "b200"), (1, "c300")])


def test_a_code_in_two_columns_of_an_item_counts_once():
    assert terms(
        sku=["A1", "A2", "A3"], ean=["e100", "e200", "e300"], copy=["e100", "e200", "e300"]
    ) == sorted([*IDS, (0, "e100"), (1, "e200"), (2, "e300")])


def test_ids_are_codes_whatever_they_look_like_unless_they_are_very_long():
    frame = pd.DataFrame({"id": ["12", "Kettle", "x" * 65, "red  tent"], "title": list("abcd")})
    found, _ = code_terms(read_dataset(frame, None).catalog, [])
    assert found.tolist() == [b"12", b"kettle", b"red tent"]


def known(*terms):
    return set(terms).__contains__


def test_words_of_a_query_are_codes_as_typed_or_without_the_signs_around():
    is_known = known("ab-12/34", "#4711!", "000467", "2001", "12")
    found = codes_in("AB-12/34 ab-12/34? (000467), #4711! 2001 12 000468", is_known)
    assert [(token.text, token.term) for token in found] == [
        ("AB-12/34", "ab-12/34"), ("(000467),", "000467"), ("#4711!", "#4711!")
    ]  # fmt: skip


def test_12_monkeys_and_2001_a_space_odyssey_are_no_ids():
    is_known = known("12", "2001", "11", "monkeys")
    assert codes_in("12 monkeys", is_known) == codes_in("ocean's eleven 2001", is_known) == []
    assert whole_as_id("12 monkeys", is_known) is None
    assert whole_as_id(" 12 ", is_known).term == "12"
    assert whole_as_id("", known("")) is None
