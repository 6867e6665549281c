"""Of lesson 6: a decoder that writes until the word that wins is the end."""

from typing import NamedTuple

import numpy as np

from qkvsearch.attention import attention
from qkvsearch.attention.layers import Linear
from qkvsearch.attention.symbols import numbered
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.messages import say, shown
from qkvsearch.lessons.parts import Matrix, Step, Table, step, tell

START, END = "<start>", "<end>"
SMALL_SOURCE = ("This", "is", "good")
# Made by hand: how good it is, whether 不 was just written, whether 错 was.
ENCODED = np.array([[0, 0, 0], [0, 0, 0], [2, 0, 0]], dtype=float)
QUERIES = {START: [2.0, 0.0, 0.0], "不": [2.0, 6.0, 0.0], "错": [2.0, 0.0, 6.0]}
NEXT = ("不", "错", END)
DENSE = np.array([[1, -1, -1], [0, 1, 0], [0, 0, 1]], dtype=float)
MOST = 10


class Pass(NamedTuple):
    """One run of the decoder: the word before, what it makes of it (3,), a score for each word
    that may follow (3,), and the one that wins."""

    after: str
    vector: np.ndarray
    scores: np.ndarray
    word: str


def written(source: np.ndarray = ENCODED, weights: np.ndarray = DENSE) -> list[Pass]:
    """What is written for a source (n, 3) by a last layer of these weights (words, 3).

    Stops at END, and after `MOST` words for a layer that never chooses it.
    """
    passes: list[Pass] = []
    word = START
    while word != END and len(passes) < MOST:
        query = np.array([QUERIES[word]])
        # What was found is added to what was there, as in every layer of a transformer.
        vector = (query + attention(query, source, source))[0]
        scores = Linear(weights)(vector)
        passes.append(Pass(word, vector, scores, NEXT[int(scores.argmax())]))
        word = passes[-1].word
    return passes


def vectors_before_the_end(source: np.ndarray, dense: np.ndarray) -> np.ndarray:
    passes = written(source, dense)
    return np.array([one.vector for one in passes if one.word != END])


def length(source: np.ndarray = ENCODED) -> Step:
    passes = written(source)
    words = [one.word for one in passes if one.word != END]
    cell, vectors = ran(vectors_before_the_end, source=source, dense=DENSE)
    return step(
        "The model chooses the length",
        tell(
            "How long will a translation be? Nobody tells the decoder. One of the words it can "
            "choose is {end}, the end, and it writes until that has the largest score. Here it "
            "translates “{source}”. {start} stands for nothing written yet; this toy knows "
            "only its last word and what it finds in the source. Its vectors say three things: "
            "how good something is, whether {first} was written last, whether {second} was. The "
            "scores are their dot products with the rows of a dense layer.",
            first=NEXT[0],
            second=NEXT[1],
            end=END,
            start=START,
            source=" ".join(SMALL_SOURCE),
        ),
        Matrix(say("dense layer: a row a word"), DENSE, NEXT, numbered(3), "weight"),
        Table(
            say("Pass by pass: the scores, and the word that wins"),
            [say("after"), say("vector"), *NEXT, say("writes")],
            [[one.after, shown(one.vector), *one.scores.tolist(), one.word] for one in passes],
        ),
        tell(
            "{n} vectors went in, {m} came out before {end}: {words}, “not bad”. Models that "
            "choose the length are called *sequence to sequence*.",
            n=len(source),
            m=len(vectors),
            end=END,
            words="".join(words),
        ),
        points=(23,),
        found={"words": words, "vectors": vectors, "n_source": len(source), "passes": len(passes)},
        code=cell,
    )
