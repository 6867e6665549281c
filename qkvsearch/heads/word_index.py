"""The words of all items in reading order: which items have a phrase, and which words there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nsmallest

import numpy as np

from qkvsearch._utils.caching import cached_by_word, cached_property
from qkvsearch.heads.unit_numbers import SpelledUnits
from qkvsearch.text.analysis import IS_SPACED_WORD, MAX_TERM, Analyzer, is_unit
from qkvsearch.text.spelling import LetterIndex
from qkvsearch.text.vocabulary import Vocabulary

# The spelling in row 0, which marks the end of a column's text.
END = b""
CACHED_PREFIXES = 1 << 12
CACHED_UNITS = 64
# Words of a text with at most two others between them are neighbours, as in "the end of the world".
MAX_STEP = 3


@dataclass(frozen=True)
class WordSequences:
    """The texts of items as rows of their spellings.

    >>> sea = WordSequences.of_fields([["Deep seas", "Red sea"], ["", "deep"]])
    >>> [sea.spellings[row].decode() for row in sea.words]
    ['deep', 'seas', '', '', 'red', 'sea', '', 'deep', '']
    >>> sea.with_phrase(["deep", "sea"], np.arange(2)).tolist()
    [0]
    """

    # All words in sorted UTF-8, dtype S (n_spellings,); the first one is `END`.
    spellings: np.ndarray
    # The term of each, dtype S (n_spellings,).
    terms: np.ndarray
    # Where each item's words begin, int64 (n + 1,).
    indptr: np.ndarray
    # The words of all items, int32 (n_words,), as rows of `spellings`, with an `END` behind each
    # column.
    words: np.ndarray

    @classmethod
    def of_fields(
        cls, fields: Sequence[Sequence[str]], analyzer: Analyzer | None = None
    ) -> WordSequences:
        """Build from columns of texts, with one text for each item."""
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
        # The last row is for −1, the end of a column.
        words = np.array([*rows, 0], np.int32)[words]
        return cls.numbered(list(numbers), list(terms.values()), indptr, words)

    @classmethod
    def numbered(
        cls, spellings: Sequence[str], terms: Sequence[str], indptr: np.ndarray, words: np.ndarray
    ) -> WordSequences:
        """Build from spellings in any order."""
        encoded = np.array([spelling.encode() for spelling in spellings])
        order = np.argsort(encoded, kind="stable")
        sorted_row = np.empty(len(order), np.int32)
        sorted_row[order] = np.arange(len(order))
        encoded_terms = np.array([term.encode() for term in terms])
        return cls(encoded[order], encoded_terms[order], indptr.astype(np.int64), sorted_row[words])

    def words_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the words of these items, end to end, and where those of each item begin."""
        if len(rows) == len(self.indptr) - 1:
            return self.words, self.indptr[:-1]
        lengths = self.indptr[rows + 1] - self.indptr[rows]
        starts = np.cumsum(lengths) - lengths
        slots = np.repeat(self.indptr[rows] - starts, lengths) + np.arange(lengths.sum())
        return np.asarray(self.words[slots]), starts

    def fitting(self, term: str) -> np.ndarray:
        """Return which words have a term, bool (n_spellings,). A single character of Chinese,
        Japanese or Korean matches all words that contain it.
        """
        encoded = term.encode(errors="replace")
        if is_unit(term):
            return np.asarray(np.char.find(self.spellings, encoded) >= 0)
        return np.asarray(self.terms == encoded)

    def has_prefix(self, prefix: str) -> np.ndarray:
        """Return which words begin with a prefix, bool (n_spellings,)."""
        has_prefix = np.zeros(len(self.spellings), dtype=bool)
        has_prefix[self.span(prefix)] = True
        return has_prefix

    def span(self, prefix: str) -> slice:
        """Return the rows of the words that begin with a prefix."""
        return span_of(self.spellings, prefix)

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each word occurs, int64 (n_spellings,)."""
        return np.bincount(self.words, minlength=len(self.spellings))

    def matched(self, span: slice) -> Iterator[tuple[str, str]]:
        """Yield words in order, each with its term."""
        for pair in zip(self.spellings[span].tolist(), self.terms[span].tolist(), strict=True):
            spelling, term = (text.decode(errors="replace") for text in pair)
            yield spelling, term

    def with_phrase(
        self, terms: Sequence[str], rows: np.ndarray, column: int | None = None
    ) -> np.ndarray:
        """Return which of `rows`, int64 (n,), have these terms one behind the other in one column,
        or in the column of this number.
        """
        return self.with_words([self.fitting(term) for term in terms], rows, column)

    def with_words(
        self, fits: Sequence[np.ndarray], rows: np.ndarray, column: int | None = None
    ) -> np.ndarray:
        """Return `with_phrase` of words.

        fits: for each place in the phrase, which words fit, bool (n_spellings,).
        """
        words, starts = self.words_of(rows)
        n = len(words) - len(fits) + 1
        if not len(rows) or not fits or n < 1:
            return rows[:0]
        is_match = np.ones(n, dtype=bool)
        for i, fit in enumerate(fits):
            is_match &= fit[words[i : i + n]]
        if column is None and len(fits) == 1:
            return rows[np.logical_or.reduceat(is_match, starts)]
        slots = np.flatnonzero(is_match)
        owners = np.searchsorted(starts, slots, side="right") - 1
        if column is not None:
            ends = np.flatnonzero(words == 0)
            first_ends = ends.searchsorted(starts)
            owners = owners[ends.searchsorted(slots) - first_ends[owners] == column]
        return rows[np.unique(owners)]

    def neighbours(
        self, terms: Sequence[str], rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the neighbours that have two of the terms, with no other of them in between: which
        of `rows`, ascending, has them, and the numbers of both terms, int64 (n,) each.

        >>> text = WordSequences.of_fields([["the end of the world", "deep"]])
        >>> [of.tolist() for of in text.neighbours(["world", "end", "deep"], np.arange(1))]
        [[0], [1], [0]]
        """
        words, starts = self.words_of(rows)
        number_of = np.full(len(self.spellings), -1, np.int16)
        for number, term in enumerate(terms):
            number_of[self._rows_of_term(term)] = number
        number_of[0] = 0  # the end of a column is between its words and the next ones
        numbers = number_of[words]
        slots = (numbers >= 0).nonzero()[0]
        left, right = slots[:-1], slots[1:]
        is_near = (right - left <= MAX_STEP) & (words[left] > 0) & (words[right] > 0)
        left, right = left[is_near], right[is_near]
        return starts.searchsorted(left, side="right") - 1, numbers[left], numbers[right]

    def places(self, terms: Sequence[str], row: int, short: int) -> tuple[np.ndarray, np.ndarray]:
        """Return where an item has the terms, ascending, int64 (n,), and which of them, (n,).

        short: columns of at most so many words are one place, −1.

        >>> text = WordSequences.of_fields([["Deep sea"], ["the sea is so deep"]])
        >>> [of.tolist() for of in text.places(["sea", "deep"], 0, 2)]
        [[-1, -1, 4, 7], [1, 0, 0, 1]]
        """
        words = self.words[self.indptr[row] : self.indptr[row + 1]]
        rows_of = [self._rows_of_term(term) for term in terms]
        numbers = np.full(len(words), -1)
        for number, rows in enumerate(rows_of):
            if len(rows):
                numbers[(words == rows[:, None]).any(axis=0)] = number
        slots = (numbers >= 0).nonzero()[0]
        # The columns are END to END.
        ends = np.append(-1, (words == 0).nonzero()[0])
        lengths = np.diff(ends) - 1
        is_short = lengths[ends.searchsorted(slots) - 1] <= short
        places = np.where(is_short, -1, slots)
        order = np.argsort(places, kind="stable")
        return places[order], numbers[slots][order]

    @cached_property
    def _rows_of_term(self) -> Callable[[str], np.ndarray]:
        """A function from a term to the rows of its spellings."""
        terms, by_term = self.terms, np.argsort(self.terms, kind="stable")

        def rows(term: str) -> np.ndarray:
            encoded = term.encode(errors="replace")
            first = terms.searchsorted(encoded, "left", by_term)
            return np.asarray(by_term[first : terms.searchsorted(encoded, "right", by_term)])

        return cached_by_word(rows, CACHED_PREFIXES)

    def rows_with_unit(
        self, unit: str, short: int, within: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that have a character in a column of at most `short` words: as a word of
        its own, and as a word or `within` one; both ascending.

        >>> text = WordSequences.of_fields([["茶碗", "碗", "茶杯"]])
        >>> [rows.tolist() for rows in text.rows_with_unit("碗", 3)]
        [[1], [0, 1]]
        """
        row = self.row_of(unit)
        as_word = self._rows_in_short(np.array([] if row is None else [row], np.int64), short)
        if not within:
            return as_word, as_word
        return as_word, self._rows_in_short(self._rows_with(unit), short)

    def row_of(self, word: str) -> int | None:
        """Return the row of a spelling; None where no text has it."""
        encoded = word[:MAX_TERM].encode(errors="replace")
        row = int(self.spellings.searchsorted(encoded))
        is_there = row < len(self.spellings) and self.spellings[row] == encoded
        return row if is_there else None

    def _rows_with(self, unit: str) -> np.ndarray:
        """Return the rows of the spellings that are a character, or a pair with it."""
        number, found = ord(unit), self.spelled_units
        return ((found.first == number) | (found.second == number)).nonzero()[0]

    @cached_property
    def spelled_units(self) -> SpelledUnits:
        """The units of each spelling."""
        return SpelledUnits.of(self.spellings)

    def _rows_in_short(self, spellings: np.ndarray, short: int) -> np.ndarray:
        """Return the rows that have one of these words in a column of at most `short` words."""
        if not len(spellings):
            return np.zeros(0, np.int64)
        fits = np.zeros(len(self.spellings), dtype=bool)
        fits[spellings] = True
        slots = fits[self.words].nonzero()[0]
        ends = self._ends
        column = ends.searchsorted(slots)
        is_short = ends[column] - ends[column - 1] - 1 <= short
        return np.unique(self.indptr.searchsorted(slots[is_short], side="right") - 1)

    def rows_in_columns(
        self, terms: Sequence[str], rows: np.ndarray, short: int, first_alone: bool
    ) -> np.ndarray:
        """Return which of `rows` have one of the terms in a column of at most `short` words.

        first_alone: whether the first column alone is read.

        >>> text = WordSequences.of_fields([["Red seas", "Red"], ["", "a sea"]])
        >>> [text.rows_in_columns(["sea"], np.arange(2), 3, first).tolist() for first in (0, 1)]
        [[0, 1], [0]]
        """
        words, starts = self.words_of(rows)
        fits = np.zeros(len(self.spellings), dtype=bool)
        for term in terms:
            fits[self._rows_of_term(term)] = True
        slots = fits[words].nonzero()[0]
        owners = starts.searchsorted(slots, side="right") - 1
        ends = np.append(-1, (words == 0).nonzero()[0])
        columns = ends.searchsorted(slots)
        is_there = ends[columns] - ends[columns - 1] - 1 <= short
        if first_alone:
            is_there &= columns == ends.searchsorted(starts[owners])
        return rows[np.unique(owners[is_there])]

    @cached_property
    def _ends(self) -> np.ndarray:
        """Where columns end, ascending: the one before the first at −1."""
        return np.concatenate([[-1], (self.words == 0).nonzero()[0], [len(self.words)]])

    def rows_starting_with(self, fits: Sequence[np.ndarray], rows: np.ndarray) -> np.ndarray:
        """Return which of `rows` begin, in their first column, with words that fit."""
        longest = int(np.diff(self.indptr).max(initial=0))
        if len(fits) > longest or not len(rows):
            return rows[:0]
        is_match = np.ones(len(rows), dtype=bool)
        for i, fit in enumerate(fits):
            slots = self.indptr[rows] + i
            is_match &= fit[self.words[np.minimum(slots, len(self.words) - 1)]]
        return rows[is_match]

    def rows_spelled(self, spelled: Sequence[str], rows: np.ndarray, is_whole: bool) -> np.ndarray:
        """Return which of `rows` begin, in their first column, with words in these spellings.

        is_whole: whether they must have no others there.

        >>> text = WordSequences.of_fields([["Red sea", "Red"], ["", "sea"]])
        >>> [text.rows_spelled(["red"], np.arange(2), is_whole).tolist() for is_whole in (0, 1)]
        [[0, 1], [1]]
        """
        numbers: list[int] = []
        for word in spelled:
            number = self.row_of(word)
            if number is None:
                return rows[:0]
            numbers.append(number)
        if is_whole:
            numbers.append(0)
        # A row that has the words so far does not end before the next one: `END` is behind them.
        for place, number in enumerate(numbers):
            rows = rows[self.words[self.indptr[rows] + place] == number]
        return rows


def span_of(spellings: np.ndarray, prefix: str) -> slice:
    """Return the rows of sorted spellings that begin with a prefix."""
    start = prefix.encode(errors="replace")
    # All bytes of UTF-8 are below 255.
    return slice(*spellings.searchsorted(np.array([start, start + b"\xff"])).tolist())


@dataclass(frozen=True)
class WordIndex:
    """The words of all items of a build.

    pieces: the words of each segment, and the item of each of its rows, −1 for a deleted one.
    """

    pieces: Sequence[tuple[WordSequences, np.ndarray]]
    n_items: int

    def with_phrase(
        self, terms: Sequence[str], candidates: np.ndarray, column: int | None = None
    ) -> np.ndarray:
        """Return which of `candidates`, bool (n_items,), have these terms one behind the other, in
        one column or in the column of this number, bool (n_items,).
        """
        return self._items(lambda words, rows: words.with_phrase(terms, rows, column), candidates)

    def with_phrase_prefix(
        self, terms: Sequence[str], prefix: str, candidates: np.ndarray, column: int | None = None
    ) -> np.ndarray:
        """Return the same for terms followed by a word that begins with a prefix."""

        def matches(words: WordSequences, rows: np.ndarray) -> np.ndarray:
            fits = [*map(words.fitting, terms), words.has_prefix(prefix)]
            return words.with_words(fits, rows, column)

        return self._items(matches, candidates)

    def items_with_prefix(self, typed: Sequence[str]) -> np.ndarray:
        """Return which items begin, in their first column, with these words, bool (n_items,).

        The last word may be unfinished.
        """

        def matches(words: WordSequences, rows: np.ndarray) -> np.ndarray:
            spelled = [words.spellings == word.encode(errors="replace") for word in typed[:-1]]
            return words.rows_starting_with([*spelled, words.has_prefix(typed[-1])], rows)

        return self._items(matches, np.ones(self.n_items, dtype=bool))

    def items_starting_with(
        self, typed: Sequence[str], items: np.ndarray, is_whole: bool
    ) -> np.ndarray:
        """Return which of `items` begin, in their first column, with these words, ascending.

        is_whole: whether they must have no others there.
        """
        found = [items[:0]]
        for words, rows, items_of_rows in self.rows_of(items):
            matching = words.rows_spelled(typed, rows, is_whole)
            found.append(items_of_rows[rows.searchsorted(matching)])
        return np.sort(np.concatenate(found))

    def neighbours(
        self, terms: Sequence[str], items: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return `WordSequences.neighbours` of these items, ascending: items, and terms."""
        pairs = []
        for (words, _), row_of in zip(self.pieces, self._row_of_item, strict=True):
            own = items[row_of[items] >= 0]
            own = own[np.argsort(row_of[own])]
            which, first, second = words.neighbours(terms, row_of[own])
            pairs.append((own[which], first, second))
        items, first, second = map(np.concatenate, zip(*pairs, strict=True))
        return items, first, second

    def rows_of(self, items: np.ndarray) -> Iterator[tuple[WordSequences, np.ndarray, np.ndarray]]:
        """Yield the words of each segment, its rows of these items, ascending, and their items."""
        for (words, item_rows), row_of in zip(self.pieces, self._row_of_item, strict=True):
            rows = np.sort(row_of[items])
            rows = rows[rows >= 0]
            if len(rows):
                yield words, rows, item_rows[rows]

    def places(self, terms: Sequence[str], item: int, short: int) -> tuple[np.ndarray, np.ndarray]:
        """Return `WordSequences.places` of an item."""
        words, row = self._piece_of(item)
        return words.places(terms, row, short)

    def in_columns(
        self, terms: Sequence[str], items: np.ndarray, short: int, first_alone: bool = False
    ) -> np.ndarray:
        """Return which of these items have one of the terms, as `WordSequences.rows_in_columns`
        tells, bool (n_items,).
        """
        found = np.zeros(self.n_items, dtype=bool)
        for words, rows, items_of_rows in self.rows_of(items):
            with_term = words.rows_in_columns(terms, rows, short, first_alone)
            found[items_of_rows[rows.searchsorted(with_term)]] = True
        return found

    def length(self, item: int) -> int:
        """Return how many words an item has, with the ends of columns."""
        words, row = self._piece_of(item)
        return int(words.indptr[row + 1] - words.indptr[row])

    def with_unit(self, unit: str, short: int, within: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return `WordSequences.rows_with_unit` of all items, ascending items."""
        return self._with_unit(unit, short, within)

    @cached_property
    def _with_unit(self) -> Callable[[str, int, bool], tuple[np.ndarray, np.ndarray]]:
        # Each step of a search asks for the same characters.
        pieces = self.pieces

        @lru_cache(CACHED_UNITS)
        def with_unit(unit: str, short: int, within: bool) -> tuple[np.ndarray, np.ndarray]:
            found = []
            for words, item_rows in pieces:
                items = (item_rows[rows] for rows in words.rows_with_unit(unit, short, within))
                found.append([of_piece[of_piece >= 0] for of_piece in items])
            as_word, in_short = (np.sort(np.concatenate(of)) for of in zip(*found, strict=True))
            return as_word, in_short

        return with_unit

    def _piece_of(self, item: int) -> tuple[WordSequences, int]:
        """Return the words of the segment that has an item, and its row there."""
        for (words, _), row_of in zip(self.pieces, self._row_of_item, strict=True):
            if row_of[item] >= 0:
                return words, int(row_of[item])
        raise IndexError(item)

    @cached_property
    def _row_of_item(self) -> list[np.ndarray]:
        """For each piece the row of each item, int64 (n_items,); −1 for items of other pieces."""
        rows = []
        for _, item_rows in self.pieces:
            row_of = np.full(self.n_items, -1)
            own = np.flatnonzero(item_rows >= 0)
            row_of[item_rows[own]] = own
            rows.append(row_of)
        return rows

    def _items(
        self, find: Callable[[WordSequences, np.ndarray], np.ndarray], candidates: np.ndarray
    ) -> np.ndarray:
        """Return which candidates a search in each segment finds, bool (n_items,)."""
        is_match = np.zeros(self.n_items, dtype=bool)
        for words, item_rows in self.pieces:
            rows = np.flatnonzero(item_rows >= 0)
            is_match[item_rows[find(words, rows[candidates[item_rows[rows]]])]] = True
        return is_match

    @cached_property
    def spellings(self) -> np.ndarray:
        """All words of the texts, folded: sorted UTF-8, dtype S."""
        if len(self.pieces) == 1:
            return self.pieces[0][0].spellings[1:]
        spellings = np.unique(np.concatenate([words.spellings for words, _ in self.pieces]))
        return spellings[spellings != END]

    @cached_property
    def by_letters(self) -> LetterIndex:
        """The words that others may be misspellings of.

        Numbers are none of them, nor are words of scripts in which a word is a character or two.
        """
        words = (spelling.decode(errors="replace") for spelling in self.spellings.tolist())
        return LetterIndex(list(filter(IS_SPACED_WORD, words)))

    def has(self, word: str) -> bool:
        """Return whether a text has the word in this spelling, folded."""
        return self._vocabulary.row(word[:MAX_TERM]) >= 0

    def known(self, words: Sequence[str]) -> set[str]:
        """Return those of the words, folded and at most as long as a term, that a text has."""
        rows = self._vocabulary.rows(words)
        return {word for word, row in zip(words, rows.tolist(), strict=True) if row >= 0}

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.spellings)

    def words_with_prefix(self, prefix: str) -> list[str]:
        """Return all words that begin with a prefix.

        >>> sea = WordSequences.of_fields([["sea season red"]])
        >>> WordIndex([(sea, np.arange(1))], 1).words_with_prefix("sea")
        ['sea', 'season']
        """
        spellings = self.spellings[span_of(self.spellings, prefix)]
        return [spelling.decode(errors="replace") for spelling in spellings]

    def most_frequent(self, prefix: str, n: int) -> tuple[list[str], int]:
        """Return the n most frequent words that begin with a prefix, and how many begin so.

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

    def terms_with_prefix(self, prefix: str) -> Mapping[str, str]:
        """Return the terms of the words that begin with a prefix, each with its first spelling.

        >>> sea = WordSequences.of_fields([["seasons sea season"]])
        >>> WordIndex([(sea, np.arange(1))], 1).terms_with_prefix("sea")
        {'sea': 'sea', 'season': 'season'}
        """
        return self._cached_terms(prefix)

    @cached_property
    def _cached_terms(self) -> Callable[[str], Mapping[str, str]]:
        pieces = self.pieces

        def terms_with(prefix: str) -> Mapping[str, str]:
            terms: dict[str, str] = {}
            for words, _ in pieces:
                for spelling, term in words.matched(span_of(words.spellings, prefix)):
                    terms[term] = min(spelling, terms.get(term, spelling))
            return terms

        return cached_by_word(terms_with, CACHED_PREFIXES)

    @cached_property
    def mean_length(self) -> float:
        """The mean number of words of an item, with the ends of columns."""
        n_words = sum(int(np.diff(words.indptr)[rows >= 0].sum()) for words, rows in self.pieces)
        return n_words / max(self.n_items, 1)
