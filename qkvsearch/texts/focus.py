"""What a word attends to, in which head, and how its vector changes with the text around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.errors import QkvError
from qkvsearch.texts.analysis import STOP_WORDS, fold
from qkvsearch.texts.encoded_text import EncodedText
from qkvsearch.texts.self_attention import AttentionMap


@dataclass(frozen=True)
class AttendedWord:
    """How much a word attends to another; of a transformer, in the head where that is most."""

    query_position: int
    query: str
    key_position: int
    key: str
    weight: float
    visible: bool
    layer: int | None
    head: int | None

    def to_record(self) -> dict[str, Any]:
        """As of a map: positions are those of the words' first tokens."""
        return {name: x for name, x in vars(self).items() if x is not None}


@dataclass(frozen=True)
class Focus:
    """What one word attends to: `attended`, strongest first; `shown`, the one that was asked for,
    or else the first; `words` (m) and `row` (m,), all weights in that head, whose map is `map`.
    """

    attended: list[AttendedWord]
    shown: AttendedWord
    words: list[str]
    row: np.ndarray
    map: AttentionMap


@dataclass(frozen=True)
class Comparison:
    """Cosines of words with themselves in another text, (n_layers + 1, n_words), first before any
    attention, then after each layer.
    """

    words: list[str]
    cosines: np.ndarray

    def to_records(self) -> list[dict[str, Any]]:
        """One dictionary a word and depth: how many layers it went through, 0 for none."""
        return [
            {"word": word, "after_layers": depth, "cosine": float(self.cosines[depth, i])}
            for i, word in enumerate(self.words)
            for depth in range(len(self.cosines))
        ]


def focus(
    reading: EncodedText,
    word: str,
    at: str | None = None,
    layer: int | None = None,
    head: int | None = None,
) -> Focus:
    """What a word attends to, and the head in which it attends most to another: to the word `at`,
    else to any that is neither itself, a special token, a sign, nor, where there are others, a stop
    word.

    Only heads of `layer`, or of number `head`, count where those are given. Raises `QkvError` for
    words that are not in the text, and where there is nothing else to attend to.

    >>> from qkvsearch.texts.token_encoder import TokenEncoder
    >>> from qkvsearch.texts.vocabulary import Vocabulary
    >>> encoder = TokenEncoder(Vocabulary.of(["cat", "dog"]), np.eye(2), np.ones(2))
    >>> shown = focus(encoder.attend("a dog, a cat"), "dog").shown
    >>> shown.key, round(shown.weight, 3)
    ('cat', 0.119)
    """
    i = reading.position(word)
    target = None if at is None else reading.position(at)
    places = [(0, 0)]
    if reading.has_layers or (layer, head) != (None, None):
        places = reading.places(layer, head)
    weights = reading.word_weights()
    rows = np.stack([weights[place][i] for place in places])
    firsts = np.searchsorted(reading.owners, np.arange(len(reading.words)))
    attended, best = [], rows.argmax(axis=0)
    for j, name in enumerate(reading.words):
        if j == target or (is_word(name) and fold(name) != fold(word)):
            where = places[best[j]] if reading.has_layers else (None, None)
            visible = bool(reading.mask[firsts[i], firsts[j]])
            seen = (int(firsts[i]), reading.words[i], int(firsts[j]), name)
            attended.append(AttendedWord(*seen, float(rows[best[j], j]), visible, *where))
    if not attended:
        raise QkvError(f"{word!r} has no other word to look at")
    attended.sort(key=lambda one: -one.weight)
    wanted = None if target is None else firsts[target]
    # Heads that attend to the word before or after give all to whatever stands there.
    telling = [
        one for one in attended if one.key_position == wanted or fold(one.key) not in STOP_WORDS
    ]
    attended = telling or attended
    shown = next((one for one in attended if one.key_position == wanted), attended[0])
    row = rows[places.index((shown.layer or 0, shown.head or 0))]
    return Focus(attended, shown, reading.words, row, reading.map(shown.layer, shown.head))


def compare(one: EncodedText, other: EncodedText, word: str | None = None) -> Comparison:
    """How much each word that two texts share stays itself, layer by layer; or one of them.

    Of a repeated word the first counts, of a word of several pieces their mean. Raises `QkvError`
    where no word is shared, or not this one.
    """
    theirs = {fold(name) for name in other.words}
    shared = [name for name in one.words if is_word(name) and fold(name) in theirs]
    if word is not None:
        other.position(word)
        shared = [one.words[one.position(word)]]
    names = list({fold(name): name for name in reversed(shared)}.values())[::-1]
    if not names:
        raise QkvError("no word is in both texts")
    pairs = [(one.position(name), other.position(name)) for name in names]
    a = one.word_vectors()[:, [i for i, _ in pairs]]
    b = other.word_vectors()[:, [j for _, j in pairs]]
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    cosines = (a * b).sum(axis=-1) / np.where(lengths > 0, lengths, 1)
    return Comparison(names, cosines)


def is_word(label: str) -> bool:
    """Neither a special token such as [CLS] or <PAD>, nor a sign."""
    return label[:1] not in "[<" and any(char.isalnum() for char in label)
