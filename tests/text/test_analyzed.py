"""Texts that are read once: what is counted in them is what each text has when read alone."""

import re
import unicodedata
from itertools import chain
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch._utils.folding import fold
from qkvsearch.text import analyzed
from qkvsearch.text.analysis import HAS_DIGIT, Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts, TextParts, TokenSequences, _RunsOfWords
from qkvsearch.text.token_encoder import TokenEncoder
from qkvsearch.text.vocabulary import Vocabulary
from tests.terms import count_terms, counts_in

WORDS = (
    "The deep sea, C++ and AC/DC in 3.5mm 1984 注意力 机制 注 a don't L'amour de l'été of R&B . "
    ".NET v2.0 C# c aren't Été ete and/or 24/7 naïve ＤＪ 猫 ΟΔΟΣ straße İstanbul 2001 the"
).split(" ")
LANGUAGES = ("english", "french", "german", "none")

texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join), min_size=1, max_size=6)
languages = st.sampled_from(LANGUAGES)


def assert_same(found, expected):
    (vocabulary, counts), (known, counted) = found, expected
    assert vocabulary.terms.tolist() == known.terms.tolist()
    assert counts.dtype == np.float32
    assert counts.toarray().tolist() == counted.toarray().tolist()
    assert counts.has_sorted_indices


@given(texts, languages)
def test_counts_are_those_of_the_texts_alone(texts, language):
    analyzer = Analyzer(language)
    read = AnalyzedTexts.of(texts, analyzer)
    assert_same(read.key_counts(), count_terms(texts, analyzer.key_terms))
    assert_same(read.term_counts(), count_terms(texts, analyzer.terms))
    assert read.n_tokens.tolist() == [len(analyzer.tokens(text)) for text in texts]
    assert list(read) == texts


@given(st.lists(st.text(max_size=30), max_size=4), languages)
def test_of_any_text(texts, language):
    analyzer = Analyzer(language)
    read = AnalyzedTexts.of(texts, analyzer)
    terms = [sorted(analyzer.terms(text)) for text in texts]
    vocabulary, counts = read.term_counts()
    known = [term.decode() for term in vocabulary.terms.tolist()]
    rows = counts.toarray().astype(int).tolist()
    assert [np.repeat(known, row).tolist() for row in rows] == terms


@given(
    texts, languages, st.sets(st.sampled_from(["sea", "ac", "dc", "c", "r&b", "net", "été", "ete"]))
)
def test_an_encoder_reads_its_own_terms(texts, language, known):
    vocabulary = Vocabulary.of(known)
    n = len(vocabulary)
    encoder = TokenEncoder(vocabulary, np.eye(n), np.ones(n), Analyzer(language))
    counts = AnalyzedTexts.of(texts, encoder.analyzer).counts_in(vocabulary)
    tokens = map(encoder.meaningful_tokens, texts)
    expected = counts_in(vocabulary, ([token.term for token in each] for each in tokens))
    assert counts.toarray().tolist() == expected.toarray().tolist()


@given(texts, texts, languages)
def test_columns_of_items_are_joined_and_taken(titles, tags, language):
    analyzer, n = Analyzer(language), min(len(titles), len(tags))
    columns = AnalyzedTexts.of_columns([titles[:n], tags[:n]], analyzer)
    whole = AnalyzedTexts.joined(columns)
    assert list(whole) == [f"{a}\n{b}" for a, b in zip(*columns, strict=True)]
    assert_same(whole.term_counts(), count_terms(list(whole), analyzer.terms))
    rows = np.arange(n)[::-2]
    taken = [whole[row] for row in rows.tolist()]
    assert list(whole.take(rows)) == taken
    assert_same(whole.take(rows).key_counts(), count_terms(taken, analyzer.key_terms))


def test_columns_read_apart_are_joined_by_reading_them_again():
    columns = [AnalyzedTexts.of([text], Analyzer()) for text in ("deep sea", "sea")]
    vocabulary, counts = AnalyzedTexts.joined(columns).term_counts()
    assert vocabulary.terms.tolist() == [b"deep", b"sea"]
    assert counts.toarray().tolist() == [[1, 2]]


@given(texts, texts, languages)
def test_tokens_come_in_reading_order(titles, tags, language):
    analyzer, n = Analyzer(language), min(len(titles), len(tags))
    columns = AnalyzedTexts.of_columns([titles[:n], tags[:n]], analyzer)
    tokens, indptr, numbers = TokenSequences.of(columns)
    read = [
        [*(token for text in item for token in [*analyzer.tokens(text), None])]
        for item in zip(*columns, strict=True)
    ]
    expected = [token for item in read for token in item]
    assert [None if number < 0 else tokens[number] for number in numbers] == expected
    assert np.diff(indptr).tolist() == [len(item) for item in read]
    first_met = dict.fromkeys(number for number in numbers.tolist() if number >= 0)
    assert list(first_met) == list(range(len(tokens)))


# Runs of several words have a number in them, and no end of a line.
PARTS = [*WORDS, "25", "m", "B", "6", "1", "000", "½", "cm²", "x", ".5", "x2", "5´", "e\u0301"]
long_texts = st.lists(
    st.tuples(st.sampled_from(PARTS), st.sampled_from([" ", "\n", "  ", "\t", "\xa0", "-", ""])),
    max_size=12,
).map(lambda parts: "".join(chain.from_iterable(parts)))


@given(st.lists(long_texts, min_size=1, max_size=4), languages)
def test_a_long_text_has_the_same_words_as_a_short_one(texts, language):
    analyzer = Analyzer(language)
    with patch.object(analyzed, "LONG", 0), patch.object(analyzed, "BLOCK", 3):
        tokens, indptr, numbers = TokenSequences.of(AnalyzedTexts.of_columns([texts], analyzer))
    for text, start, end in zip(texts, indptr, indptr[1:], strict=False):
        of_text = [tokens[number] for number in numbers[start : end - 1]]
        assert of_text == analyzer.tokens(text)


@st.composite
def texts_with_parts(draw):
    texts = draw(st.lists(long_texts, min_size=1, max_size=4))
    parts = []
    for owner, text in enumerate(texts):
        places = st.integers(0, len(text))
        spans = draw(st.lists(st.tuples(places, places), max_size=4))
        parts += [(owner, min(span), max(span)) for span in spans]
        parts += [(owner, 0, np.iinfo(np.int32).max)] * draw(st.integers(0, 1))
    return texts, np.array(parts, np.int64).reshape(len(parts), 3)


@given(texts_with_parts(), st.sampled_from([0, 1, 20]), languages)
def test_parts_have_the_words_that_they_have_alone(made, longest, language):
    texts, parts = made
    analyzer = Analyzer(language)
    cut = TextParts(texts, *parts.T)
    with patch.object(analyzed, "LONG", longest), patch.object(analyzed, "BLOCK", 3):
        of_texts, of_parts = AnalyzedTexts.of_columns([texts, cut], analyzer)
        alone = AnalyzedTexts.of_columns([list(cut)], analyzer)
        tokens, indptr, numbers = TokenSequences.of([of_parts])
        expected, starts, own = TokenSequences.of(alone)
    assert [tokens[number] if number >= 0 else None for number in numbers] == [
        expected[number] if number >= 0 else None for number in own
    ]
    assert indptr.tolist() == starts.tolist()
    assert list(of_texts) == texts
    assert list(of_parts) == list(cut)


def test_parts_between_words_are_not_read_again(monkeypatch):
    texts = ["the deep sea. " * 100]
    cut = TextParts(texts, np.zeros(2, np.int64), np.array([0, 700]), np.array([714, 1400]))
    monkeypatch.setattr(_RunsOfWords, "in_text", lambda *_: pytest.fail("read again"))
    _, parts = AnalyzedTexts.of_columns([texts, cut], Analyzer())
    assert np.diff(parts.indptr).tolist() == [3 * 51, 3 * 50]


def test_a_folded_digit_keeps_its_neighbours():
    has_digit = re.compile(r"\d").search
    # Below the planes of Chinese characters, and where other numbers are.
    known = [*range(0x3400), *range(0xF900, 0x1FFFF)]
    folded = [c for c in map(chr, known) if has_digit(unicodedata.normalize("NFKD", c))]
    assert any(char == "²" for char in folded)
    assert all(has_digit(fold(char)) and HAS_DIGIT(char) for char in folded)


def test_what_was_read_is_not_read_again(monkeypatch):
    read = AnalyzedTexts.of(["deep sea"], Analyzer())
    assert AnalyzedTexts.of(read, Analyzer()) is read
    assert AnalyzedTexts.of(read, Analyzer("french")) is not read
    columns = AnalyzedTexts.of_columns([["deep"], ["sea"]], Analyzer())
    assert all(
        a is b for a, b in zip(AnalyzedTexts.of_columns(columns, Analyzer()), columns, strict=True)
    )


@pytest.mark.parametrize("texts", [[], [""], ["", "!!"]])
def test_texts_without_a_word(texts):
    read = AnalyzedTexts.of(texts, Analyzer())
    for vocabulary, counts in (read.term_counts(), read.key_counts()):
        assert counts.shape == (len(texts), 1)
        assert counts.nnz == 0
        assert vocabulary.rows(["", "!!"]).tolist() == [-1, -1]
    assert read.counts_in(Vocabulary.of(["sea"])).shape == (len(texts), 1)


def test_parts_are_distinct_by_where_they_are():
    texts = ["deep sea", "deep sea"]
    owners, starts, ends = np.array([0, 0, 0, 0, 1, 1, 1]), np.zeros(7, np.int64), np.full(7, 9)
    # Two parts of one text, and three empty ones of both.
    starts[1], ends[1], ends[3], starts[4:6], ends[4:6] = 5, 8, 0, 6, 6
    parts = TextParts(texts, owners, starts, ends)
    rows, number_of = parts.distinct(slice(1, 7))
    assert sorted(rows.tolist()) == [1, 2, 3, 6]
    assert [parts[row] for row in rows[number_of].tolist()] == parts[1:7]
