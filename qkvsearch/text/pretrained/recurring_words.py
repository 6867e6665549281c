"""Cut long texts into subwords word by word: words recur, so that each is cut once.

Byte-pair encoding merges neighbours. Where no subword has a space behind another character, none is
merged across the beginning of a word, and a text's subwords are those of its words (Sennrich,
Haddow and Birch 2016, section 3.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from qkvsearch.text.pretrained.subwords import BEGINS

# A text of as many characters is cut word by word.
LONG = 500
# Texts whose new words are cut together.
TEXTS_AT_ONCE = 64
# Characters of a word whose subwords are remembered.
LONGEST_KEPT = 40
# A word with the spaces and the ends of lines before it.
SPACED_WORDS = re.compile(r"[ \n]+[^ \n]*").findall
# How the tokenizer writes a text in which spaces matter.
TYPED, WRITTEN = " a  b\n c", "▁▁a▁▁b\n▁c"


class RecurringWords:
    """The subwords of words that recur.

    tokenizer: what cuts a word, a `TokenizerFile` or its `tokenizers.Tokenizer`, which `cuts_words`
    and is `plain`.
    """

    def __init__(self, tokenizer: Any, plain: Any) -> None:
        self._tokenizer = tokenizer
        # The ids of the subwords of each word: int32 as bytes, which are the fastest to join.
        self._of_word: dict[str, bytes] = {}
        # A text with one of these is cut as a whole. The sign that stands for a space merges with
        # those before it.
        special = [token.content for token in plain.get_added_tokens_decoder().values()]
        self._special = [*special, BEGINS]
        # What comes before the subwords of a word behind the end of a line, where nothing merges:
        # the end of the line, and what the tokenizer puts before a text.
        self._before = self._cut("\n")
        # The subword that is an end of a line and nothing else, None where there is none.
        self._line_end: int | None = None
        unknown = plain.token_to_id(plain.model.unk_token or "")
        if [*self._before, self._before[-1]] == self._cut("\n\n") and self._before[-1] != unknown:
            self._line_end = self._before[-1]

    def of_texts(self, texts: Sequence[str]) -> list[np.ndarray | None]:
        """Return the subwords of each text, int32 (n,); None for one that is cut as a whole."""
        found: list[np.ndarray | None] = [None] * len(texts)
        waiting: dict[int, list[str]] = {}
        for number, text in enumerate(texts):
            words = self._words(text)
            if words is None:
                continue
            found[number] = self._known(words)
            if found[number] is None:
                waiting[number] = words
            if len(waiting) == TEXTS_AT_ONCE:
                self._cut_waiting(waiting, found)
        self._cut_waiting(waiting, found)
        return found

    def _cut_waiting(self, waiting: dict[int, list[str]], found: list[np.ndarray | None]) -> None:
        """Write the subwords of texts with new words, which are cut together, and empty `waiting`.

        waiting: the words of these texts, by their numbers.
        """
        new_words: set[str] = set().union(*map(self._new, waiting.values()))
        new = self._of_new_words(new_words) if waiting else {}
        for number, words in waiting.items():
            ids = self._known(words)
            if ids is None:  # a new word is too long to be remembered
                pieces = [new[word] if word in new else self._of_word[word] for word in words]
                ids = np.frombuffer(b"".join(pieces), np.int32)
            found[number] = ids
        waiting.clear()

    def _new(self, words: Iterable[str]) -> set[str]:
        """Return the words that are not remembered."""
        # With a plain dict, `difference` goes through these words and not through all of the dict.
        return set(words).difference(self._of_word)

    def _known(self, words: Sequence[str]) -> np.ndarray | None:
        """Return the subwords of words that are remembered, None where one is not."""
        try:
            return np.frombuffer(b"".join(map(self._of_word.__getitem__, words)), np.int32)
        except KeyError:
            return None

    def _words(self, text: str) -> list[str] | None:
        """Return the words of a text: without the one space before them in the usual text, which
        has single ones.
        """
        if len(text) < LONG or any(token in text for token in self._special):
            return None
        lines = text.replace("\n", " \n")
        if "  " not in lines and lines[0] != " ":
            return lines.split(" ")
        # The tokenizer writes a space before a text.
        return SPACED_WORDS(f" {text}")

    def _of_new_words(self, words: Iterable[str]) -> dict[str, bytes]:
        """Return the subwords of some words, and remember them."""
        lines = {word: f"\n{word}" if word[:1] in (" ", "\n") else f"\n {word}" for word in words}
        new = dict(zip(lines, self._of_lines(list(lines.values())), strict=True))
        # Longer ones, such as sentences in scripts without spaces, hardly recur.
        self._of_word.update((word, ids) for word, ids in new.items() if len(word) <= LONGEST_KEPT)
        return new

    def _of_lines(self, lines: Sequence[str]) -> list[bytes]:
        """Return the subwords of words behind an end of a line, without those of that end. They are
        cut as one text, in a third of the time that they take one by one.
        """
        if self._line_end is None:
            n_before = len(self._before)
            return [np.array(self._cut(line)[n_before:], np.int32).tobytes() for line in lines]
        cut = np.array(self._cut("".join(lines)), np.int32)
        line_ends = np.flatnonzero(cut == self._line_end)
        n_lines = np.cumsum([0, *(line.count("\n") for line in lines)])
        starts = [*line_ends[n_lines[:-1]].tolist(), len(cut)]
        return [cut[start + 1 : end].tobytes() for start, end in pairwise(starts)]

    def _cut(self, text: str) -> list[int]:
        [encoding] = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)
        ids: list[int] = encoding.ids
        return ids


def cuts_words(tokenizer: Any) -> bool:
    """Return whether a `tokenizers.Tokenizer` cuts each word of a text as it does alone."""
    from tokenizers.models import BPE

    normalizer = tokenizer.normalizer
    is_plain = isinstance(tokenizer.model, BPE) and tokenizer.pre_tokenizer is None
    if not is_plain or normalizer is None or normalizer.normalize_str(TYPED) != WRITTEN:
        return False
    merges_across = re.compile(f"[^{BEGINS}]{BEGINS}|\n").search
    return not any(map(merges_across, tokenizer.get_vocab()))
