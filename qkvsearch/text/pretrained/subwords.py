"""Subword pieces and the words that they belong to, so that people can read reasons."""

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from qkvsearch.text.analysis import IS_UNSPACED, MARKS, UNSPACED, TextPattern
from qkvsearch.text.labelled import PADDING

# A character of a script without spaces is a word: nothing else divides a run of them.
LETTER = rf"(?:(?![{UNSPACED}_])[\w{MARKS}\u0300-\u036f])"
WORDS = TextPattern(r"[^\W_]+(?:'[^\W_]+)*", rf"[{UNSPACED}]|{LETTER}+(?:['’]{LETTER}+)*")
# Anything but spaces, controls and characters of no width.
VISIBLE = re.compile(
    r"[^\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufe0f\ufeff]"
)
# The word of a piece that consists of spaces.
NO_WORD = -1
# Words with more pieces on average are summed by `np.add.reduceat`.
MAX_PIECES = 4
# The special token that stands for padding, in BERT and in RoBERTa.
PAD_TOKENS = ("[PAD]", "<pad>")
# What the pieces of a prompt are called.
PROMPT_TOKEN = "[PROMPT]"
# How WordPiece marks a piece that continues the word before it, and how SentencePiece marks one
# that does not.
CONTINUES, BEGINS = "##", "▁"
# How a piece is shown that is a space and nothing else, which SentencePiece makes.
SPACE = "␣"


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character.

    >>> is_blank(" \\t\\u200b"), is_blank("!")
    (True, False)
    """
    return VISIBLE.search(text) is None


def whole(text: str) -> str:
    """Replace halves of surrogate pairs, which no tokenizer accepts, by "?".

    >>> whole("deep\\ud800")
    'deep?'
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def join_pieces(text: str, spans: Sequence[tuple[int, int]]) -> tuple[list[str], np.ndarray]:
    """Return the words of a text that was split into pieces, and the word of each piece.

    spans: (start, end) of each piece in the text, in order -> labels (n_words) as written, and
    int64 (n_spans,). A space alone belongs to the word that follows.

    >>> join_pieces("It didn't 注意", [(0, 2), (2, 7), (7, 8), (8, 9), (10, 11), (11, 12)])
    (['It', "didn't", '注', '意'], array([0, 1, 1, 1, 2, 3]))
    """
    start_of = list(range(len(text)))
    for word in WORDS.finditer(text):
        start, end = word.span()
        start_of[start:end] = [start] * (end - start)
    word_starts = []
    for start, end in spans:
        if start < end and text[start].isspace():
            start = end - len(text[start:end].lstrip())
        word_starts.append(start_of[start] if start < end else NO_WORD)
    if NO_WORD in word_starts:
        for i in range(len(spans) - 2, -1, -1):
            if word_starts[i] == NO_WORD:
                word_starts[i] = word_starts[i + 1]
        for i in range(1, len(spans)):
            if word_starts[i] == NO_WORD:
                word_starts[i] = word_starts[i - 1]

    owners: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    previous = None
    for word_start, (start, end) in zip(word_starts, spans, strict=True):
        if word_start == previous:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
            previous = word_start
        owners.append(len(starts) - 1)
    labels = [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return labels, np.array(owners, dtype=np.int64)


def sum_rows(vectors: np.ndarray, owners: np.ndarray, n: int) -> np.ndarray:
    """Sum the vectors (n_pieces, d) of each owner, ascending (n_pieces,) -> (n, d).

    >>> sum_rows(np.array([[1.0], [2.0], [3.0]]), np.array([0, 0, 1]), 2)
    array([[3.],
           [3.]])
    """
    starts = owners.searchsorted(np.arange(n))
    if len(owners) > MAX_PIECES * n:
        return np.add.reduceat(vectors, starts, axis=0)
    position = np.arange(len(owners)) - starts[owners]  # of each piece in its word
    total = vectors[position == 0]
    for i in range(1, int(position.max(initial=0)) + 1):
        later = (position == i).nonzero()[0]
        total[owners[later]] += vectors[later]
    return total


# --- what a tokenizer's `Encoding` says of a text ---


def words_of(text: str, encoding: Any) -> tuple[list[str], np.ndarray]:
    """Return the words of a text, and the word of each piece, −1 for a special token."""
    return _joined(text, encoding.offsets, np.array(encoding.special_tokens_mask, dtype=bool))


def attended_words(text: str, tokens: list[str], encoding: Any) -> tuple[list[str], np.ndarray]:
    """Return the words of a text that attend to one another, and the word of each piece, int64.

    A token that does not occur in the text, and padding, are words themselves.

    tokens: the `piece_labels` of the encoding.
    """
    placed = zip(tokens, encoding.offsets, strict=True)
    alone = [start == end or token == PADDING for token, (start, end) in placed]
    return with_tokens(tokens, *_joined(text, encoding.offsets, np.array(alone, dtype=bool)))


def _joined(
    text: str, spans: Sequence[tuple[int, int]], alone: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Return the words of a text, and the word of each token, −1 for those `alone` (bool, n)."""
    placed = [span for span, is_alone in zip(spans, alone.tolist(), strict=True) if not is_alone]
    words, owners = join_pieces(text, placed)
    all_owners = np.full(len(alone), -1, dtype=np.int64)
    all_owners[~alone] = owners
    return words, all_owners


def with_tokens(
    tokens: Sequence[str], words: Sequence[str], owners: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Return the labels of words and of tokens without a word, and the label of each token.

    owners: int64 (n_tokens,), the word of each, −1 for none.

    >>> with_tokens(["[CLS]", "deep", "##er", "[SEP]"], ["deeper"], np.array([-1, 0, 0, -1]))
    (['[CLS]', 'deeper', '[SEP]'], array([0, 1, 1, 2]))
    """
    alone = (owners < 0).nonzero()[0]
    keys = owners.copy()
    keys[alone] = -1 - alone
    is_first = np.diff(keys, prepend=len(keys)) != 0
    firsts = is_first.nonzero()[0].tolist()
    labels = [words[owners[i]] if owners[i] >= 0 else tokens[i] for i in firsts]
    return labels, np.cumsum(is_first) - 1


def _spans(encoding: Any) -> list[tuple[int, int]]:
    """Return the spans of the pieces, without special tokens."""
    pairs = zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
    return [span for span, is_added in pairs if not is_added]


def words_beyond(text: str, encoding: Any) -> list[str]:
    """Return the words that begin or continue beyond the limit."""
    if not encoding.overflowing:
        return []
    read = max((end for _, end in _spans(encoding)), default=0)
    later = [span for part in encoding.overflowing for span in _spans(part)]
    return join_pieces(text, [span for span in later if span[0] >= read])[0]


def piece_labels(text: str, encoding: Any) -> list[str]:
    """Return the pieces as written, "##" before a continuation, "␣" for a space alone, `<PAD>`, and
    special tokens.
    """
    labels = []
    has_begins = any(token.startswith(BEGINS) for token in encoding.tokens)
    for token, (start, end), is_added in zip(
        encoding.tokens, encoding.offsets, encoding.special_tokens_mask, strict=True
    ):
        if token in PAD_TOKENS:
            labels.append(PADDING)
        elif is_added:
            labels.append(token)
        elif token == BEGINS:
            labels.append(SPACE)
        else:
            piece = text[start:end]
            is_continued = continues(token, text[:start], has_begins) and not is_sign(piece)
            labels.append((CONTINUES if is_continued else "") + piece)
    return labels


def is_sign(piece: str) -> bool:
    """Return whether a piece has no letter and no digit: the end of a sentence continues no word.

    >>> is_sign(","), is_sign("s'"), is_sign("深")
    (True, False, False)
    """
    return not any(map(str.isalnum, piece))


def continues(token: str, before: str, has_begins: bool) -> bool:
    """Return whether a piece continues a word. has_begins: whether pieces that begin one are marked
    so.

    >>> continues("##er", "deep", False), continues("er", "deep", True), continues("深", "海", True)
    (True, True, False)
    """
    if not has_begins:
        return token.startswith(CONTINUES) and len(token) > len(CONTINUES)
    return not token.startswith(BEGINS) and before[-1:].isalnum() and not IS_UNSPACED(before[-1])


def behind_prompt(encoding: Any, prompt: str) -> Any:
    """Return the encoding of a text that begins with a prompt, whose pieces are special tokens.

    They are all called "[PROMPT]".
    """
    if not prompt:
        return encoding
    is_special, tokens = [], []
    for token, (_, end), is_added in zip(
        encoding.tokens, encoding.offsets, encoding.special_tokens_mask, strict=True
    ):
        is_of_prompt = not is_added and end <= len(prompt)
        tokens.append(PROMPT_TOKEN if is_of_prompt else token)
        is_special.append(bool(is_added) or is_of_prompt)
    return SimpleNamespace(
        ids=encoding.ids,
        tokens=tokens,
        offsets=encoding.offsets,
        special_tokens_mask=is_special,
        overflowing=encoding.overflowing,
    )
