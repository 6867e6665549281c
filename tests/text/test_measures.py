"""Numbers and what is typed beside them: 25m, 25 m and 25-m are the same, and 2.5 m is another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.text.analysis import Analyzer, with_topics

analyzer = Analyzer()


def words(text):
    return [token.text for token in analyzer.tokens(text)]


@pytest.mark.parametrize(
    ("spellings", "keys"),
    [
        (["25m", "25 m", "25-m", "25‑m", "25 M"], ["25", "25m", "m"]),
        (["2.5m", "2,5 m", "2.5-m", "2,5M"], ["2.5", "2.5m", "m"]),
        (["500GB", "500 gb", "500-GB"], ["500", "500gb", "gb"]),
        (["B6", "b-6", "B 6", "B‑6"], ["b", "6", "b6"]),
        (["25 cm²", "25cm2", "25-cm2"], ["25", "25cm2", "cm2"]),
        ([".5 oz", "0.5oz", "(.5-oz)", "$.5 oz", "0,5 oz"], ["0.5", "0.5oz", "oz"]),
        (["25 m²", "25m2", "25m²", "25 M2"], ["25", "25m2", "m2"]),
        (["2 l", "2l", "2.0 L", "2,0l"], ["2", "2l", "l"]),
    ],
)
def test_a_number_with_a_unit_is_the_same_however_it_is_typed(spellings, keys):
    for spelling in spellings:
        assert analyzer.key_terms(spelling) == keys
        assert len(analyzer.token_spans(spelling)) == 2


def test_other_numbers_have_no_term_in_common():
    of = {text: set(analyzer.key_terms(text)) - {"m"} for text in ("2.5m", "5m", "25 m", "15m")}
    assert not any(of[a] & of[b] for a in of for b in of if a != b)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1000", "1000"),
        ("1,000", "1000"),
        ("1.000", "1000"),
        ("1 000", "1000"),
        ("1\u00a0000", "1000"),
        ("1'500", "1500"),
        ("1,000,000", "1000000"),
        ("1,299.50", "1299.50"),
        ("1.299,50", "1299.50"),
        ("0.125", "0.125"),
        ("3.14159", "3.14159"),
        ("2.5000", "2.5000"),
        ("٣٫٥", "3.5"),
        ("١٬٠٠٠", "1000"),
        ("2,5", "2.5"),
        ("3.10", "3.10"),
        ("１２", "12"),
    ],
)
def test_a_number_is_read_without_the_signs_between_thousands(text, number):
    assert words(text) == words(f"{text}, {text}.")[:1] == [number]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2,3", ["1", "2", "3"]),
        ("1999,2000", ["1999", "2000"]),
        ("iPhone 13 128 GB", ["iphone", "13", "128", "gb"]),
        ("1.2.3 and 24/7", ["1.2.3", "and", "24/7"]),
        ("M4x20 = M4 × 20", ["m", "4", "x", "20", "m", "4", "x", "20"]),
        ("5W-30", ["5", "w", "30"]),
        ("5w30", ["5", "w", "30"]),
        ("1m22", ["1", "m", "22"]),
        ("½ cup = 1/2 cup", ["1/2", "cup", "1/2", "cup"]),
        ("1½ l, 12¾ m, 1⅓", ["1.5", "l", "12.75", "m", "1", "1/3"]),
        ("19th, 90s, 1990s", ["19th", "90s", "1990s"]),
        ("C3PO R2D2 H2O", ["c3po", "r2d2", "h2o"]),
        ("5 C++", ["5", "c++"]),
        ("and...5 men, no.5", ["and", "5", "men", "no", "5"]),
        ("in 1999. 5 men", ["in", "1999", "5", "men"]),
        ("64GB内存", ["64", "gb", "内存"]),
    ],
)
def test_what_is_no_measure_stays_as_it_is(text, expected):
    assert words(text) == expected


def test_a_stop_word_is_no_unit_but_a_letter_that_touches_a_number_is_one():
    assert analyzer.key_terms("in 1999") == ["in", "1999"]
    assert [token.text for token in analyzer.query_tokens("fuse 5a")] == ["fuse", "5", "a"]
    assert [token.text for token in analyzer.query_tokens("fuse 5 a")] == ["fuse", "5"]


def test_encoders_learn_names_with_numbers_but_no_numbers():
    learned = [
        token.term for token in with_topics(analyzer.tokens("3D MP3 11in 500 GB in 1999 🎂"))
    ]
    assert learned == ["3d", "mp3", "11in", "gb", "in"]


@given(st.text(st.sampled_from("19 0.,'-xm²bgßé猫/+#\u00ad"), max_size=14))
def test_every_word_has_its_place(text):
    tokens, places = analyzer.tokens(text), analyzer.token_spans(text)
    assert len(tokens) == len(places)
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert analyzer.spans(text, set(analyzer.key_terms(text))) or not tokens


@pytest.mark.parametrize("unit", ["1 ", "1,000", "1x", "1m", "a1", "1 m ", "m-1 ", "1 000 "])
def test_long_chains_of_numbers_are_read(unit):
    assert analyzer.tokens(unit * 20_000 + " sea")[-1].text == "sea"
