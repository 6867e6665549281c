"""What attention weights show of a word in a sentence, and what they do not, each with its control.

`measured` asks a transformer; `recorded` is what MiniLM answered, for machines that do not have it
(`python docs/evidence.py` writes it).
Jain and Wallace 2019 (Attention is not Explanation); Wiegreffe and Pinter 2019 (Attention is not
not Explanation); Clark et al. 2019 (What does BERT look at?).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch.text.encoded_text import EncodedText, is_word

RECORDED = Path(__file__).with_name("minilm.json")
# Digits of what is recorded.
DIGITS = 5


@dataclass(frozen=True)
class Twin:
    """A sentence with two endings: "it" is the first noun with one, the second with the other."""

    sentence: str
    endings: tuple[str, str]
    nouns: tuple[str, str]

    @property
    def sentences(self) -> tuple[str, str]:
        first, second = (f"{self.sentence} {ending}" for ending in self.endings)
        return first, second


ANIMAL = Twin(
    "The animal didn't cross the street because it was too", ("tired", "wide"), ("animal", "street")
)
# Written for this test, none looked at before it.
TWINS = (
    ANIMAL,
    Twin("The trophy didn't fit in the suitcase because it was too", ("large", "small"),
         ("trophy", "suitcase")),
    Twin("The cup fell off the shelf because it was too", ("heavy", "narrow"), ("cup", "shelf")),
    Twin("The dog left the house because it was too", ("hungry", "dark"), ("dog", "house")),
    Twin("The boy put the ball on the table because it was", ("round", "flat"), ("ball", "table")),
    Twin("The bee sat on the flower because it was", ("tired", "sweet"), ("bee", "flower")),
    Twin("The ship did not enter the harbour because it was too", ("long", "shallow"),
         ("ship", "harbour")),
    Twin("The key did not open the door because it was", ("bent", "stuck"), ("key", "door")),
)  # fmt: skip


def to_word(reading: EncodedText, word: str, target: str) -> tuple[np.ndarray, ...]:
    """Of each head, (n_layers, n_heads): the weight from the word to the target, the other words'
    on average, and how many words attend to the target most.
    """
    weights = reading.word_weights()
    i, j = reading.position(word), reading.position(target)
    column = weights[:, :, :, j]
    others = np.delete(column, i, axis=2).mean(axis=2)
    return column[:, :, i], others, (weights.argmax(axis=3) == j).sum(axis=2)


def singled_out(heads: np.ndarray, others: np.ndarray) -> tuple[int, int]:
    """The head where the word attends to the target most, compared with the other words."""
    layer, head = np.unravel_index((heads - others).argmax(), heads.shape)
    return int(layer), int(head)


def are_read(encoder: Any, twins: Iterable[Twin] = TWINS) -> bool:
    """Whether the encoder reads all sentences to their ends: some read only a few tokens."""
    texts = (sentence for twin in twins for sentence in twin.sentences)
    return not any(encoder.attend(text).left_out for text in texts)


def turns(encoder: Any, head: tuple[int, int], twins: Iterable[Twin] = TWINS) -> np.ndarray:
    """Weights of *it* in that head, (n_twins, 2, 2): by ending, to the first and second noun."""
    found = []
    for twin in twins:
        readings = [encoder.attend(sentence) for sentence in twin.sentences]
        found.append(
            [[to_word(one, "it", noun)[0][head] for noun in twin.nouns] for one in readings]
        )
    return np.array(found, dtype=float)


def without(
    encoder: Any, reading: EncodedText, word: str, key: str, head: tuple[int, int] | None = None
) -> np.ndarray:
    """The words' vectors (m, d) after the last layer, where `word` may not attend to `key`: in one
    head, (layer, number), or in all of them. The weights that are left add up to 1 again.
    """
    rows = reading.owners == reading.position(word)
    hidden = np.outer(rows, reading.owners == reading.position(key))
    x, n_heads = reading.hidden[0], reading.weights.shape[1]
    for number, layer in enumerate(encoder.encoder.layers):
        keep = np.ones((n_heads, *hidden.shape), dtype=bool)
        if head is None:
            keep[:] = ~hidden
        elif head[0] == number:
            keep[head[1]] = ~hidden
        x = layer(x, mask=keep)
    starts = np.searchsorted(reading.owners, np.arange(len(reading.words)))
    means: np.ndarray = np.add.reduceat(x, starts, axis=0) / np.bincount(reading.owners)[:, None]
    return means


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of vectors (..., d), along the last axis."""
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return (a * b).sum(axis=-1) / np.where(lengths > 0, lengths, 1)


def removed(
    encoder: Any, reading: EncodedText, word: str, target: str, heads: Iterable[tuple[int, int]]
) -> list[dict[str, Any]]:
    """What taking a weight away does: to the target in these heads, then to each word in all heads.

    weight: what is taken away, summed over heads. moved: 1 − the cosine of the word's last vector
    before and after. near: its cosine with the target's.
    """
    i, j = reading.position(word), reading.position(target)
    weights, before = reading.word_weights()[:, :, i], reading.word_vectors()[-1]
    asked: list[tuple[str, tuple[int, int] | None]] = [(target, head) for head in heads]
    asked += [(name, None) for name in reading.words if name != word and is_shown(name)]
    found = []
    for key, head in asked:
        after = without(encoder, reading, word, key, head)
        given = weights[:, :, reading.position(key)]
        found.append(
            {
                "key": key,
                "head": None if head is None else list(head),
                "weight": float(given.sum() if head is None else given[head]),
                "moved": float(1 - cosine(before[i], after[i])),
                "near": float(cosine(after[i], after[j])),
            }
        )
    return found


def is_shown(label: str) -> bool:
    """A word, or what stands before a text for all of it."""
    return is_word(label) or label == "[CLS]"


def measured(
    encoder: Any, sentence: str, word: str, target: str, twin: Twin | None = None
) -> dict[str, Any]:
    """All of it for one sentence; twin: whose first sentence it is, where it has another ending."""
    reading = encoder.attend(sentence)
    heads, others, most = to_word(reading, word, target)
    strongest = np.unravel_index(heads.argmax(), heads.shape)
    chosen = [(int(strongest[0]), int(strongest[1])), singled_out(heads, others)]
    i, vectors = reading.position(word), reading.word_vectors()
    found = {
        "words": reading.words,
        "heads": heads,
        "others": others,
        "most": most,
        "strongest": chosen[0],
        "singled": chosen[1],
        "cosines": cosine(vectors[[0, -1], i, None], vectors[[0, -1]]),
        "target_cosines": cosine(vectors[:, i], vectors[:, reading.position(target)]),
        "removed": removed(encoder, reading, word, target, dict.fromkeys(chosen)),
        "row": reading.word_weights()[strongest][i],
    }
    if twin is not None:
        other = encoder.attend(twin.sentences[1])
        found["swapped"] = [to_word(other, word, noun)[0] for noun in twin.nouns]
        found["swapped_cosine"] = float(
            cosine(*(other.word_vectors()[-1, other.position(name)] for name in (word, target)))
        )
        found["turns"] = turns(encoder, chosen[1])
    return found


@cache
def recorded() -> dict[str, Any]:
    """What MiniLM gave for the lesson's own sentence, as `measured` has it; arrays are arrays."""
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    for name in ("heads", "others", "most", "cosines", "target_cosines", "row", "swapped", "turns"):
        found[name] = np.array(found[name])
    return {**found, **{name: tuple(found[name]) for name in ("strongest", "singled")}}


def to_record(found: dict[str, Any]) -> str:
    """As the file holds it, a line a name."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            return np.round(value, DIGITS).tolist()
        if isinstance(value, float):
            return round(value, DIGITS)
        if isinstance(value, dict):
            return {name: plain(entry) for name, entry in value.items()}
        return [plain(entry) for entry in value] if isinstance(value, list | tuple) else value

    lines = [f"{json.dumps(name)}: {json.dumps(plain(value))}" for name, value in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"
