"""Of lesson 10: heads of MiniLM, recorded on a dozen sentences, and heads of the reader's own."""

from functools import cache
from importlib.resources import files

import numpy as np

from qkvsearch.lessons.drawings import AttendedText, Heads
from qkvsearch.lessons.drawings.heads import LEVELS
from qkvsearch.lessons.messages import say
from qkvsearch.text.encoded_text import EncodedText

FILE = "minilm_heads.npz"


@cache
def recorded() -> tuple[AttendedText, ...]:
    """Every sentence, with the weights of all layers and heads; `docs/minilm_heads.py` says how
    they lie in the file.
    """
    with (files(__package__) / FILE).open("rb") as file, np.load(file) as found:
        words, lengths, codes, shape = (
            found[name] for name in ("words", "lengths", "codes", "shape")
        )
    readings, at = [], 0
    ends = np.cumsum(lengths)
    for n, end in zip(lengths, ends, strict=True):
        size = int(shape.prod()) * n * n
        own = codes[at : at + size].reshape(*shape, n, n)
        at += size
        readings.append(AttendedText(words[end - n : end].tolist(), own / LEVELS, own))
    return tuple(readings)


def heads_recorded(word: str, target: str) -> Heads:
    """The head that attends most from one word to another in the first sentence, and all others."""
    words = list(recorded()[0].words)
    caption = say(
        "All heads of a real transformer, MiniLM, as they read twelve sentences: choose a "
        "sentence, a head and a word"
    )
    return _heads(recorded(), words.index(word), words.index(target), caption)


def heads_of(reading: EncodedText, word: int, target: int) -> Heads:
    """The same of a text that was just read; word, target: their places in it."""
    caption = say("All that attends to one another in your sentence: choose a word")
    found = AttendedText(list(reading.words), reading.word_weights())
    return _heads((found,), word, target, caption)


def _heads(readings: tuple[AttendedText, ...], word: int, target: int, caption: str) -> Heads:
    weights = readings[0].weights
    layer, head = np.unravel_index(weights[:, :, word, target].argmax(), weights.shape[:2])
    return Heads("heads", caption, readings, layer=int(layer), head=int(head), word=word)
