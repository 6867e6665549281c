"""What is a word: regular expressions of runs of letters, of code, of scripts without blanks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

# Han, kana and Hangul are written without spaces between words (or, for Korean, with endings
# attached), so pairs of neighbouring characters stand in for words.
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
# The vowel signs of Hebrew, Arabic, the scripts of India, and Thai are marks, not letters, and
# belong to the word.
MARKS = (
    "\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e"
)
LETTER, ASCII_LETTER = rf"(?:(?![{CJK}_])[\w{MARKS}])", r"[^\W_]"
RUN = r"{cjk}{letter}++(?:'{letter}++)*"
# What looks like code is one word with its signs: C++ and C#; AC/DC, R&B, 24/7, of short sides;
# 3.5mm, v2.0; .NET. A full stop after a word, or before a space, belongs to no word.
CODE = (
    r"(?:"
    r"(?:\+\++|#)(?!{letter})"
    r"|(?=[/&])(?<!{latin}{{5}})(?:[/&]{letter}{{1,4}}+){{1,3}}+(?![/&]?{letter}|\+\+|#)"
    r"|(?=\.)(?<=\d)(?:\.\d++){{1,7}}+[^\W\d_]{{0,4}}+(?!{letter})"
    r")?"
    r"|(?<![\w.])\.[^\W\d_]{letter}*+"
)


class TextPattern:
    """A regular expression for any text, and what it comes to in ASCII, as most texts are: all the
    other scripts take long to be compiled, a good part of what a search takes.
    """

    def __init__(self, of_ascii: str, of_any: str) -> None:
        self._ascii, self._of_any = re.compile(of_ascii), of_any

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile(self._of_any)

    def of(self, text: str) -> re.Pattern[str]:
        """The one for a text."""
        return self._ascii if text.isascii() else self._any

    def search(self, text: str) -> re.Match[str] | None:
        return self.of(text).search(text)

    def match(self, text: str) -> re.Match[str] | None:
        return self.of(text).match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self.of(text).fullmatch(text)

    def findall(self, text: str) -> list[str]:
        return self.of(text).findall(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self.of(text).finditer(text)


def _pattern(of: str) -> TextPattern:
    of_ascii = of.format(cjk="", letter=ASCII_LETTER, latin=r"[^\W_]")
    return TextPattern(of_ascii, of.format(cjk=f"[{CJK}]+|", letter=LETTER, latin=rf"[^\W{CJK}_]"))


RUNS, CODED = _pattern(RUN), _pattern(RUN + CODE)
_CJK = TextPattern("(?!)", f"[{CJK}]")
IS_CJK, HAS_CJK = _CJK.match, _CJK.search
