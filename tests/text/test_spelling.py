"""Which words a misspelled one may be."""

import pytest

from qkvsearch.text.spelling import (
    is_in_dictionary,
    max_errors,
    near_words,
    split_in_two,
    word_rarity,
)

KNOWN = ["jacket", "packet", "guitar", "beginners", "the", "than", "cello", "seven", "bread"]


@pytest.mark.parametrize(
    ("typed", "meant", "errors"),
    [
        ("jakcet", "jacket", 1), ("jaket", "jacket", 1), ("jackket", "jacket", 1),
        ("jsckst", None, 0), ("begginers", "beginners", 2), ("teh", "the", 1), ("tge", None, 0),
        ("gutiar", "guitar", 1), ("uitar", None, 0), ("ugitar", "guitar", 1), ("mello", None, 0),
        ("br", None, 0),
    ],
)  # fmt: skip
def test_near_words(typed, meant, errors):
    assert near_words(typed, KNOWN) == ([(meant, errors)] if meant else [])


def test_a_word_is_no_misspelling_of_itself_and_longer_words_may_have_more_errors():
    assert near_words("jacket", ["jacket", "packet"]) == [("jacket", 0)]
    assert [max_errors("a" * n) for n in (3, 4, 7, 8, 20)] == [0, 1, 1, 2, 2]


def test_two_words_without_their_blank():
    is_known = {"rain", "jacket", "spider", "man"}.__contains__
    assert split_in_two("rainjacket", is_known) == ("rain", "jacket")
    assert split_in_two("rainjacke", is_known) is None
    assert split_in_two("spiderman", is_known) is None
    assert split_in_two("spiderman", is_known, shortest=1) == ("spider", "man")


def test_words_of_the_language_are_no_misspellings():
    assert is_in_dictionary("jogging")
    assert not is_in_dictionary("jakcet")
    assert is_in_dictionary("Fahrrad", ["de"])
    assert is_in_dictionary("jogging", ["fr", "de"])
    assert is_in_dictionary("Fahrrad", ["fr", "zh", "de"])
    assert not is_in_dictionary("Fahrrad")
    assert not is_in_dictionary("zzqx", ["tlh"])


def test_common_words_of_a_language_weigh_less_and_unknown_languages_have_none():
    rarity = word_rarity("english")
    assert 0.1 <= rarity["talk"] < rarity["movi"] < 1
    assert not {"loop", "zombi"} & rarity.keys()
    assert 0.1 <= word_rarity("german")["uber"] < 1
    assert not word_rarity("klingon")
