"""Phrases in scripts without spaces, compared by their units: characters, or letters with vowels.

What is typed without spaces is no sequence of words that are known or unknown. So a query is read
as a row of units (`UnitRow`), an item has a share of them (`covered_units`), and a phrase that is
typed with one error is found among the items' phrases (`near_phrase`).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from qkvsearch._utils.query_lock import pause
from qkvsearch.heads.bm25 import TermKeys
from qkvsearch.heads.word_index import WordIndex, WordSequences
from qkvsearch.text.analysis import IS_UNSPACED, Token, units

# Shorter phrases differ by one unit from too many others: titles and what is in them, and phrases
# of all other texts.
SHORTEST_IN_TITLE, SHORTEST_IN_TEXT = 4, 5
# Longer ones are sentences, and seldom typed with a single error.
LONGEST_PHRASE = 32
# The items that are compared, those that share most units with what was typed: their titles, and
# all their texts.
MAX_TITLES, MAX_TEXTS = 5000, 200
# The unit that ends a column, and one that no text has.
END, NO_UNIT = 0, -1


class UnitRow(NamedTuple):
    """The units of a text in order."""

    # A word in a script with spaces is one unit.
    units: Sequence[str]
    # For each token of the text, the units that it consists of: from the first to before the last.
    spans: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, texts: Sequence[str]) -> UnitRow:
        """Take the tokens of a text apart. Pairs of one run overlap by a unit.

        >>> UnitRow.of(["注意", "意力", "ai"])
        UnitRow(units=['注', '意', '力', 'ai'], spans=[(0, 2), (1, 3), (3, 4)])
        """
        row: list[str] = []
        spans: list[tuple[int, int]] = []
        before: list[str] = []
        for text in texts:
            own = units(text) if IS_UNSPACED(text) else [text]
            is_next_pair = len(before) == len(own) == 2 and before[1] == own[0]
            row += own[1:] if is_next_pair else own
            spans.append((len(row) - len(own), len(row)))
            before = own
        return cls(row, spans)


def has_unspaced(tokens: Sequence[Token]) -> bool:
    """Return whether a query has a word in a script without spaces."""
    return any(not token.text.isascii() and IS_UNSPACED(token.text) for token in tokens)


def covered_units(keys: TermKeys, tokens: Sequence[Token]) -> np.ndarray:
    """Return how many units of a query each item has, int64 (n_items,).

    An item has a unit if it has a word or a pair with it that was typed.
    """
    row = UnitRow.of([token.text for token in tokens])
    has_token: list[np.ndarray] = []
    for token in tokens:
        pause()
        has_token.append(np.zeros(keys.n_items, dtype=bool))
        has_token[-1][keys.postings(token.term)[0]] = True
    covered = np.zeros(keys.n_items, np.int64)
    for unit in range(len(row.units)):
        spans = enumerate(row.spans)
        of_unit = [has_token[i] for i, (start, end) in spans if start <= unit < end]
        covered += np.logical_or.reduce(of_unit)
    return covered


# --- phrases with an error ---


class NearPhrase(NamedTuple):
    """A phrase that differs from what was typed by one error, the better one greater."""

    is_title: bool
    units: tuple[str, ...]

    @property
    def text(self) -> str:
        """The phrase as it is typed, with blanks beside words in scripts with spaces."""
        text = self.units[0]
        for before, unit in pairwise(self.units):
            are_joined = IS_UNSPACED(before) and IS_UNSPACED(unit)
            text += unit if are_joined else f" {unit}"
        return text


def near_phrase(
    keys: TermKeys, index: WordIndex, tokens: Sequence[Token], has_titles: bool
) -> str | None:
    """Return the phrase of an item that was most likely meant by these words; None for none.

    An error is a unit that is wrong, missing or additional, or two neighbours that are swapped.
    Whole titles come first, then phrases within titles, then those of other texts; of several the
    one that most items have. Where an item has each unit within a pair or a word that was typed,
    nothing is misspelled: 校园故事 is no misspelling of 校园往事 if an item is about 校园 and has a
    故事. has_titles: whether the first column of the texts has titles.
    """
    typed = UnitRow.of([token.text for token in tokens]).units
    if not SHORTEST_IN_TITLE - 1 <= len(typed) <= LONGEST_PHRASE:
        return None
    covered = covered_units(keys, tokens)
    if covered.max(initial=0) == len(typed):
        return None
    items = _with_most_units(keys, tokens, typed)
    items = items[np.argsort(-covered[items], kind="stable")]
    if has_titles:
        titles = _found(index, items[:MAX_TITLES], typed, in_titles=True)
        if titles:
            return titles
    return _found(index, items[:MAX_TEXTS], typed, in_titles=False)


def _with_most_units(
    keys: TermKeys, tokens: Sequence[Token], typed: Sequence[str]
) -> np.ndarray:
    """Return the items that have all different units of a query but one, ascending rows."""
    term_of = {token.text: token.term for token in tokens}
    distinct = set(typed)
    n_units = np.zeros(keys.n_items, np.int64)
    for unit in distinct:
        pause()
        n_units[keys.postings(unit if IS_UNSPACED(unit) else term_of[unit])[0]] += 1
    return np.flatnonzero(n_units >= len(distinct) - 1)


def _found(
    index: WordIndex, items: np.ndarray, typed: Sequence[str], in_titles: bool
) -> str | None:
    """Return the best phrase of these items."""
    found: Counter[NearPhrase] = Counter()
    for words, rows in index.rows_of(np.sort(items)):
        pause()
        found.update(_near_phrases(words, rows, typed, in_titles))
    if not found:
        return None
    return max(found, key=lambda phrase: (phrase.is_title, found[phrase])).text


def _near_phrases(
    words: WordSequences, rows: np.ndarray, typed: Sequence[str], in_titles: bool
) -> Iterator[NearPhrase]:
    """Yield the phrases with one error, once for each item that has it.

    in_titles: whether the first column alone is read, and may be a phrase as a whole.
    """
    numbers = {unit: number for number, unit in enumerate(dict.fromkeys(typed), END + 1)}
    texts, owners = _unit_numbers(words, rows, numbers, in_titles)
    names = list(numbers)
    matches = _OneError(texts, [numbers[unit] for unit in typed], names)
    seen: set[tuple[int, NearPhrase]] = set()
    shortest = SHORTEST_IN_TITLE if in_titles else SHORTEST_IN_TEXT
    for start, end, is_inside in matches.windows():
        length = end - start
        is_title = in_titles and texts[start - 1] == END == texts[end]
        if is_title:
            is_long = max(length, len(typed)) >= shortest
        else:
            is_long = is_inside and min(length, len(typed)) >= shortest
        phrase = NearPhrase(is_title, tuple(names[n - 1] for n in texts[start:end].tolist()))
        if is_long and (owner := (int(owners[start]), phrase)) not in seen:
            seen.add(owner)
            yield phrase


def _unit_numbers(
    words: WordSequences, rows: np.ndarray, numbers: dict[str, int], in_titles: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the units of these items, end to end, and the row of each.

    numbers: of units, extended by those of the texts. `END` comes first and ends each column.
    """
    all_words, starts = words.words_of(rows)
    owners = np.searchsorted(starts, np.arange(len(all_words)), side="right") - 1
    if in_titles:
        ends = np.cumsum(all_words == 0)
        n_before = ends - (all_words == 0)
        in_first = n_before == n_before[starts][owners]
        all_words, owners = all_words[in_first], owners[in_first]
    distinct, word_of = np.unique(all_words, return_inverse=True)
    first = np.full(len(distinct), END, np.int64)
    second = np.full(len(distinct), NO_UNIT, np.int64)
    for i, spelling in enumerate(words.spellings[distinct].tolist()):
        if not spelling:
            continue
        text = spelling.decode(errors="replace")
        own = units(text) if IS_UNSPACED(text) else [text]
        own_numbers = [numbers.setdefault(unit, len(numbers) + 1) for unit in own]
        first[i], second[i] = own_numbers[0], own_numbers[1] if len(own) > 1 else NO_UNIT
    firsts, seconds = first[word_of], second[word_of]
    # The second unit of a pair is the first one of the next pair of its run.
    is_pair = seconds != NO_UNIT
    is_last = is_pair.copy()
    is_last[:-1] &= ~(is_pair[1:] & (seconds[:-1] == firsts[1:]))
    places = 1 + np.cumsum(1 + is_last) - (1 + is_last)
    texts = np.full(1 + len(firsts) + int(is_last.sum()), END, np.int64)
    texts[places] = firsts
    texts[places[is_last] + 1] = seconds[is_last]
    of_unit = np.zeros(len(texts), np.int64)
    of_unit[places] = owners
    of_unit[places[is_last] + 1] = owners[is_last]
    return texts, of_unit


class _OneError:
    """The places in texts that match a phrase but for one error.

    texts: numbers of units (n,), with `END` first and last. typed: those of the phrase. names: the
    units by number, from 1 on.
    """

    def __init__(self, texts: np.ndarray, typed: Sequence[int], names: Sequence[str]) -> None:
        self.texts, self.typed, self.names = texts, np.array(typed), names
        n = len(typed)
        padded = np.concatenate([np.full(n, NO_UNIT), texts, np.full(n + 2, NO_UNIT)])
        # From each place, how many units match the beginning of the phrase; before each place, how
        # many match its end.
        self.begins = np.zeros(len(texts) + n + 2, np.int64)
        self.ends = np.zeros_like(self.begins)
        matches = np.ones((2, len(texts)), dtype=bool)
        for i in range(n):
            matches[0] &= padded[n + i : n + i + len(texts)] == typed[i]
            matches[1] &= padded[n - 1 - i : n - 1 - i + len(texts)] == typed[n - 1 - i]
            self.begins[: len(texts)] += matches[0]
            self.ends[: len(texts)] += matches[1]

    def windows(self) -> Iterator[tuple[int, int, bool]]:
        """Yield where a phrase with an error begins and ends, and whether its first and last units
        are right.
        """
        n, n_texts = len(self.typed), len(self.texts)
        places = np.arange(1, n_texts)
        begins = self.begins[places]
        for length, n_right in ((n, n - 1), (n - 1, n - 1), (n + 1, n), (n, n - 2)):
            ends = self.ends[places + length]
            enough = (begins + ends >= n_right) & (places + length < n_texts)
            for start in places[enough].tolist():
                first_wrong = start + int(self.begins[start])
                if self._is_error(start, first_wrong, length, n_right):
                    is_inside = self.begins[start] > 0 and self.ends[start + length] > 0
                    yield start, start + length, bool(is_inside)

    def _is_error(self, start: int, first_wrong: int, length: int, n_right: int) -> bool:
        """Return whether the unit that differs is one that people mistype."""
        n = len(self.typed)
        place = first_wrong - start
        if length < n:  # a unit too many was typed
            return self._may_be_wrong(self.typed[min(place, n - 1)])
        if first_wrong >= start + length:
            return False
        found = self.texts[first_wrong]
        if length > n:  # a unit was left out
            return self._may_be_wrong(found)
        if place >= n:
            return False
        if n_right == n - 2:  # two were swapped
            pair = self.texts[first_wrong : first_wrong + 2].tolist()
            typed = self.typed[place : place + 2].tolist()
            return len(pair) == 2 and pair == typed[::-1] and all(map(self._may_be_wrong, pair))
        wrong = self.typed[place]
        if not (self._may_be_wrong(found) and self._may_be_wrong(wrong)):
            return False
        # 第一部 is no misspelling of 第二部.
        return not all(map(_is_numeral, (self.names[found - 1], self.names[wrong - 1])))

    def _may_be_wrong(self, number: int) -> bool:
        return number != END and IS_UNSPACED(self.names[number - 1]) is not None


def _is_numeral(unit: str) -> bool:
    return unicodedata.numeric(unit[0], None) is not None
