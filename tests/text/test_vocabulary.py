"""Terms to rows: the binary search does what a dictionary does."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.text.vocabulary import Vocabulary

# NumPy's byte strings end at trailing NULs, which no term can contain.
terms = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)


@given(st.sets(terms), st.lists(terms | st.just("")))
def test_rows_are_what_a_dictionary_gives(known, asked):
    vocabulary = Vocabulary.of(known)
    twin = {term: row for row, term in enumerate(sorted(known))}
    assert vocabulary.rows(asked).tolist() == [twin.get(term, -1) for term in asked]


@given(st.sets(terms), st.lists(terms | st.sampled_from(["", "\ud800", "a\0", "long" * 9])))
def test_a_row_is_what_a_dictionary_gives(known, asked):
    vocabulary = Vocabulary.of(known)
    twin = {term: row for row, term in enumerate(sorted(known))}
    assert [vocabulary.row(term) for term in asked] == [twin.get(term, -1) for term in asked]


def test_a_longer_term_is_not_mistaken_for_its_beginning():
    assert Vocabulary.of(["cat"]).rows(["category", "ca", "cat"]).tolist() == [-1, -1, 0]


def test_a_vocabulary_that_answered_is_pickled():
    vocabulary = Vocabulary.of(["cat", "dog"])
    assert vocabulary.row("dog") == 1
    other = pickle.loads(pickle.dumps(vocabulary))
    assert [other.row(term) for term in ("cat", "dog", "cow")] == [0, 1, -1]
