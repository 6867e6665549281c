"""The words of every item in reading order: where phrases stand, and which words there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import count

import numpy as np

from qkvsearch.text.analysis import HAS_CJK, MAX_TERM, Analyzer
from qkvsearch.text.related_words import MIN_PREFIX
from qkvsearch.text.spelling import LetterIndex
from qkvsearch.text.vocabulary import MAX_CACHED_ROWS, Vocabulary

# The spelling in row 0: where a column's text ends.
END = b""
# So many beginnings are looked up in the spellings themselves, as many as a single query has. After
# these, all words are told by their beginnings at once.
FEW = 12


@dataclass(frozen=True)
class WordSequences:
    """The texts of some items as rows of their spellings.

    spellings: sorted UTF-8, dtype S (n_spellings,), the first one `END`. terms: what each is
    matched by, dtype S (n_spellings,). indptr: int64 (n + 1,), where each item's words begin.
    words: int32 (n_words,), rows of `spellings`, with an `END` behind each column.

    >>> sea = WordSequences.of_fields([["Deep seas", "Red sea"], ["", "deep"]])
    >>> [sea.spellings[row].decode() for row in sea.words]
    ['deep', 'seas', '', '', 'red', 'sea', '', 'deep', '']
    >>> sea.with_phrase(["deep", "sea"], np.arange(2)).tolist()
    [0]
    """

    spellings: np.ndarray
    terms: np.ndarray
    indptr: np.ndarray
    words: np.ndarray

    @classmethod
    def of_fields(
        cls, fields: Sequence[Sequence[str]], analyzer: Analyzer | None = None
    ) -> WordSequences:
        """Of items given as columns of texts, one text an item in each."""
        from qkvsearch.text.analyzed import AnalyzedTexts, TokenSequences

        columns = AnalyzedTexts.of_columns(fields, analyzer or Analyzer())
        tokens, indptr, words = TokenSequences.of(columns)
        numbers: dict[str, int] = {"": 0}
        terms = {"": ""}
        rows = []
        for token in tokens:
            spelling = token.text[:MAX_TERM]
            terms.setdefault(spelling, token.term)
            rows.append(numbers.setdefault(spelling, len(numbers)))
        # The last row is that of −1, behind a column.
        words = np.array([*rows, 0])[words]
        return cls.numbered(list(numbers), list(terms.values()), indptr, words)

    @classmethod
    def numbered(
        cls, spellings: Sequence[str], terms: Sequence[str], indptr: np.ndarray, words: np.ndarray
    ) -> WordSequences:
        """With spellings in whatever order, sorted."""
        spelled = np.array([spelling.encode() for spelling in spellings])
        order = np.argsort(spelled, kind="stable")
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order))
        matched = np.array([term.encode() for term in terms])
        return cls(spelled[order], matched[order], indptr.astype(np.int64), place[words])

    def taken(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The words of the items in these rows, end to end, and where each item's begin."""
        if len(rows) == len(self.indptr) - 1:
            return self.words, self.indptr[:-1]
        lengths = self.indptr[rows + 1] - self.indptr[rows]
        starts = np.cumsum(lengths) - lengths
        places = np.repeat(self.indptr[rows] - starts, lengths) + np.arange(lengths.sum())
        return np.asarray(self.words[places]), starts

    def fitting(self, term: str) -> np.ndarray:
        """bool (n_spellings,): which words a term finds; a single character of Chinese, Japanese or
        Korean all that have it.
        """
        wanted = term.encode(errors="replace")
        if len(term) == 1 and HAS_CJK(term):
            return np.asarray(np.char.find(self.spellings, wanted) >= 0)
        return np.asarray(self.terms == wanted)

    def beginning(self, prefix: str) -> np.ndarray:
        """bool (n_spellings,): which words begin so."""
        found = np.zeros(len(self.spellings), dtype=bool)
        found[self.span(prefix)] = True
        return found

    def span(self, prefix: str) -> slice:
        """Where the words are that begin so."""
        wanted = prefix.encode(errors="replace")
        # The largest byte of UTF-8 is below 255.
        return slice(*self.spellings.searchsorted(np.array([wanted, wanted + b"\xff"])).tolist())

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each word occurs, int64 (n_spellings,)."""
        return np.bincount(self.words, minlength=len(self.spellings))

    def matched(self, span: slice) -> Iterator[tuple[str, str]]:
        """Some of the words, in order, each with the term that it is matched by."""
        for pair in zip(self.spellings[span].tolist(), self.terms[span].tolist(), strict=True):
            spelling, term = (text.decode(errors="replace") for text in pair)
            yield spelling, term

    def with_phrase(
        self, terms: Sequence[str], rows: np.ndarray, column: int | None = None
    ) -> np.ndarray:
        """Which of `rows`, int64 (n,), have these terms one behind the other in one column, or in
        the column of this number.
        """
        return self.with_words([self.fitting(term) for term in terms], rows, column)

    def with_words(
        self, fits: Sequence[np.ndarray], rows: np.ndarray, column: int | None = None
    ) -> np.ndarray:
        """As `with_phrase`, of words one of which fits at each place: bool (n_spellings,) each."""
        words, starts = self.taken(rows)
        n = len(words) - len(fits) + 1
        if not len(rows) or not fits or n < 1:
            return rows[:0]
        found = np.ones(n, dtype=bool)
        for i, fit in enumerate(fits):
            found &= fit[words[i : i + n]]
        if column is None and len(fits) == 1:
            return rows[np.logical_or.reduceat(found, starts)]
        places = np.flatnonzero(found)
        owners = np.searchsorted(starts, places, side="right") - 1
        if column is not None:
            ends = np.flatnonzero(words == 0)
            before = ends.searchsorted(starts)
            owners = owners[ends.searchsorted(places) - before[owners] == column]
        return rows[np.unique(owners)]

    def starting(self, fits: Sequence[np.ndarray], rows: np.ndarray) -> np.ndarray:
        """Which of `rows` begin with words that fit, in their first column."""
        longest = int(np.diff(self.indptr).max(initial=0))
        if len(fits) > longest or not len(rows):
            return rows[:0]
        found = np.ones(len(rows), dtype=bool)
        for i, fit in enumerate(fits):
            places = self.indptr[rows] + i
            found &= fit[self.words[np.minimum(places, len(self.words) - 1)]]
        return rows[found]


@dataclass(frozen=True)
class WordIndex:
    """The words of all items of a build.

    pieces: of each segment its words, and the item row of each of its rows, −1 of departed ones.
    """

    pieces: Sequence[tuple[WordSequences, np.ndarray]]
    n_items: int

    def with_phrase(
        self, terms: Sequence[str], candidates: np.ndarray, column: int | None = None
    ) -> np.ndarray:
        """bool (n_items,): which of `candidates`, bool (n_items,), have these terms one behind the
        other, in one column or in the column of this number.
        """
        return self._placed(lambda words, rows: words.with_phrase(terms, rows, column), candidates)

    def with_beginning(
        self, terms: Sequence[str], prefix: str, candidates: np.ndarray, column: int | None = None
    ) -> np.ndarray:
        """The same of terms and, behind them, a word that begins so."""

        def found(words: WordSequences, rows: np.ndarray) -> np.ndarray:
            fits = [*map(words.fitting, terms), words.beginning(prefix)]
            return words.with_words(fits, rows, column)

        return self._placed(found, candidates)

    def starting(self, typed: Sequence[str]) -> np.ndarray:
        """bool (n_items,): whose first column begins with these words, the last of which may be the
        beginning of one.
        """

        def found(words: WordSequences, rows: np.ndarray) -> np.ndarray:
            spelled = [words.spellings == word.encode(errors="replace") for word in typed[:-1]]
            return words.starting([*spelled, words.beginning(typed[-1])], rows)

        return self._placed(found, np.ones(self.n_items, dtype=bool))

    def beginning_with(self, typed: Sequence[str], is_whole: bool = False) -> np.ndarray:
        """bool (n_items,): whose first column begins with these words, or has no others."""

        def found(words: WordSequences, rows: np.ndarray) -> np.ndarray:
            wanted = [word.encode(errors="replace") for word in typed] + [END] * is_whole
            return words.starting([words.spellings == word for word in wanted], rows)

        return self._placed(found, np.ones(self.n_items, dtype=bool))

    def _placed(
        self, find: Callable[[WordSequences, np.ndarray], np.ndarray], candidates: np.ndarray
    ) -> np.ndarray:
        found = np.zeros(self.n_items, dtype=bool)
        for words, place in self.pieces:
            there = np.flatnonzero(place >= 0)
            found[place[find(words, there[candidates[place[there]]])]] = True
        return found

    @cached_property
    def spellings(self) -> np.ndarray:
        """All words as they are spelled in the texts, folded: sorted UTF-8, dtype S."""
        if len(self.pieces) == 1:
            return self.pieces[0][0].spellings[1:]
        every = np.unique(np.concatenate([words.spellings for words, _ in self.pieces]))
        return every[every != END]

    @cached_property
    def by_letters(self) -> LetterIndex:
        """The same, without those of scripts in which a word is no more than a sign or two, and
        without numbers: what a word may be a misspelling of.
        """
        found = (spelling.decode(errors="replace") for spelling in self.spellings.tolist())
        return LetterIndex([word for word in found if word.isalpha() and not HAS_CJK(word)])

    def has(self, word: str) -> bool:
        """Whether a text has the word in this very spelling, folded."""
        return self._vocabulary.cached_row(word[:MAX_TERM]) >= 0

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.spellings)

    def beginning(self, prefix: str) -> list[str]:
        """All words that begin so.

        >>> sea = WordSequences.of_fields([["sea season red"]])
        >>> WordIndex([(sea, np.arange(1))], 1).beginning("sea")
        ['sea', 'season']
        """
        wanted = prefix.encode(errors="replace")
        # The largest byte of UTF-8 is below 255.
        first, last = np.searchsorted(self.spellings, np.array([wanted, wanted + b"\xff"]))
        return [spelling.decode(errors="replace") for spelling in self.spellings[first:last]]

    def most_frequent(self, prefix: str, n: int) -> tuple[list[str], int]:
        """The n words that begin so and occur most, and how many begin so in all.

        >>> sea = WordSequences.of_fields([["sea season seasons season"]])
        >>> WordIndex([(sea, np.arange(1))], 1).most_frequent("sea", 1)
        (['season'], 3)
        """
        counts: dict[bytes, int] = {}
        for words, _ in self.pieces:
            span = words.span(prefix)
            rows = zip(words.spellings[span].tolist(), words.counts[span].tolist(), strict=True)
            for spelling, n_times in rows:
                counts[spelling] = counts.get(spelling, 0) + n_times
        largest = nsmallest(n, counts, key=lambda spelling: (-counts[spelling], spelling))
        return [spelling.decode(errors="replace") for spelling in largest], len(counts)

    def terms_beginning(self, prefix: str) -> Mapping[str, str]:
        """What the words that begin so are matched by, each with the first of its spellings.

        >>> sea = WordSequences.of_fields([["seasons sea season"]])
        >>> WordIndex([(sea, np.arange(1))], 1).terms_beginning("sea")
        {'sea': 'sea', 'season': 'season'}
        """
        is_kept = len(prefix) == MIN_PREFIX and len(self.spellings) <= MAX_CACHED_ROWS
        if is_kept and next(self._n_asked) >= FEW:
            return self._by_beginning.get(prefix, {})
        found: dict[str, str] = {}
        for words, _ in self.pieces:
            for spelling, term in words.matched(words.span(prefix)):
                found[term] = min(spelling, found.get(term, spelling))
        return found

    @cached_property
    def _n_asked(self) -> Iterator[int]:
        return count()

    @cached_property
    def _by_beginning(self) -> Mapping[str, Mapping[str, str]]:
        """`terms_beginning` of all that families are told by."""
        every: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for words, _ in self.pieces:
            for spelling, term in words.matched(slice(None)):
                found = every[spelling[:MIN_PREFIX]]
                found[term] = min(spelling, found.get(term, spelling))
        return dict(every)

    @cached_property
    def mean_length(self) -> float:
        """How many words an item has in the mean, the ends of columns among them."""
        n_words = sum(int(np.diff(words.indptr)[place >= 0].sum()) for words, place in self.pieces)
        return n_words / max(self.n_items, 1)
