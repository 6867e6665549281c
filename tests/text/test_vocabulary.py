"""Terms to rows: the binary search does what a dictionary does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.text.vocabulary import Vocabulary, count_terms

# NumPy's byte strings end at trailing NULs, which no term can contain.
terms = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)


@given(st.sets(terms), st.lists(terms | st.just("")))
def test_rows_are_what_a_dictionary_gives(known, asked):
    vocabulary = Vocabulary.of(known)
    twin = {term: row for row, term in enumerate(sorted(known))}
    assert vocabulary.rows(asked).tolist() == [twin.get(term, -1) for term in asked]


@given(st.sets(terms), st.lists(terms | st.sampled_from(["", "\ud800", "a\0", "long" * 9])))
def test_a_row_is_the_same_whether_all_are_kept_or_looked_for(known, asked):
    vocabulary = Vocabulary.of(known)
    expected = [vocabulary.row(term) for term in asked]
    assert list(map(Vocabulary(vocabulary.terms).cached_row, asked)) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qkvsearch.text.vocabulary.MAX_CACHED_ROWS", 0)
        assert list(map(Vocabulary(vocabulary.terms).cached_row, asked)) == expected


def test_a_longer_term_is_not_mistaken_for_its_beginning():
    assert Vocabulary.of(["cat"]).rows(["category", "ca", "cat"]).tolist() == [-1, -1, 0]


@given(st.lists(st.lists(st.sampled_from(["a", "b", "猫", "zz"]), max_size=5)))
def test_count_terms_is_a_plain_count(texts):
    vocabulary, counts = count_terms((" ".join(words) for words in texts), str.split)
    assert counts.shape == (len(texts), len(vocabulary))
    assert counts.dtype == np.float32
    rows = counts.toarray()
    for text, row in zip(texts, rows, strict=True):
        for term in ("a", "b", "猫", "zz"):
            (column,) = vocabulary.rows([term])
            assert (row[column] if column >= 0 else 0) == text.count(term)


def test_texts_without_a_single_term_give_one_empty_column():
    vocabulary, counts = count_terms(["", "!!"], lambda text: [])
    assert counts.shape == (2, 1)
    assert counts.nnz == 0
    assert vocabulary.rows(["", "!!"]).tolist() == [-1, -1]
