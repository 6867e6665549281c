"""The words of a sentence of one's own."""

import numpy as np
import pytest

from qkvsearch.lessons.compute.sentences import by_words, words_of
from qkvsearch.text.encoded_text import attend_without_layers
from qkvsearch.text.labelled import LabelledVectors

APPLES = "他把苹果洗了，苹果很甜"


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Fliegen fliegen hinter Fliegen her", "Fliegen fliegen hinter Fliegen her"),
        (APPLES, "他 把 苹果 洗 了 苹果 很 甜"),
        ("我看我", "我 看 我"),
        ("他 喜欢 苹果", "他 喜欢 苹果"),
        ("用 Python 写 Python", "用 Python 写 Python"),
    ],
)
def test_the_words_of_a_sentence(sentence, words):
    assert words_of(sentence) == words.split()


def test_the_longest_run_that_comes_again_is_one_word():
    assert words_of("自注意力不是注意力，自注意力是") == "自注意力 不 是 注意力 自注意力 是".split()


def test_characters_that_are_one_word_attend_as_one():
    characters = "他把苹果洗了，苹果很甜"
    vectors = np.random.default_rng(0).normal(size=(len(characters), 4))
    text = attend_without_layers(LabelledVectors(list(characters), vectors), "none", [], "static")
    read = by_words(text, words_of(characters))
    assert read.words == "他 把 苹果 洗 了 ， 苹果 很 甜".split()
    weights = read.word_weights()[0, 0]
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    # From 他: the weights to both characters together.
    assert weights[0, 2] == pytest.approx(text.weights[0, 0, 0, 2:4].sum())


def test_a_long_sentence_has_every_character_and_is_read_at_once():
    characters = [chr(ord("一") + n) for n in range(5000)]
    assert words_of("".join(characters)) == characters
