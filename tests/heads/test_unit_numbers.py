"""The units of words by their bytes: the same as those of the words as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.heads.unit_numbers import END, FIRST_OTHER, NO_UNIT, SpelledUnits, is_character
from qkvsearch.heads.unit_phrases import units_of
from qkvsearch.heads.word_index import WordSequences
from qkvsearch.text.analysis import IS_UNSPACED, Analyzer

LETTERS = "茶碗々〇あア가힣豈𠀀𰀀กเาက្ខaz1éπ-·🎂 "


def read(words):
    spellings = np.array(sorted(word.encode() for word in {"", *words}))
    return spellings, SpelledUnits.of(spellings)


@given(st.lists(st.text(LETTERS, min_size=1, max_size=8), max_size=20))
def test_units_are_those_of_the_words(texts):
    tokens = [token.text for text in texts for token in Analyzer("none").tokens(text)]
    spellings, found = read(tokens)
    assert found.first[0] == END
    for row, spelling in list(enumerate(spellings.tolist()))[1:]:
        word = spelling.decode()
        own = units_of(word)
        if not IS_UNSPACED(word):
            expected = [FIRST_OTHER + row, NO_UNIT]
        elif all(map(is_character, own)):
            expected = [*map(ord, own), NO_UNIT][:2]
        else:
            assert found.is_unread[row]
            continue
        assert [found.first[row], found.second[row]] == expected
        assert not found.is_unread[row]


@pytest.mark.parametrize("unit", ["碗", "𠀀"])
def test_a_character_is_found_in_pairs_with_characters_of_any_length(unit):
    texts = WordSequences.of_fields([["碗𠀀", "𠀀碗", "茶碗𠀀", "茶", "ก"]])
    _, within = texts.rows_with_unit(unit, short=9)
    assert within.tolist() == [0, 1, 2]
