"""Lesson 9: what context buys, first of all to tell apart a word that stands twice."""

import re
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention
from qkvsearch.attention.layers import sinusoidal_positions
from qkvsearch.attention.symbols import distinct, numbered
from qkvsearch.errors import QkvError
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.context import layers, outputs
from qkvsearch.lessons.course.context.questions import quizzes
from qkvsearch.lessons.drawings import Arrows, Flow
from qkvsearch.lessons.messages import mark, say
from qkvsearch.lessons.parts import Formula, Given, Matrix, Step, Table, step, tell
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench
from qkvsearch.text.analysis import CJK, RUNS, fold

TITLE = mark("What context buys")
GOAL = mark("See what attention can tell apart that a layer for each word by itself cannot.")
MINUTES = 21
TAKES = ("sentence",)

SENTENCE = "I saw a saw"
# A heat map of more words than this is wider than a terminal.
MOST_WORDS = 12
D = 4
W_QUERY = np.array([[1, 0], [0, 1], [1, 0], [0, -1]], dtype=float)
W_KEY = np.array([[0, 1], [1, 0], [0, 1], [1, 1]], dtype=float)
W_VALUE = np.array([[1, 0], [2, 1], [0, 1], [1, -1]], dtype=float)


def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    twice = Twice.of(SENTENCE if given.sentence is None else given.sentence)
    by_layers = layers.steps()
    return [
        alone(twice),
        without_positions(twice),
        told_apart(twice),
        *outputs.steps(),
        *by_layers,
    ], quizzes(twice.apart(), by_layers)


# --- the same word twice ---


@dataclass(frozen=True)
class Twice:
    """A sentence in which a word stands at the places `first` and `last`."""

    words: tuple[str, ...]
    first: int
    last: int

    @classmethod
    def of(cls, sentence: str) -> "Twice":
        """Raises `QkvError` where no word comes back after another, or there are too many words."""
        words = words_of(sentence)
        if len(words) > MOST_WORDS:
            raise QkvError(
                f"`sentence` has {len(words)} words, more than the {MOST_WORDS} that are shown: "
                "give a shorter one"
            )
        folded = [fold(word) for word in words]
        for first, word in enumerate(folded):
            last = len(folded) - 1 - folded[::-1].index(word)
            if set(folded[first:last]) - {word}:
                return cls(words, first, last)
        raise QkvError(
            f"`sentence` {sentence!r} has no word that comes back after another one, as in "
            f'"{SENTENCE}": this lesson asks what tells the two apart'
        )

    @property
    def word(self) -> str:
        return self.words[self.last]

    @property
    def inputs(self) -> np.ndarray:
        """(n, D): the same word gets the same vector, from a small random table."""
        folded = [fold(word) for word in self.words]
        rows = list(dict.fromkeys(folded))
        table = np.random.default_rng(0).normal(size=(len(rows), D)).round(1)
        found: np.ndarray = table[[rows.index(word) for word in folded]]
        return found

    @property
    def positions(self) -> np.ndarray:
        return sinusoidal_positions(len(self.words), D, dtype=np.float64)

    @property
    def bench(self) -> Workbench:
        labels = distinct(self.words)
        return Workbench(
            name="twice",
            caption=say("Try any numbers, then the look-ahead mask: do the two rows differ?"),
            matrices={
                "inputs": self.inputs,
                "w_query": W_QUERY,
                "w_key": W_KEY,
                "w_value": W_VALUE,
            },
            rows=labels,
            columns=labels,
            masks=("none", "look-ahead"),
        )

    def outputs(self) -> dict[str, np.ndarray]:
        """What each way makes of the sentence, (n, 2) each."""
        placed = {"inputs": self.inputs + self.positions}
        return {
            "connected": word_by_word(self.inputs, W_VALUE),
            "attention": self.bench.steps()["outputs"],
            "positions": self.bench.steps(placed)["outputs"],
            "look-ahead": self.bench.steps(mask="look-ahead")["outputs"],
        }

    def apart(self) -> dict[str, float]:
        """How far the word's two outputs are from each other, the largest difference, each way."""
        return {
            way: float(np.abs(array[self.first] - array[self.last]).max().round(12))
            for way, array in self.outputs().items()
        }


def words_of(sentence: str) -> tuple[str, ...]:
    """Words; of Chinese, which has no spaces, the characters.

    >>> words_of("I saw a saw."), words_of("我看我")
    (('I', 'saw', 'a', 'saw'), ('我', '看', '我'))
    """
    runs = RUNS.findall(sentence)
    return tuple(w for run in runs for w in (run if re.match(f"[{CJK}]", run) else [run]))


def word_by_word(X: Array, W_V: Array) -> Array:
    return X @ W_V


def alone(twice: Twice) -> Step:
    x, rows = twice.inputs, distinct(twice.words)
    source = say(" (an example of Hung-yi Lee's lectures, 2021)")
    cell, value = ran(word_by_word, X=x, W_V=W_VALUE)
    return step(
        "A layer for each word by itself",
        tell(
            'In "{sentence}" the word "{word}" stands twice, and may mean two things{source}. '
            "A table gives each word a vector, X. A *fully connected layer* multiplies each vector "
            "by one matrix: every number of the result is connected to every number of the "
            "vector. (It is also called a *dense* or a *linear* layer.) "
            "Where the word stands again it is written {second}, only to tell the two rows apart; "
            "this ′ has nothing to do with softmax.",
            second=rows[twice.last],
            sentence=" ".join(twice.words),
            word=twice.word,
            source=source if " ".join(twice.words) == SENTENCE else "",
        ),
        Formula("X·W"),
        Matrix(say("inputs X"), x, rows, numbered(D), "input"),
        Matrix("W", W_VALUE, numbered(D), numbered(2), "weight"),
        Matrix(say("outputs, word by word"), value, rows, numbered(2), "output"),
        tell(
            "The same vector goes in both times, so the same comes out: the two outputs "
            "differ by {apart}. No matrix W can change that.",
            apart=twice.apart()["connected"],
        ),
        points=(24,),
        found={"outputs": value, "apart": twice.apart()["connected"]},
        code=cell,
    )


def of_all_words(X: Array, W_Q: Array, W_K: Array, W_V: Array) -> Array:
    return attention(X @ W_Q, X @ W_K, X @ W_V)


def without_positions(twice: Twice) -> Step:
    cell, value = ran(of_all_words, X=twice.inputs, W_Q=W_QUERY, W_K=W_KEY, W_V=W_VALUE)
    steps = twice.bench.trace(twice.bench.matrices)
    return step(
        "Attention alone does not help either",
        tell(
            "Self-attention lets every word attend to all words. But equal vectors make "
            "equal queries, equal queries make equal scores, and both attend to the same "
            "keys: the two outputs differ by {apart}. Attention without a mask sees which "
            "words are there, not in what order.",
            apart=twice.apart()["attention"],
        ),
        Formula("softmax(Q·Kᵀ/√d)·V"),
        Matrix("W_Q", W_QUERY, numbered(D), numbered(2), "weight"),
        Matrix("W_K", W_KEY, numbered(D), numbered(2), "weight"),
        tell("W_V is the W of the step before."),
        Matrix.of(steps["weights"], say("weights")),
        Matrix.of(steps["outputs"], say("outputs")),
        Flow(
            "twice",
            say("With the look-ahead mask, what flows to the same word is no longer the same"),
            twice.bench,
            asks=say("word that asks"),
            asked=say("word that is asked"),
        ),
        twice.bench,
        points=(24,),
        found={"outputs": value, "apart": twice.apart()["attention"]},
        code=cell,
    )


def in_order(X: Array, W_Q: Array, W_K: Array, W_V: Array) -> tuple[Array, Array]:
    placed = X + sinusoidal_positions(len(X), X.shape[1], dtype=np.float64)
    by_positions = attention(placed @ W_Q, placed @ W_K, placed @ W_V)
    by_a_mask = attention(X @ W_Q, X @ W_K, X @ W_V, is_causal=True)
    return by_positions, by_a_mask


def told_apart(twice: Twice) -> Step:
    cell, value = ran(in_order, X=twice.inputs, W_Q=W_QUERY, W_K=W_KEY, W_V=W_VALUE)
    apart, rows = twice.apart(), distinct(twice.words)
    outputs = {**twice.outputs(), **dict(zip(("positions", "look-ahead"), value, strict=True))}
    names = {
        "connected": say("a layer for each word"),
        "attention": say("attention, no positions"),
        "positions": say("attention, positions added"),
        "look-ahead": say("attention, look-ahead mask"),
    }
    return step(
        "Positions or a look-ahead mask tell them apart",
        tell(
            "Two things bring the order in. *Positions*: a vector P that says where a word "
            "stands is added to it. Or a *look-ahead mask*, by which a word sees only itself "
            "and what came before: the two then see different words. (Lesson 11 says more "
            "about P.)"
        ),
        Matrix(say("positions P"), twice.positions, rows, numbered(D), "input"),
        Matrix(say("outputs, positions added"), outputs["positions"], rows, numbered(2), "output"),
        Matrix(say("outputs, look-ahead mask"), outputs["look-ahead"], rows, numbered(2), "output"),
        Arrows(
            "apart",
            say("The outputs with positions as arrows: one word, two directions"),
            outputs["positions"],
            rows,
            (say("first number"), say("second number")),
            against=twice.first,
            chosen=twice.last,
        ),
        Table(
            say("How far the two are apart"),
            [say("way"), say("largest difference")],
            [[names[way], value] for way, value in apart.items()],
        ),
        points=(24,),
        found={"apart": apart, **outputs},
        code=cell,
    )
