"""What a tokenizer's `Encoding` says of a text: its pieces, whose words they are, what was cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qkvsearch.texts.pretrained.subwords import join_pieces
from qkvsearch.texts.self_attention import PADDING

# The special token that stands for padding in a BERT vocabulary.
PAD_TOKEN = "[PAD]"
# A piece that continues the word before it.
CONTINUES = "##"


def parts_of(text: str, encoding: Any) -> tuple[list[str], np.ndarray]:
    """Labels of words and special tokens, and of each piece the one it belongs to."""
    return _with_own_words(text, encoding.tokens, encoding.offsets, _is_added(encoding))


def words_of(text: str, encoding: Any) -> tuple[list[str], np.ndarray]:
    """The words of a text, and the one of each piece, −1 for a special token."""
    words, owners = join_pieces(text, _spans(encoding))
    added = _is_added(encoding)
    every = np.full(len(added), -1, dtype=np.int64)
    every[~added] = owners
    return words, every


def attended_words(text: str, tokens: list[str], encoding: Any) -> tuple[list[str], np.ndarray]:
    """The words of a text that attend to one another, and the one of each piece, int64: a token
    that stands nowhere in the text, and padding, are words of their own.

    tokens: the `piece_labels` of the encoding.
    """
    alone = np.array(
        [
            start == end or token == PADDING
            for token, (start, end) in zip(tokens, encoding.offsets, strict=True)
        ]
    )
    return _with_own_words(text, tokens, encoding.offsets, alone)


def _with_own_words(
    text: str, tokens: list[str], spans: Sequence[tuple[int, int]], alone: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """The words of a text and of each token the one it belongs to, where those that stand `alone`
    (bool, n) are words of their own."""
    placed = [span for span, is_alone in zip(spans, alone, strict=True) if not is_alone]
    words, owners = join_pieces(text, placed)
    keys = np.empty(len(alone), dtype=np.int64)
    keys[~alone] = owners
    keys[alone] = -1 - np.flatnonzero(alone)
    is_first = np.diff(keys, prepend=len(alone)) != 0
    firsts = np.flatnonzero(is_first)
    labels = [words[keys[i]] if keys[i] >= 0 else tokens[i] for i in firsts]
    return labels, np.cumsum(is_first) - 1


def _is_added(encoding: Any) -> np.ndarray:
    """Which tokens the tokenizer added, and stand nowhere in the text."""
    return np.array(encoding.special_tokens_mask, dtype=bool)


def _spans(encoding: Any) -> list[tuple[int, int]]:
    """Where the pieces of the text itself stand in it."""
    pairs = zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
    return [span for span, is_added in pairs if not is_added]


def words_beyond(text: str, encoding: Any) -> list[str]:
    """The words that begin, or go on, beyond the limit."""
    read = max((end for _, end in _spans(encoding)), default=0)
    later = [span for part in encoding.overflowing for span in _spans(part)]
    return join_pieces(text, [span for span in later if span[0] >= read])[0]


def piece_labels(text: str, encoding: Any) -> list[str]:
    """Pieces as written, "##" before those that continue a word; `<PAD>` and the special tokens."""
    labels = []
    for token, (start, end), is_added in zip(
        encoding.tokens, encoding.offsets, encoding.special_tokens_mask, strict=True
    ):
        if token == PAD_TOKEN:
            labels.append(PADDING)
        elif is_added:
            labels.append(token)
        else:
            continues = CONTINUES if token.startswith(CONTINUES) and len(token) > 2 else ""
            labels.append(continues + text[start:end])
    return labels
