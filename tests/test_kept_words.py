"""What is kept of words: bounded, forgotten by copies, and the same for all threads."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import qkvsearch as qkv
from qkvsearch._utils.caching import MAX_LENGTH, cached_by_word
from qkvsearch.heads.bm25 import LexicalKeys
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.learned.corpus_encoders import ContrastiveEncoder, CorpusEncoder
from qkvsearch.text.pretrained.subwords import sum_rows
from tests.terms import count_terms

TEXTS = ["deep sea", "sea water and salt", "red car", "fast red car"] * 3
QUERIES = ["river bank", "bnak of the river", "how do neural networks learn", "music -piano", "it"]


@pytest.mark.parametrize("encoder", [CorpusEncoder, ContrastiveEncoder])
def test_an_encoder_that_answered_is_copied_and_pickled(encoder):
    fitted = encoder(n_components=2, random_state=0).fit(TEXTS)
    expected = fitted.transform(["sea car"])
    assert fitted.encoder_.encode("sea car").labels  # words one by one, whose rows are kept
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(other.transform(["sea car"]), expected)


def test_copied_keys_answer_without_the_ones_that_they_are_of():
    keys = LexicalKeys.from_counts(*count_terms(TEXTS, Analyzer().key_terms))
    words = Analyzer().tokens("red sea")
    expected = keys.head(words).scores
    other = copy.copy(keys)
    del keys
    np.testing.assert_array_equal(other.head(words).scores, expected)


def test_of_words_that_are_none_nothing_is_kept():
    asked = []
    lengths = cached_by_word(lambda word: asked.append(word) or len(word), maxsize=2)
    for word in ("sea", "sea", "a", "b", "sea", *["x" * (MAX_LENGTH + 1)] * 2):
        assert lengths(word) == len(word)
    assert asked == ["sea", "a", "b", "sea", *["x" * (MAX_LENGTH + 1)] * 2]


@pytest.mark.parametrize("pieces", [[1, 2, 1], [40], [1, 300, 2]])
def test_pieces_of_a_word_are_added_up_however_many(pieces):
    owners = np.repeat(np.arange(len(pieces)), pieces)
    vectors = np.random.default_rng(0).normal(size=(len(owners), 3))
    expected = [vectors[owners == i].sum(axis=0) for i in range(len(pieces))]
    np.testing.assert_allclose(sum_rows(vectors, owners, len(pieces)), expected)


@pytest.mark.slow
def test_threads_that_ask_at_once_get_what_one_gets(tmp_path):
    with qkv.build(tmp_path / "ws", "sample:videos", encoder="corpus") as engine:
        fresh = qkv.open(tmp_path / "ws")

        def ask(query):
            return [(hit.id, hit.score, hit.weight) for hit in fresh.search(query)]

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(ask, QUERIES * 8))
        fresh.close()
        fresh = engine
        expected = [ask(query) for query in QUERIES]
    assert found == expected * 8
