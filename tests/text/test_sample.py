"""What large catalogs teach their own encoders: a part of them, and all of small ones."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.encoders import learned_encoder
from qkvsearch.text.learned import sample
from qkvsearch.text.learned.sample import SHORTEST_CUT, texts_to_learn_from


def word(item, number):
    """A word that no other text has."""
    digits = f"{item:03}{number:04}"
    return "".join(chr(ord("b") + int(digit)) for digit in digits)


def columns_of(*lengths):
    """A title of two words and a text of so many, each with words of its own, for each item."""
    texts = [" ".join(word(i, n) for n in range(length)) for i, length in enumerate(lengths)]
    titles = [f"otter {word(i, 0)}" for i in range(len(lengths))]
    return AnalyzedTexts.of_columns([titles, texts], Analyzer())


def words_of(column):
    """The words that are counted of each text, in order."""
    runs = list(column.runs.numbers)
    spans = zip(column.indptr[:-1], column.indptr[1:], strict=True)
    return [[runs[number] for number in column.numbers[start:end]] for start, end in spans]


def n_words(columns):
    return sum(int(column.n_tokens.sum()) for column in columns)


def test_all_texts_of_a_small_catalog_are_learned_from():
    columns = columns_of(5, 5000)
    assert texts_to_learn_from(columns, n_words(columns)) is columns


def test_long_texts_are_cut_before_an_item_is_left_out():
    columns = columns_of(600, 20, 2000, 900)
    titles, texts = texts_to_learn_from(columns, 1800)
    assert words_of(titles) == words_of(columns[0])
    assert texts.n_tokens.tolist() == [590, 20, 590, 590]
    starts = []
    for whole, cut in zip(words_of(columns[1]), words_of(texts), strict=True):
        start = whole.index(cut[0])
        assert whole[start : start + len(cut)] == cut
        starts.append(start)
    # A long text does not say at its beginning all that it is about.
    assert starts[2] > 0
    assert starts[3] > 0


def test_items_are_drawn_where_texts_would_be_too_short():
    columns = columns_of(*[400] * 100)
    titles, texts = texts_to_learn_from(columns, 13_000)
    assert set(texts.n_tokens.tolist()) == {SHORTEST_CUT}
    assert len(texts) == len(titles) == 13_000 // (SHORTEST_CUT + 2)
    for title, words in zip(words_of(titles), words_of(texts), strict=True):
        assert words[0][:3] == title[1][:3]


def test_equal_catalogs_give_equal_parts():
    parts = [texts_to_learn_from(columns_of(*[400] * 50), 5000) for _ in range(2)]
    assert [[*map(words_of, part)] for part in parts[:1]] == [[*map(words_of, parts[1])]]


def test_a_text_without_spaces_is_cut_by_its_words():
    columns = AnalyzedTexts.of_columns([["注意力机制，" * 300]], Analyzer())
    [text] = texts_to_learn_from(columns, SHORTEST_CUT)
    assert text.n_tokens[0] == pytest.approx(SHORTEST_CUT, abs=4)


@pytest.mark.parametrize("head", ["lsa", "contrastive"])
def test_encoders_learn_from_the_part_alone(head, monkeypatch):
    rng = np.random.default_rng(0)
    known = [f"{a}{b}" for a in ("kiln", "mill", "boat", "weir") for b in "abcdefghij"]
    texts = [" ".join(rng.choice(known, 30)) for _ in range(40)]
    texts[0] += " otter"
    columns = AnalyzedTexts.of_columns([texts], Analyzer())
    monkeypatch.setattr(sample, "SHORTEST_CUT", 10)
    whole = learned_encoder(head, columns).encoder
    monkeypatch.setattr(sample, "MAX_WORDS", 300)
    part = learned_encoder(head, columns).encoder
    again = learned_encoder(head, AnalyzedTexts.of_columns([texts], Analyzer())).encoder
    assert len(part.vocabulary) <= len(whole.vocabulary)
    assert not np.array_equal(part.weights, whole.weights)
    assert np.array_equal(part.vectors, again.vectors)


def test_a_build_says_what_its_encoders_learned_from(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    texts = [" ".join(word(n, 0) for n in rng.integers(300, size=20)) for _ in range(550)]
    items = pd.DataFrame({"id": range(len(texts)), "title": texts})
    monkeypatch.setattr(sample, "MAX_WORDS", 6000)
    with qkv.build(tmp_path / "ws", items=items, encoder="corpus") as engine:
        assert (
            "lsa and contrastive learned from about 6,000 of 11,000 words" in engine.info()["rows"]
        )
        [hit] = engine.search(texts[7], k=1)
        assert hit.title == texts[7]
