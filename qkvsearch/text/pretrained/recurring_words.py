"""Cut long texts into subwords word by word: words recur, so that each is cut once.

Byte-pair encoding merges neighbours. Where no subword has a space behind another character, none is
merged across the beginning of a word, and a text's subwords are those of its words (Sennrich,
Haddow and Birch 2016, section 3.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from qkvsearch.text.pretrained.subwords import BEGINS

# A text of as many characters is cut word by word.
LONG = 500
# Characters of a word whose subwords are remembered.
LONGEST_KEPT = 40
# A word with the spaces and the ends of lines before it.
SPACED_WORDS = re.compile(r"[ \n]+[^ \n]*").findall
# How the tokenizer writes a text in which spaces matter.
TYPED, WRITTEN = " a  b\n c", "▁▁a▁▁b\n▁c"


class RecurringWords(dict[str, bytes]):
    """The subwords of words, by their ids: int32 as bytes, which are the fastest to join.

    tokenizer: what cuts a word, a `TokenizerFile` or its `tokenizers.Tokenizer`, which `cuts_words`
    and is `plain`.
    """

    def __init__(self, tokenizer: Any, plain: Any) -> None:
        self._tokenizer = tokenizer
        self._special = [token.content for token in plain.get_added_tokens_decoder().values()]
        # What comes before the subwords of a word behind the end of a line, where nothing merges.
        self._n_before = len(self._cut("\n"))

    def of_text(self, text: str) -> np.ndarray | None:
        """Return the subwords of a text, int32 (n,); None for one that is cut as a whole."""
        words = self._words(text)
        return None if words is None else self._subwords(words)

    def distinct(self, text: str) -> np.ndarray | None:
        """Return the distinct subwords of a text in any order; None as above."""
        words = self._words(text)
        return None if words is None else np.unique(self._subwords(set(words)))

    def __missing__(self, word: str) -> bytes:
        spaced = word if word[:1] in (" ", "\n") else f" {word}"
        ids = np.array(self._cut(f"\n{spaced}")[self._n_before :], np.int32).tobytes()
        # Longer ones, such as sentences in scripts without spaces, hardly recur.
        if len(word) <= LONGEST_KEPT:
            self[word] = ids
        return ids

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

    def _subwords(self, words: Iterable[str]) -> np.ndarray:
        return np.frombuffer(b"".join(map(self.__getitem__, words)), np.int32)

    def _cut(self, text: str) -> Sequence[int]:
        [encoding] = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)
        ids: Sequence[int] = encoding.ids
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
