"""Compounds of a catalog's words, by their parts, and a query's word as a compound of theirs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.text.related_words import compounds_of, split_compound


def catalog(text):
    return np.array(sorted({word.encode() for word in text.split()}) or [], dtype=bytes)


GERMAN = catalog(
    "jacke jackpot jackentasche regen regenjacke regenjacken regensburg winterjacke tasche tisch "
    "schreiben schreibtisch praktisch drastische arbeit arbeitsplatz platz kirche kirchturm turm "
    "regeneration winterjackett"
)


def found(word, words, language):
    return compounds_of(word, words, language)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("jacke", ["jackentasche", "regenjacke", "regenjacken", "winterjacke"]),
        ("Jacken", ["jackentasche", "regenjacke", "regenjacken", "winterjacke"]),
        ("regen", ["regenjacke", "regenjacken"]),
        ("tasche", ["jackentasche"]),
        ("tisch", ["schreibtisch"]),
        ("schreiben", ["schreibtisch"]),
        ("platz", ["arbeitsplatz"]),
        ("kirche", ["kirchturm"]),
        ("turm", ["kirchturm"]),
        ("die", []),
        ("", []),
        ("𐏿" * 50, []),
    ],
)
def test_compounds_have_the_word_as_first_or_last_part(word, expected):
    assert found(word, GERMAN, "german") == expected


def test_a_first_part_that_the_catalog_does_not_have_takes_a_long_enough_last_one():
    words = catalog("winterjacke sommerhose sttjacke")
    assert found("jacke", words, "german") == ["winterjacke"]
    assert found("hose", words, "german") == []
    assert found("hose", catalog("sommerhose sommer"), "german") == ["sommerhose"]


@pytest.mark.parametrize(
    ("word", "language", "words", "expected"),
    [
        ("fiets", "dutch", "kinderfiets kinderen kinder", ["kinderfiets"]),
        ("skola", "swedish", "flickskola flicka musikskolor", ["flickskola", "musikskolor"]),
        ("flicka", "swedish", "flickskola skola", ["flickskola"]),
        ("arbejde", "danish", "arbejdsplads plads", []),
        ("plads", "danish", "arbejdsplads arbejd", ["arbejdsplads"]),
        ("kenkä", "finnish", "juoksukenka juoksu", ["juoksukenka"]),
        ("jacket", "english", "lifejacket life", []),
        ("jacke", "none", "regenjacke regen", []),
    ],
)
def test_languages_have_their_own_links(word, language, words, expected):
    assert found(word, catalog(words), language) == expected


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("regenjacke", ("regen", "jacke")),
        ("Regenjacken", ("regen", "jacken")),
        ("arbeitsplätze", ("arbeit", "platze")),
        ("kirchturm", ("kirche", "turm")),
        ("schreibtisch", ("schreiben", "tisch")),
        ("winterjacke", None),
        ("jacke", None),
        ("regentisch", ("regen", "tisch")),
        ("", None),
    ],
)
def test_a_word_of_the_query_is_taken_apart_into_known_words(word, parts):
    assert split_compound(word, GERMAN, "german") == parts


def test_without_a_link_comes_before_with_one():
    words = catalog("gast stube gasts tube haus hauser erhaltung haltung")
    assert split_compound("hauserhaltung", words, "german") == ("haus", "erhaltung")
    assert split_compound("hauserhaltung", words, "english") is None


@given(
    st.lists(st.text("aejknrstu", min_size=1, max_size=12)),
    st.text("aejknrstuß\ud800", max_size=12),
)
def test_any_word_of_any_catalog(texts, word):
    words = catalog(" ".join(texts))
    for one in compounds_of(word, words, "german"):
        assert one.encode() in words.tolist()
    parts = split_compound(word, words, "german")
    assert parts is None or parts[0].encode() in words.tolist()
    assert compounds_of(word, words[:0], "german") == []
    assert split_compound(word, words[:0], "german") is None


def test_a_match_across_two_words_of_the_array_is_none():
    words = np.array([b"aaregenja", b"ckebbbbbb"])
    assert found("jacke", words, "german") == []
