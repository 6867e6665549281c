"""Lesson 6, its steps on words: from a vector to a word, and on until the word that is the end."""

from typing import NamedTuple

import numpy as np

from qkvsearch.attention import attention, softmax
from qkvsearch.attention.layers import Linear
from qkvsearch.attention.trace import Trace
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Step, Table, step, tell

# Which words the layer knows, and what each of them means, as the values have it.
WORDS = ("When", "the", "tide", "goes", "out", "pants")
MEANINGS = np.array(
    [[0, 0, 0, 1], [1, 1, -1, -1], [2, 1, -1, -1], [-1, -1, 2, 1], [-1, -1, 1, 2], [0, 1, 0, 0]],
    dtype=float,
)

START, END = "<start>", "<end>"
SOURCE = ("This", "is", "good")
# Made by hand: how good it is, whether 不 was just written, whether 错 was.
ENCODED = np.array([[0, 0, 0], [0, 0, 0], [2, 0, 0]], dtype=float)
QUERIES = {START: [2.0, 0.0, 0.0], "不": [2.0, 6.0, 0.0], "错": [2.0, 0.0, 6.0]}
NEXT = ("不", "错", END)
DENSE = np.array([[1, -1, -1], [0, 1, 0], [0, 0, 1]], dtype=float)
MOST = 10


# --- one word ---


def scored(output: np.ndarray, meanings: np.ndarray) -> np.ndarray:
    dense = Linear(meanings)
    return dense(output)


def predicted(output: np.ndarray) -> str:
    return WORDS[int(scored(output, MEANINGS).argmax())]


def next_word(found: Trace) -> Step:
    output = found["outputs"].array[-1]
    cell, scores = ran(scored, output=output, meanings=MEANINGS)
    probabilities = softmax(scores)
    word = predicted(output)
    return step(
        "From a vector to a word",
        tell(
            "The last output, {output}, is the *prediction vector*. A *dense layer* has a "
            "row of numbers for each word it knows; the dot product with the vector is the "
            "word's score, and softmax turns the scores into probabilities.",
            output=output,
        ),
        Table(
            say("The words that this small layer knows"),
            [say("word"), say("score"), say("probability")],
            [[w, float(s), float(p)] for w, s, p in zip(WORDS, scores, probabilities, strict=True)],
        ),
        tell(
            "The word with the largest score (its place is called the *argmax*) is “{word}”. "
            "It is written, gives the next query, and so on.",
            word=word,
        ),
        points=(12,),
        found={"vector": output, "scores": scores, "probabilities": probabilities, "word": word},
        code=cell,
    )


# --- until the end ---


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
            "only its last word and what it finds in the source.",
            end=END,
            start=START,
            source=" ".join(SOURCE),
        ),
        Table(
            say("Pass by pass: the scores, and the word that wins"),
            [say("after"), *NEXT, say("writes")],
            [[one.after, *one.scores.tolist(), one.word] for one in passes],
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
