"""Without which words of a query a hit would not be there: the fewest, found by searching again.

A hit is there if it is among the first k. A word is left out wherever it occurs; a phrase, and a
word with an operator, is one word. Chinese has no blanks between words: there a word is a pair of
characters that the catalog has, and else a character. Of pairs that overlap, the one in more texts
is the word: 机制 of 注意力机制, and not 力机.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import pause
from qkvsearch._utils.scripts import HAN
from qkvsearch.heads.single_units import PARTICLES
from qkvsearch.rank.query_language import spans
from qkvsearch.rank.questions import SearchQuestion
from qkvsearch.text.languages import stop_words

# A set has at most so many words, of the first so many of a query.
MAX_SET, MAX_WORDS = 10, 24
# All sets of a size are tried where, with those of smaller sizes, there are at most so many. They
# serve all hits of an answer.
MAX_SETS = 64
# Around a word, and no part of it.
PUNCTUATION = ".,;:!?()[]{}…。，；：！？（）、《》「」"
# A run of Chinese characters, or of others.
RUN = f"{HAN}+|(?:(?!{HAN}).)+"


@dataclass(frozen=True)
class SmallestWords:
    """The smallest sets of words of one answer, found when asked for."""

    # Whether there is a column of this name.
    is_field: Callable[[str], bool]
    question: SearchQuestion
    # How many texts of the catalog have a pair of Chinese characters.
    n_texts: Callable[[str], int]
    # From a question to the rows of its hits, best first.
    search: Callable[[SearchQuestion], np.ndarray]

    def of(self, hit: int) -> dict[str, list[str]]:
        """Return the fewest words without which the item in this row would not be among the hits
        asked for, as `words` in the order of the query; none where no set is found.
        """
        for words in self._proposals(hit):
            if self._is_gone(hit, words):
                return {"words": sorted(self._minimal(hit, words), key=self._words.index)}
        return {"words": []}

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """Where the words are, from start to end. Words that hits must not have are none."""
        query = self.question.query
        found: list[tuple[int, int]] = []
        for start, end, clause in spans(query, self.is_field):
            if clause is None:
                for word in _words_between(query, start, end):
                    found += self._within(*word)
            elif not clause.excluded:
                found.append((start, end))
        return found

    def _within(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield where the words are in a piece of the query without blanks."""
        query = self.question.query
        for run in re.compile(RUN).finditer(query, start, end):
            if re.match(HAN, run[0]):
                yield from _pairs_between(query, *run.span(), self.n_texts)
            else:
                yield run.span()

    @cached_property
    def _words(self) -> list[str]:
        """The words that may be left out, each once: all but stop words, if there are others."""
        query = self.question.query
        words = list(dict.fromkeys(query[start:end] for start, end in self._spans))
        telling = [word for word in words if fold(word) not in stop_words() | PARTICLES]
        return (telling or words)[:MAX_WORDS]

    @cached_property
    def _found(self) -> dict[frozenset[str], list[int]]:
        """The hits without words, for all sets that were tried."""
        return {}

    def _hits(self, without: Sequence[str]) -> list[int]:
        """Return the rows of the first k hits without these words, best first."""
        key = frozenset(without)
        if key not in self._found:
            pause()
            question = replace(
                self.question,
                query=self._text(key),
                k=self.question.n_ranked,
                offset=0,
                fields=(),
                facets=(),
                snippet=False,
                passages=0,
                explain=False,
            )
            self._found[key] = self.search(question).tolist()
        return self._found[key]

    def _text(self, without: frozenset[str]) -> str:
        """Return the query without these words."""
        query, kept, position = self.question.query, [], 0
        for start, end in self._spans:
            if query[start:end] in without:
                kept.append(query[position:start])
                position = end
        return "".join([*kept, query[position:]]).strip()

    def _is_gone(self, hit: int, words: Sequence[str]) -> bool:
        return hit not in self._hits(words)

    def _proposals(self, hit: int) -> Iterator[Sequence[str]]:
        """Yield sets of words to leave out, the smaller ones first."""
        words, n_tried = self._words, 0
        for size in range(1, min(MAX_SET, len(words)) + 1):
            n_tried += comb(len(words), size)
            if size > 1 and n_tried > MAX_SETS:
                break
            yield from combinations(words, size)
        else:
            return
        # The words first without which the hit falls farthest.
        falls = [self._hits([word]).index(hit) for word in words]
        ordered = [words[i] for i in np.argsort(-np.array(falls), kind="stable")]
        for size in range(2, min(MAX_SET, len(words)) + 1):
            yield ordered[:size]

    def _minimal(self, hit: int, words: Sequence[str]) -> list[str]:
        """Return the set without what it does not need."""
        for word in reversed(words):
            fewer = [other for other in words if other != word]
            if fewer and self._is_gone(hit, fewer):
                return self._minimal(hit, fewer)
        return list(words)


def _words_between(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the words of a part of a text are, without the punctuation around them.

    >>> [*_words_between("red, rain (jacket) -", 0, 20)]
    [(0, 3), (5, 9), (11, 17)]
    """
    position = start
    for piece in text[start:end].split():
        position = text.index(piece, position)
        bare = piece.strip(PUNCTUATION)
        if any(map(str.isalnum, bare)):
            at = position + piece.index(bare)
            yield at, at + len(bare)
        position += len(piece)


def _pairs_between(
    text: str, start: int, end: int, n_texts: Callable[[str], int]
) -> Iterator[tuple[int, int]]:
    """Yield where the pairs of a run of characters are, and the characters between them.

    >>> counts = Counter({"注意": 2, "力机": 1, "机制": 3})
    >>> [*_pairs_between("注意力机制", 0, 5, counts.__getitem__)]
    [(0, 2), (2, 3), (3, 5)]
    """
    counts: Counter[int] = Counter()
    for position in range(start, end - 1):
        pair = text[position : position + 2]
        if PARTICLES.isdisjoint(pair):
            counts[position] = n_texts(pair)
    pairs: set[int] = set()
    for position, n in counts.most_common():
        if n and pairs.isdisjoint((position - 1, position + 1)):
            pairs.add(position)
    for position in range(start, end):
        if position in pairs:
            yield position, position + 2
        elif position - 1 not in pairs:
            yield position, position + 1
