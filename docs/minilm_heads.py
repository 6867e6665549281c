"""Records what the heads of MiniLM attend to: python docs/minilm_heads.py [MODEL_FOLDER]

Writes qkvsearch/lessons/compute/minilm_heads.npz, which the course shows where the model is
not installed. Of the model it holds no weight, only what its attention made of a dozen sentences:

words      str (n_words), the words of all sentences one after another
lengths    int64 (n_sentences), how many of them each sentence has
codes      uint8, of each sentence (n_layers, n_heads, n, n), one after another: a weight × 255
shape      int64 (2), n_layers and n_heads
model      str, which model it was

The weights are those of words: from a word the mean of its pieces, to a word their sum. Needs
qkvsearch[encoders] and `qkvsearch model fetch minilm`, or the model's folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from qkvsearch.lessons.drawings.attention_lines import LEVELS
from qkvsearch.text.encoders import pretrained

OUT = Path(__file__).parent.parent / "qkvsearch/lessons/compute/minilm_heads.npz"
# Pairs that differ in a word which decides what another one means; and word order.
SENTENCES = (
    "The animal didn't cross the street because it was too tired",
    "The animal didn't cross the street because it was too wide",
    "She poured water from the jug into the cup until it was full",
    "She poured water from the jug into the cup until it was empty",
    "I saw a saw",
    "The bank of the river was muddy",
    "The bank raised its interest rates",
    "A power transformer changes the voltage",
    "Attention in a transformer mixes words",
    "The dog chased the cat up a tree",
    "The cat chased the dog up a tree",
    "The film was not bad at all",
)


def in_bytes(weights: np.ndarray) -> np.ndarray:
    """Return weights (..., n) as uint8 over `LEVELS`, each off by less than one level.

    Each row adds up to `LEVELS` still: what rounding down leaves goes to those who lost most.
    """
    exact = weights / weights.sum(axis=-1, keepdims=True) * LEVELS
    rounded = np.floor(exact + 1e-9)
    missing = LEVELS - rounded.sum(axis=-1, keepdims=True)
    lost = np.argsort(np.argsort(rounded - exact, axis=-1, kind="stable"), axis=-1)
    return (rounded + (lost < missing)).astype(np.uint8)


def main(model: str = "minilm") -> None:
    encoder = pretrained(model)
    readings = [encoder.attend(sentence) for sentence in SENTENCES]
    weights = [reading.word_weights() for reading in readings]
    np.savez_compressed(
        OUT,
        words=np.array([word for reading in readings for word in reading.words]),
        lengths=np.array([len(reading.words) for reading in readings]),
        codes=np.concatenate([in_bytes(found).ravel() for found in weights]),
        shape=np.array(weights[0].shape[:2]),
        model=np.array("all-MiniLM-L6-v2"),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
