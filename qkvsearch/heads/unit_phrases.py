"""Phrases in scripts without spaces, compared by their units: characters, or letters with vowels.

What is typed without spaces is no sequence of words that are known or unknown. So a query is read
as a row of units (`UnitRow`), an item has a share of them (`covered_units`), and a phrase that is
typed with one error is found among the phrases of items (`near_phrase`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from qkvsearch._utils.query_lock import pause
from qkvsearch.heads.bm25 import TermKeys
from qkvsearch.heads.unit_numbers import END, FIRST_OTHER, NO_UNIT, is_character
from qkvsearch.heads.word_index import WordIndex, WordSequences
from qkvsearch.text.analysis import IS_UNSPACED, Analyzer, Token, units

# Shorter phrases differ by one unit from too many others: titles and what is in them, and phrases
# of all other texts.
SHORTEST_IN_TITLE, SHORTEST_IN_TEXT = 4, 5
# Longer ones are sentences, and seldom typed with a single error.
LONGEST_PHRASE = 32
# The items that are compared, those that share most units with what was typed: their titles, and
# all their texts.
MAX_TITLES, MAX_TEXTS = 5000, 200


class UnitRow(NamedTuple):
    """The units of a text in order."""

    # A word in a script with spaces is one unit.
    units: Sequence[str]
    # For each token of the text, where its units begin and end.
    spans: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> UnitRow:
        """Take the words of a text apart. Pairs of one run overlap by a unit.

        >>> UnitRow.of([Token("注意", "注意"), Token("意力", "意力"), Token("ai", "ai")])
        UnitRow(units=['注', '意', '力', 'ai'], spans=[(0, 2), (1, 3), (3, 4)])
        """
        row: list[str] = []
        spans: list[tuple[int, int]] = []
        before: Sequence[str] = ()
        for token in tokens:
            own = units_of(token.text)
            row += own[1:] if overlap(before, own) else own
            spans.append((len(row) - len(own), len(row)))
            before = own
        return cls(row, spans)


@lru_cache(maxsize=1 << 14)
def units_of(word: str) -> Sequence[str]:
    """Return the units of a word of a text: the two of a pair, or the word itself."""
    return units(word) if IS_UNSPACED(word) else [word]


def overlap(before: Sequence[str], own: Sequence[str]) -> bool:
    """Return whether two words, given by their units, are neighbouring pairs of one run."""
    return len(before) == len(own) == 2 and before[1] == own[0]


def has_unspaced(tokens: Sequence[Token]) -> bool:
    """Return whether a query has a word in a script without spaces."""
    return any(not token.text.isascii() and IS_UNSPACED(token.text) for token in tokens)


# --- what items have of a query ---


def unknown_runs(keys: TermKeys, tokens: Sequence[Token]) -> list[str]:
    """Return the runs of units of which no item has any pair that was typed.

    Where a text has 霸王 alone, that is 别姬 of 霸王别姬.
    """
    row = UnitRow.of(tokens)
    is_known, begins = np.zeros((2, len(row.units)), bool)
    end_before = 0
    for token, (start, end) in zip(tokens, row.spans, strict=True):
        begins[start] |= start == end_before
        is_known[start:end] |= not IS_UNSPACED(token.text) or keys.has(token.term)
        end_before = end
    runs = [""]
    for unit, known, begin in zip(row.units, is_known, begins, strict=True):
        if known or begin:
            runs.append("")
        if not known:
            runs[-1] += unit
    return [run for run in runs if len(run) > 1]


def covered_units(keys: TermKeys, tokens: Sequence[Token], row: UnitRow) -> np.ndarray:
    """Return how many units of a query each item has, int64 (n_items,). row: that of the tokens.

    An item has a unit if it has a pair or a word with it that was typed.
    """
    covered = np.zeros(keys.n_items, np.int64)
    had_before = np.zeros(keys.n_items, dtype=bool)
    before, end_before = np.zeros(0, np.int32), 0
    for token, (start, end) in zip(tokens, row.spans, strict=True):
        pause()
        items = keys.postings(token.term)[0]
        covered[items] += end - start
        if start < end_before:  # the unit that two pairs share counts once
            covered[items] -= had_before[items]
        had_before[before] = False
        had_before[items] = True
        before, end_before = items, end
    return covered


def largest_covered_share(keys: TermKeys, tokens: Sequence[Token]) -> float:
    """Return the largest share of the units of a query that one item has."""
    row = UnitRow.of(tokens)
    return float(covered_units(keys, tokens, row).max(initial=0)) / max(len(row.units), 1)


# --- phrases with an error ---


class NearPhrase(NamedTuple):
    """A phrase that differs from what was typed by one error."""

    units: Sequence[str]
    # An item that has it.
    item: int

    def in_text(self, text: str, analyzer: Analyzer) -> str | None:
        """Return the phrase as a text has it, None if it has not."""
        row, n = UnitRow.of(analyzer.tokens(text)), len(self.units)
        spans = list(zip(row.spans, analyzer.token_spans(text), strict=True))
        begins = {first: start for (first, _), (start, _) in reversed(spans)}
        ends = {last: end for (_, last), (_, end) in spans}
        for place in range(len(row.units) - n + 1):
            is_here = row.units[place : place + n] == self.units
            if is_here and place in begins and place + n in ends:
                return text[begins[place] : ends[place + n]]
        return None

    @property
    def text(self) -> str:
        """The phrase as an analyzer reads it, with blanks beside words in scripts with spaces."""
        text = self.units[0]
        for before, unit in pairwise(self.units):
            text += unit if IS_UNSPACED(before) and IS_UNSPACED(unit) else f" {unit}"
        return text


class _Place(NamedTuple):
    """Where an item has a phrase that differs from what was typed by one error."""

    units: tuple[str, ...]
    item: int
    is_title: bool


def near_phrase(
    keys: TermKeys, index: WordIndex, tokens: Sequence[Token], has_titles: bool
) -> NearPhrase | None:
    """Return the phrase of an item that was most likely meant by these words; None for none.

    An error is a unit that is wrong, missing or additional, or two neighbours that are swapped.
    Whole titles come first, then phrases within titles, then those of other texts; of several, the
    one that most items have. Where an item has each unit within a pair or a word that was typed,
    nothing is misspelled: 校园故事 is no misspelling of 校园往事 if an item is about 校园 and has a
    故事. has_titles: whether the first column of the texts has titles.
    """
    row = UnitRow.of(tokens)
    typed = row.units
    if not SHORTEST_IN_TITLE - 1 <= len(typed) <= LONGEST_PHRASE:
        return None
    covered = covered_units(keys, tokens, row)
    if covered.max(initial=0) == len(typed):
        return None
    items = _with_most_units(keys, tokens, typed)
    items = items[np.argsort(-covered[items], kind="stable")]
    found = None
    if has_titles:
        found = _best(index, items[:MAX_TITLES], typed, in_titles=True)
    return found or _best(index, items[:MAX_TEXTS], typed, in_titles=False)


def _with_most_units(keys: TermKeys, tokens: Sequence[Token], typed: Sequence[str]) -> np.ndarray:
    """Return the items that have all different units of a query but one, ascending rows."""
    term_of = {token.text: token.term for token in tokens}
    n_units = np.zeros(keys.n_items, np.int64)
    distinct = set(typed)
    for unit in distinct:
        pause()
        n_units[keys.postings(term_of.get(unit, unit))[0]] += 1
    return np.flatnonzero(n_units >= len(distinct) - 1)


def _best(
    index: WordIndex, items: np.ndarray, typed: Sequence[str], in_titles: bool
) -> NearPhrase | None:
    """Return the best phrase of these items. in_titles: see `_places`."""
    n_with: dict[tuple[str, ...], int] = {}
    places: dict[_Place, None] = {}
    for words, rows, items_of_rows in index.rows_of(items):
        pause()
        places |= dict.fromkeys(_places(words, rows, items_of_rows, typed, in_titles))
    for place in places:
        n_with[place.units] = n_with.get(place.units, 0) + 1
    if not places:
        return None
    best = max(places, key=lambda place: (place.is_title, n_with[place.units], -place.item))
    return NearPhrase(list(best.units), best.item)


def _places(
    words: WordSequences,
    rows: np.ndarray,
    items: np.ndarray,
    typed: Sequence[str],
    in_titles: bool,
) -> Iterator[_Place]:
    """Yield where these rows, ascending, have a phrase with one error.

    items: the item of each row. in_titles: whether the first column alone is read. It may be the
    phrase as a whole. Within a text, the first and the last unit of a phrase must be right.
    """
    numbers = _SegmentUnits(words)
    typed_numbers = [numbers.of(unit) for unit in typed]
    texts = _numbered_units(numbers, rows, in_titles)
    shortest = SHORTEST_IN_TITLE if in_titles else SHORTEST_IN_TEXT
    for start, end, first_is_right, last_is_right in _windows(
        texts.units, typed_numbers, numbers.unit
    ):
        begins_text, ends_text = texts.units[start - 1] == END, texts.units[end] == END
        is_title = in_titles and begins_text and ends_text
        if is_title:
            is_near = max(end - start, len(typed)) >= shortest
        else:
            is_near = (
                min(end - start, len(typed)) >= shortest
                and (first_is_right or begins_text)
                and (last_is_right or ends_text)
            )
        if is_near:
            phrase = tuple(map(numbers.unit, texts.units[start:end].tolist()))
            yield _Place(phrase, int(items[texts.owners[start]]), is_title)


class _SegmentUnits:
    """The numbers of units in the texts of one segment, for one query."""

    def __init__(self, words: WordSequences) -> None:
        self.words = words
        # The units that are neither a character nor a word of the texts, from the first number on
        # that no word has.
        self._others: dict[str, int] = {}
        self._first_number = FIRST_OTHER + len(words.spellings)

    def of(self, unit: str) -> int:
        """Return the number of a unit."""
        if is_character(unit):
            return ord(unit)
        row = self.words.row_of(unit)
        if row is not None and not IS_UNSPACED(unit):
            return FIRST_OTHER + row
        return self._others.setdefault(unit, self._first_number + len(self._others))

    def unit(self, number: int) -> str:
        """Return the unit with a number; "" for `END` and `NO_UNIT`."""
        if number <= END:
            return ""
        if number < FIRST_OTHER:
            return chr(number)
        if number < self._first_number:
            return self._spelling(number - FIRST_OTHER)
        return list(self._others)[number - self._first_number]

    def of_words(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and the second unit of words, given by their rows, int32 (n,) each."""
        spelled = self.words.spelled_units
        first, second = spelled.first[rows], spelled.second[rows]
        is_unread = spelled.is_unread[rows]
        if is_unread.any():
            distinct, word_of = np.unique(rows[is_unread], return_inverse=True)
            numbers = np.full((2, len(distinct)), NO_UNIT)
            for i, row in enumerate(distinct.tolist()):
                own = units_of(self._spelling(row))
                numbers[: len(own), i] = [self.of(unit) for unit in own]
            first[is_unread], second[is_unread] = numbers[:, word_of]
        return first, second

    def _spelling(self, row: int) -> str:
        return str(self.words.spellings[row].decode(errors="replace"))


class _NumberedUnits(NamedTuple):
    """The units of texts, end to end."""

    # Numbers of units (n,), with `END` before the first text and behind each column.
    units: np.ndarray
    # The index of the text that each belongs to (n,).
    owners: np.ndarray


def _numbered_units(numbers: _SegmentUnits, rows: np.ndarray, in_titles: bool) -> _NumberedUnits:
    """Return the units of these rows. in_titles: whether those of the first column alone."""
    all_words, starts = numbers.words.words_of(rows)
    owners = np.repeat(np.arange(len(rows)), np.diff(starts, append=len(all_words)))
    if in_titles:
        is_end = all_words == 0
        n_ends_before = np.cumsum(is_end) - is_end
        is_title = n_ends_before == n_ends_before[starts][owners]
        all_words, owners = all_words[is_title], owners[is_title]

    firsts, seconds = numbers.of_words(all_words)
    # The second unit of a pair is the first one of the next pair of its run.
    is_pair = seconds != NO_UNIT
    ends_run = is_pair.copy()
    ends_run[:-1] &= ~(is_pair[1:] & (seconds[:-1] == firsts[1:]))
    behind = np.cumsum(1 + ends_run)
    places = behind - ends_run
    result = np.full((2, int(behind.max(initial=0)) + 1), END)
    result[:, places] = firsts, owners
    result[:, places[ends_run] + 1] = seconds[ends_run], owners[ends_run]
    return _NumberedUnits(*result)


def _windows(
    texts: np.ndarray, typed: Sequence[int], unit_of: Callable[[int], str]
) -> Iterator[tuple[int, int, bool, bool]]:
    """Yield where a phrase with one error begins and ends in texts, and whether its first and its
    last unit are right.

    texts: as `_NumberedUnits.units`. typed: the numbers of the phrase. unit_of: from a number.
    """
    n = len(typed)
    room = np.full(n + 2, NO_UNIT)
    padded = np.concatenate([room, texts, room])
    # How many units match the beginning of the phrase from each place on, and its end before it.
    begins = np.zeros(len(padded), np.int64)
    ends = np.zeros(len(padded), np.int64)
    inner = np.arange(len(room), len(room) + len(texts))
    matches_begin = np.ones(len(texts), dtype=bool)
    matches_end = np.ones(len(texts), dtype=bool)
    for i in range(n):
        matches_begin &= padded[inner + i] == typed[i]
        matches_end &= padded[inner - 1 - i] == typed[n - 1 - i]
        begins[inner] += matches_begin
        ends[inner] += matches_end

    # By the length of a phrase, the units that must match: one is wrong, missing or additional, or
    # two are swapped.
    for length, n_right in ((n, n - 1), (n + 1, n), (n - 1, n - 1), (n, n - 2)):
        n_matching = begins[inner] + ends[inner + length]
        for place in inner[n_matching >= n_right].tolist():
            n_first = int(begins[place])
            n_last = n_right - n_first
            found = [unit_of(u) for u in padded[place + n_first : place + length - n_last].tolist()]
            meant_for = [unit_of(u) for u in typed[n_first : n - n_last]]
            if n_last >= 0 and _is_error(found, meant_for):
                start = place - len(room)
                yield start, start + length, n_first > 0, bool(ends[place + length] > 0)


def _is_error(found: Sequence[str], typed: Sequence[str]) -> bool:
    """Return whether people mistype these units of a text as the typed ones.

    Words in scripts with spaces are none, nor is one numeral for another: 第一部 is not typed for
    第二部.

    >>> _is_error(["梦"], ["蓦"]), _is_error(["梦", "空"], ["空", "梦"]), _is_error(["二"], ["一"])
    (True, True, False)
    """
    both = [*found, *typed]
    if not all(map(IS_UNSPACED, both)):
        return False
    if len(found) == len(typed) == 2:
        return list(found) == list(typed)[::-1]
    is_replaced = len(found) == len(typed)
    return not (is_replaced and all(unicodedata.numeric(u[0], None) is not None for u in both))
