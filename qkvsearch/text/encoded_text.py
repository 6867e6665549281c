"""What an encoder's attention makes of a text: maps, what a word attends to, how vectors move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qkvsearch._utils.limits import ATTENDED
from qkvsearch.errors import QkvError, suggest
from qkvsearch.text.analysis import fold
from qkvsearch.text.labelled import LabelledVectors
from qkvsearch.text.language.languages import stop_words
from qkvsearch.text.pretrained.subwords import sum_rows
from qkvsearch.text.self_attention import AttentionMap, self_attend


@dataclass(frozen=True, eq=False)
class EncodedText:
    """What attention made of a text of n tokens that are pieces of m words.

    tokens (n), words (m); owners int64 (n,), ascending, the word of each token. hidden
    (n_layers + 1, n, d), before any layer and after each. weights (n_layers, n_heads, n, n), row =
    the token that attends; mask bool (n, n), True = may attend. `encoder` is its kind. Without
    `has_layers` the one layer and head are the attention without parameters.
    """

    tokens: list[str]
    words: list[str]
    owners: np.ndarray
    hidden: np.ndarray
    weights: np.ndarray
    mask: np.ndarray
    left_out: list[str]
    encoder: str
    has_layers: bool

    def map(self, layer: int | None = None, head: int | None = None) -> AttentionMap:
        """One head's map. Without `head` the mean over the layer's heads; without `layer` the last.

        Raises `QkvError` for a layer or head that is not there, naming those that are.
        """
        self._check(layer, head)
        n = len(self.weights) - 1 if layer is None else layer
        heads = self.weights[n]
        weights = heads.mean(axis=0) if head is None else heads[head]
        found = AttentionMap(self.tokens, weights, self.hidden[n + 1], self.mask, self.left_out)
        return replace(found, layer=n, head=head) if self.has_layers else found

    def heads(self, layer: int | None = None) -> list[AttentionMap]:
        """The map of every head of a layer; without one, of all layers. Raises `QkvError`."""
        return [self.map(*place) for place in self.places(layer)]

    def places(self, layer: int | None = None, head: int | None = None) -> list[tuple[int, int]]:
        """(layer, head) of each head there is; of that layer, or that head of each layer. Raises
        `QkvError` where there are no layers, or not these.
        """
        self._check(0 if layer is None else layer, head)
        n_layers, n_heads = self.weights.shape[:2]
        layers = range(n_layers) if layer is None else [layer]
        heads = range(n_heads) if head is None else [head]
        return [(i, j) for i in layers for j in heads]

    def word_weights(self) -> np.ndarray:
        """(n_layers, n_heads, m, m): from a word the mean of its pieces, to a word their sum, so
        that rows still add up to 1. Clark et al. 2019 (What does BERT look at?), section 4.1.
        """
        starts = np.searchsorted(self.owners, np.arange(len(self.words)))
        if not len(starts):
            return self.weights
        sums = np.add.reduceat(np.add.reduceat(self.weights, starts, axis=3), starts, axis=2)
        means: np.ndarray = sums / np.bincount(self.owners)[:, None]
        return means

    def word_vectors(self) -> np.ndarray:
        """(n_layers + 1, m, d): the mean of each word's pieces."""
        sums = [sum_rows(vectors, self.owners, len(self.words)) for vectors in self.hidden]
        return np.stack(sums) / np.maximum(np.bincount(self.owners), 1)[:, None]

    def position(self, word: str) -> int:
        """Which of the words it is first, whatever its case. Raises `QkvError` for none."""
        folded = [fold(name) for name in self.words]
        if fold(word) not in folded:
            known = list(dict.fromkeys(self.words))
            near = suggest(word, known) or f" (there are {', '.join(known[:12]) or 'none'})"
            raise QkvError(f"no word {word!r} in the text{near}")
        return folded.index(fold(word))

    def _check(self, layer: int | None, head: int | None) -> None:
        if not self.has_layers and (layer, head) != (None, None):
            raise QkvError(
                f"the encoder here is {self.encoder}, whose attention has no layers and heads to "
                "choose from; add `encoder` minilm, which has"
            )
        asked = zip(("layer", "head"), (layer, head), self.weights.shape[:2], strict=True)
        for name, given, n in asked:
            if given is not None and not 0 <= given < n:
                raise QkvError(f"no {name} {given}: there are {name}s 0 to {n - 1}")


def without_layers(
    tokens: LabelledVectors, mask: str, left_out: Sequence[str], encoder: str
) -> EncodedText:
    """What attention without parameters makes of word vectors. Raises `QkvError` for an unknown
    mask, and for too many words.

    >>> text = LabelledVectors(["dog", "cat"], np.eye(2))
    >>> without_layers(text, "none", [], "corpus").map().weights.round(3)
    array([[0.881, 0.119],
           [0.119, 0.881]])
    """
    check_length(len(tokens))
    found = self_attend(tokens, mask, left_out)
    return EncodedText(
        tokens=found.tokens,
        words=found.tokens,
        owners=np.arange(len(tokens)),
        hidden=np.stack([tokens.vectors, found.outputs]),
        weights=found.weights[None, None],
        mask=found.mask,
        left_out=found.left_out,
        encoder=encoder,
        has_layers=False,
    )


def check_length(n: int) -> None:
    """Raises `QkvError` for more words than are shown."""
    if n > ATTENDED.most:
        raise QkvError(f"{n:,} words are too many to show; {ATTENDED.most} at most")


# --- one word ---


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

    >>> from qkvsearch.text.token_encoder import TokenEncoder
    >>> from qkvsearch.text.vocabulary import Vocabulary
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
        one for one in attended if one.key_position == wanted or fold(one.key) not in stop_words()
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
