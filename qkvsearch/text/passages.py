"""Split a long text into passages: some sentences each, that begin where the text begins anew.

A search compares a query with each passage of a long text, and an item has the score of its best
one (Dai and Callan 2019, "Deeper text understanding for IR with contextual neural language
modeling", MaxP). So a sentence of an hour's talk counts as much as one of a short description.

| rule | number |
|---|---|
| a text is long if it has more words | `LONG` |
| a passage has at most so many words, unless a single sentence has more | `PASSAGE` |
| it ends before a new paragraph or speaker, once it has this share | `PARAGRAPH_SHARE` |
| it ends before a heading, once it has this share | `HEADING_SHARE` |
| the next one begins with its last sentence, unless that has more words | `LONGEST_REPEATED` |

A sentence ends at its full stop, and a paragraph at an empty line. A line alone ends no sentence,
because many files wrap their lines. What has no full stops, such as captions that a machine wrote,
is cut where a line ends, or after `PIECE` words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

# A text of more words is searched in passages. benchmarks/defaults/long_texts.py compares limits:
# with a higher one, abstracts that are about one thing are found as well or a little better, and
# what a single sentence says is found far less often.
LONG = 250
# The words of a passage.
PASSAGE = 150
PARAGRAPH_SHARE, HEADING_SHARE = 0.5, 0.25
LONGEST_REPEATED = 50
# What has no full stops is cut into pieces of so many words.
PIECE = 30
# The last words of a text stay in the passage before them where they are fewer.
SHORTEST = 25
# A line of at most so many words, between empty lines and without a full stop, is a heading.
LONGEST_HEADING = 12
# How many words a character is, in scripts without spaces.
WORDS_OF_CHINESE, WORDS_OF_THAI = 0.6, 0.2

_CHINESE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_THAI = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
# An end of a sentence, or an empty line. Each begins with one of a set of signs, which are found
# faster than any of several expressions.
_ENDS = re.compile(
    r"""
    [\n.!?…。！？](?:
        (?<=\n)[^\S\n]*\n\s*
      | (?<=[.!?…])[.!?…]*["'”’»)\]]*\s+
      | (?<=[。！？])[。！？]*[”’」』）]*\s*
      | (?<=\n)(?=\S[^\n:：]{0,40}[:：]\s|\#)
    )
    """,
    re.VERBOSE,
)
_SPEAKER = re.compile(r"[^\W\d_][^\n:：.!?。]{0,40}[:：]\s")
# The characters of a name and its colon.
LONGEST_SPEAKER = 42
_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n")
_FULL_STOP = re.compile(r"[.!?…。！？,;:，；：][\"'”’»)\]」』]*$")
_WORD = re.compile(r"\S+")
_UNSPACED = re.compile(f"{_CHINESE.pattern}|{_THAI.pattern}")
_LETTER = re.compile(r"\w")


class Break(IntEnum):
    """What begins with a sentence."""

    SENTENCE = 0
    PARAGRAPH = 1
    HEADING = 2


class Sentence(NamedTuple):
    """A sentence, or a piece of a long one: text[start:end]."""

    start: int
    end: int
    n_words: float
    begins: Break


def passages(text: str) -> list[tuple[int, int]]:
    """Return where each passage of a long text begins and ends; nothing for a shorter text.

    >>> passages("A short text.")
    []
    >>> text = "One walks along the river for ten minutes. " * 60
    >>> spans = passages(text)
    >>> len(spans), text[slice(*spans[1])].split()[:3]
    (4, ['One', 'walks', 'along'])
    """
    # A word and its space are two characters at least, but in scripts without spaces.
    if (len(text) < 2 * LONG and text.isascii()) or len(text) < LONG or n_words(text) <= LONG:
        return []
    return list(_packed(list(sentences(text))))


def n_words(text: str) -> float:
    """Return about how many words a text has.

    >>> n_words("deep sea"), n_words("深海鱼类")
    (2, 2.4)
    """
    if text.isascii():
        return len(text.split())
    if _UNSPACED.search(text) is None:
        return len(text.split())
    n_chinese = len(_CHINESE.findall(text))
    n_thai = len(_THAI.findall(text))
    spaced = _THAI.sub(" ", _CHINESE.sub(" ", text))
    n_spaced = sum(any(map(str.isalnum, word)) for word in spaced.split())
    return n_spaced + WORDS_OF_CHINESE * n_chinese + WORDS_OF_THAI * n_thai


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text, and what begins with each. Long ones come in pieces."""
    start = 0
    begins = Break.PARAGRAPH
    ends = [(match.start(), match.end()) for match in _ENDS.finditer(text)]
    for gap, end in [*ends, (len(text), len(text))]:
        sentence = text[start:end]
        if sentence.strip():
            is_paragraph = end == len(text) or _has_empty_line(text, gap, end)
            if begins and _is_heading(sentence, is_paragraph):
                begins = Break.HEADING
            elif not begins and _is_of_speaker(text, start):
                begins = Break.PARAGRAPH
            n = n_words(sentence)
            if n <= LONGEST_REPEATED:
                yield Sentence(start, end, n, begins)
            else:
                yield from _pieces(text, start, end, begins)
            begins = Break.PARAGRAPH if is_paragraph else Break.SENTENCE
        start = end


def _has_empty_line(text: str, start: int, end: int) -> bool:
    # Counting takes a tenth of the time of a search, and few sentences end two lines.
    return text.count("\n", start, end) > 1 and _EMPTY_LINE.search(text, start, end) is not None


def _is_of_speaker(text: str, start: int) -> bool:
    """Return whether a sentence begins with the name of who says it."""
    end = start + LONGEST_SPEAKER
    has_colon = text.find(":", start, end) > 0 or text.find("：", start, end) > 0
    return has_colon and _SPEAKER.match(text, start) is not None


def _is_heading(sentence: str, is_paragraph: bool) -> bool:
    """Return whether what begins a paragraph is a heading. is_paragraph: whether it is all of it"""
    bare = sentence.strip()
    if bare.startswith("#"):
        return True
    is_line = is_paragraph and "\n" not in bare and _FULL_STOP.search(bare) is None
    return is_line and n_words(bare) <= LONGEST_HEADING


def _pieces(text: str, start: int, end: int, begins: Break) -> Iterator[Sentence]:
    """Yield the pieces of a sentence of more than a third of a passage."""
    piece, total = start, 0.0
    for cut in _places_to_cut(text, start, end):
        total_here = total + n_words(text[piece:cut])
        # A search for one more word reads a few signs, and does not count all that are left.
        if total_here >= PIECE and _LETTER.search(text, cut, end):
            yield Sentence(piece, cut, total_here, begins)
            piece, begins = cut, Break.SENTENCE
    if text[piece:end].strip():
        yield Sentence(piece, end, n_words(text[piece:end]), begins)


def _places_to_cut(text: str, start: int, end: int) -> Iterator[int]:
    """Yield where a long sentence may be cut: where a line ends, or behind any word or comma."""
    lines = [match.end() for match in re.compile(r"\n|[,;，；、]\s*").finditer(text, start, end)]
    previous = start
    for line_end in [*lines, end]:
        if n_words(text[previous:line_end]) <= 2 * PIECE:
            yield line_end
        else:
            yield from _behind_words(text, previous, line_end)
        previous = line_end


def _behind_words(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the ends of words, and in a run of letters without spaces every tenth character."""
    for word in _WORD.finditer(text, start, end):
        is_unspaced = word.end() - word.start() > 2 * PIECE
        if is_unspaced:
            yield from range(word.start() + 10, word.end(), 10)
        yield word.end()


def _packed(parts: list[Sentence]) -> Iterator[tuple[int, int]]:
    """Yield where each passage begins and ends."""
    # How many words there are from each sentence on.
    left = [0.0]
    for part in reversed(parts):
        left.append(left[-1] + part.n_words)
    left.reverse()
    first = 0
    while first < len(parts):
        stop = _end_of_passage(parts, left, first)
        yield parts[first].start, parts[stop - 1].end
        if stop == len(parts):
            return
        last = parts[stop - 1]
        is_repeated = (
            stop - 1 > first
            and parts[stop].begins < Break.HEADING
            and last.n_words <= LONGEST_REPEATED
        )
        first = stop - 1 if is_repeated else stop


def _end_of_passage(parts: list[Sentence], left: list[float], first: int) -> int:
    """Return the number of the sentence behind a passage that begins with sentence `first`."""
    total = 0.0
    shortest = {
        Break.SENTENCE: float(PASSAGE),
        Break.PARAGRAPH: PARAGRAPH_SHARE * PASSAGE,
        Break.HEADING: HEADING_SHARE * PASSAGE,
    }
    for number in range(first, len(parts)):
        part = parts[number]
        is_full = number > first and total + part.n_words > PASSAGE
        # The second sentence of a passage is its first new one, and is never left to the next.
        is_new = number > first + 1 and part.begins and total >= shortest[part.begins]
        if (is_full and number > first + (first > 0)) or is_new:
            few_left = left[number] < SHORTEST and part.begins < Break.HEADING
            return len(parts) if few_left else number
        total += part.n_words
    return len(parts)
