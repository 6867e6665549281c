"""Lesson on translation: a small decoder that writes until the word that wins is the end."""

from typing import NamedTuple

import numpy as np

from qkvsearch.attention import attention

START, END = "<start>", "<end>"
NEXT_WORDS = ("不", "错", END)
# Made by hand: how good something is, whether 不 was just written, whether 错 was.
QUERIES = {START: [2.0, 0.0, 0.0], "不": [2.0, 6.0, 0.0], "错": [2.0, 0.0, 6.0]}
SOURCE = np.array([[0, 0, 0], [0, 0, 0], [2, 0, 0]], dtype=float)
DENSE = np.array([[1, -1, -1], [0, 1, 0], [0, 0, 1]], dtype=float)
MAX_WORDS = 10


class Pass(NamedTuple):
    """One run of the decoder: the word before, its output (3,), a score for each word that may
    follow (3,), and the word with the largest score."""

    after: str
    vector: np.ndarray
    scores: np.ndarray
    word: str


def written(source: np.ndarray = SOURCE, dense: np.ndarray = DENSE) -> list[Pass]:
    """Write a translation of a source (n, 3) by a last layer of these weights (words, 3).

    Stops at END, and after MAX_WORDS words for a layer that never chooses it.

    >>> [one.word for one in written()]
    ['不', '错', '<end>']
    """
    passes: list[Pass] = []
    word = START
    while word != END and len(passes) < MAX_WORDS:
        query = np.array([QUERIES[word]])
        # The output is added to the query, as in every layer of a transformer.
        vector = (query + attention(query, source, source))[0]
        scores = dense @ vector
        word, after = NEXT_WORDS[int(scores.argmax())], word
        passes.append(Pass(after, vector, scores, word))
    return passes
