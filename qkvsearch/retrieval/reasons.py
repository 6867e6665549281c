"""Reasons in plain words: the exact parts of a score as a few lines that add up to it.

What a line claims. A score compares an item with the mean item: of each head the mean is taken off,
the same number for every item, and that is the line "everything gets". The lines of words say how
much each word brings before that. In the lexical head a word brings exactly what the item loses
without it. In a dense head every item gets something from every word: of two items, the one to
which a word brings more is the one that it speaks for, and a word speaks for an item where it
brings more than its share of what everything gets. What says nothing by itself, such as "the" or a
token that a transformer adds, is "the text as a whole".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_by_word, cached_property
from qkvsearch.retrieval.score_components import Components, Source
from qkvsearch.terminal import shorten
from qkvsearch.text.analysis import CJK, HAS_CJK, RUNS, Analyzer, fold
from qkvsearch.text.languages import stop_words

# Limits chosen by eye, on both samples and on 9,742 films, with each encoder.
# Lines are shown until they carry this share of all that is added up, and at most so many.
SHARE, MOST = 0.8, 6
# A pair of words is worth naming that brings at least this share of what the query's word brings,
# where that word brings at least this share of all that is added up.
PAIR_SHARE, WORD_SHARE, MOST_PAIRS = 0.25, 0.05, 2
# Of a group of items, so many are named; of a title among other words, so many characters.
NAMED, SHOWN = 2, 25
# What heads, and what is added to them, are called to a person; all others compare meanings.
KINDS: Mapping[str, str] = {
    "lexical": "same word",
    "token": "word by word",
    "collaborative": "your taste",
    "popularity": "for how popular it is",
    "diversity": "for the sake of diversity",
    "constant": "whatever the history is",
    "beginning": "it begins as typed",
}
MEANING = "meaning"
# Of these, parts without query and key are not the same for every item.
OF_ITEMS = ("popularity", "diversity", "constant", "beginning")
EVERYTHING, WHOLE = "everything gets", "the text as a whole"
# A token that a transformer adds to a text; a place that fusion by ranks gives.
ADDED, PLACE = re.compile(r"\[[A-Z]+\]|<[/\w]+>"), re.compile(r"rank [\d,]+")
# A word that a person recognises, folded: three letters, or any that needs no more.
ASCII_RECOGNISED = r"[^\W\d_]{3,}(?:['-][^\W\d_]+)*"
RECOGNISED = rf"{ASCII_RECOGNISED}|[{CJK}]+"


class Reason(NamedTuple):
    """What adds `value` to a score, in words."""

    text: str
    value: float


# An item's row number and the parts of its score -> reasons that add up to the same.
Reasoning = Callable[[int, Components], list[Reason]]


class WordReasons:
    """A `Reasoning` by the words of a query: a line a word, by all heads together."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self._names: dict[tuple[Source, bool], str] = {}  # all hits have the same words

    @cached_property
    def words(self) -> dict[str, None]:
        """The words of the query, folded, in order."""
        return dict.fromkeys(RUNS.findall(fold(self.text)))

    @cached_property
    def says_nothing(self) -> frozenset[str]:
        """The words that get no line of their own."""
        return stop_words() if self.words.keys() - stop_words() else frozenset()

    def __call__(self, position: int, parts: Components) -> list[Reason]:
        lines = _Lines(parts, self._name)
        least = WORD_SHARE * float(np.abs(lines.values).sum())
        found = few(lines.values.tolist(), lambda line: lines.text(line, least))
        return [*found, *constant(parts)]

    def _name(self, source: Source, is_of_whole: bool) -> str:
        known = self._names.get((source, is_of_whole))
        if known is None:
            known = self._names[source, is_of_whole] = self._named(*source[:2], is_of_whole)
        return known

    def _named(self, head: str, query: Any, is_of_whole: bool) -> str:
        """Which line a part belongs to. is_of_whole: whether it is of no piece of the item."""
        label, kind = str(query), KINDS.get(head, MEANING)
        if query is None or is_of_whole:  # such as an item of a history
            return kind
        if PLACE.fullmatch(label):
            return f"{kind}: {label}"
        word = fold(label)
        if ADDED.fullmatch(label) or not any(map(str.isalnum, word)) or word in self.says_nothing:
            return WHOLE
        if word not in self.words and HAS_CJK(word):
            return next((run for run in self.words if word in run), word)
        return word


class _Lines:
    """The parts of a score by the words of its query, a line for each word.

    names: the word of each line, or the kind of head. values: what each line adds, float64.
    """

    def __init__(self, parts: Components, name: Callable[[Source, bool], str]) -> None:
        self.parts = parts
        numbers: dict[str, int] = {}
        line_of = [
            -1 if is_same else numbers.setdefault(name(source, key is None), len(numbers))
            for source, key, is_same in zip(
                parts.sources, parts.first_keys, are_constant(parts), strict=True
            )
        ]
        self.names = list(numbers)
        # The line of each source, −1 for what every item gets.
        self.line_of = np.array(line_of, dtype=np.int64)
        is_worded = self.line_of >= 0
        self.values = np.bincount(self.line_of[is_worded], parts.sums[is_worded], len(numbers))

    def text(self, line: int, least: float) -> str:
        """By which kinds of heads a word adds what it adds; and where that is at least `least`, the
        item's words that it goes with.
        """
        name, value = self.names[line], float(self.values[line])
        rows = np.flatnonzero(self.line_of == line)
        query, key = self.parts.sources[rows[0]].query, self.parts.first_keys[rows[0]]
        if query is None and key is not None:
            return f"{name}, {key}"
        if name == WHOLE or key is None or PLACE.fullmatch(str(query)):
            return name
        kinds: dict[str, float] = {}
        for row in rows.tolist():
            kind = KINDS.get(self.parts.sources[row].head, MEANING)
            kinds[kind] = kinds.get(kind, 0.0) + float(self.parts.sums[row])
        largest = sorted(kinds.items(), key=lambda one: -abs(one[1]))
        by = ", ".join(f"{kind} {v:+.2f}" for kind, v in largest)
        by = by if len(kinds) > 1 else largest[0][0]
        pairs = ", ".join(self._pairs(name, rows, value)) if abs(value) >= least else ""
        return f"{name} ~ {pairs}: {by}" if pairs else f"{name}: {by}"

    def _pairs(self, word: str, rows: np.ndarray, value: float) -> list[str]:
        """The item's words, other than the word itself, that bring a good share of its value."""
        names, values = self.parts.table(rows.tolist())
        is_lexical = [self.parts.sources[row].head == "lexical" for row in rows.tolist()]
        numbers: dict[str, int] = {}
        number_of = [numbers.setdefault(fold(str(name)), len(numbers)) for name in names]
        of_all = np.bincount(number_of, values.sum(axis=0))
        of_lexical = np.bincount(number_of, values[is_lexical].sum(axis=0))
        keys, same, found = list(numbers), terms(word), []
        is_large = np.maximum(of_all / value, of_lexical / value) >= PAIR_SHARE
        for number in np.flatnonzero(is_large).tolist():
            key, added = keys[number], 0.0
            if is_word(key) and not terms(key) & same:
                added = float(of_all[number])
            elif key not in word and terms(key) != same:  # it was found as another word
                added = float(of_lexical[number])
            if added / value >= PAIR_SHARE:
                found.append((added, key))
        return [key for _, key in sorted(found, key=lambda one: -abs(one[0]))[:MOST_PAIRS]]


def is_word(label: str) -> bool:
    """Whether a person recognises it as a word that says something.

    >>> [label for label in ("rain", "[SEP]", "ed", "the", "雨", "2001") if is_word(label)]
    ['rain', '雨']
    """
    word = fold(label)
    # CJK's letters take longer to be compiled than a table of hits to be written.
    recognised = ASCII_RECOGNISED if word.isascii() else RECOGNISED
    return re.fullmatch(recognised, word) is not None and word not in stop_words()


def terms(word: str) -> frozenset[str]:
    """By which a word is found, so that "knots" is no other word than "knot"."""
    return _terms(word)


_terms: Callable[[str], frozenset[str]] = cached_by_word(
    lambda word: frozenset(Analyzer().key_terms(word)), 1 << 14
)


# --- lines of whatever kind ---


def are_constant(parts: Components) -> list[bool]:
    """Of each source whether it adds the same to every item."""
    return [
        source.query is None and key is None and source.head not in OF_ITEMS
        for source, key in zip(parts.sources, parts.first_keys, strict=True)
    ]


def constant(parts: Components) -> list[Reason]:
    """What every item gets, as one line; none where nothing is taken off."""
    values = parts.sums[are_constant(parts)]
    return [Reason(EVERYTHING, float(values.sum()))] if len(values) else []


def few(values: Sequence[float], text: Callable[[int], str], most: int = MOST) -> list[Reason]:
    """The largest values, until they carry `SHARE` of what is added up, and all others as one line.
    text: what the line of the i-th value says; only lines that are shown are asked for.

    >>> few([6.0, -3.0, 0.5, 0.25], "abcd".__getitem__)[1:]
    [Reason(text='b', value=-3.0), Reason(text='2 smaller ones', value=0.75)]
    """
    ordered = sorted((i for i, value in enumerate(values) if value), key=lambda i: -abs(values[i]))
    n = min(n_carrying([values[i] for i in ordered]), most)
    if len(ordered) <= n + 1:
        return [Reason(text(i), values[i]) for i in ordered]
    rest = sum(values[i] for i in ordered[n:])
    found = [Reason(text(i), values[i]) for i in ordered[:n]]
    return [*found, Reason(f"{len(ordered) - n:,} smaller ones", rest)]


def n_carrying(values: Sequence[float] | np.ndarray) -> int:
    """How many of the values, the largest first, carry `SHARE` of their absolute sum."""
    carried = np.cumsum([0.0, *np.abs(values)])
    return int(np.searchsorted(carried, SHARE * carried[-1]))


class KindsOfItems:
    """The items of a history by their kinds, such as their genres. titles: of each item. kinds: of
    each item a list.
    """

    def __init__(self, titles: Sequence[str], kinds: Sequence[Collection[str]]) -> None:
        self.titles = titles
        self.names = sorted({kind for of_item in kinds for kind in of_item})
        numbers = {name: number for number, name in enumerate(self.names)}
        pairs = [(i, numbers[kind]) for i, of_item in enumerate(kinds) for kind in of_item]
        # Which item has which kind, pair by pair.
        self._items, self._kinds = np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    def reasons(
        self, values: np.ndarray, which: np.ndarray, first: Collection[str] = ()
    ) -> list[Reason]:
        """A line an item where a few carry most, else a line a group of items of one kind, each
        item in one group alone, and all that is in none as one.

        values: what each item adds, float64 (n_items,). which: the items that count, bool
        (n_items,). The kind that adds most is the first group, then the one that adds most of what
        is left. Kinds in `first`, those of the item that the score is of, count twice.
        """
        values, left = np.where(which, values, 0.0), which.copy()
        if n_carrying(-np.sort(-np.abs(values))) <= MOST:
            return few(values.tolist(), lambda i: f"because of {self.titles[i]}")
        weights = np.array([2 if name in first else 1 for name in self.names])
        found: list[Reason] = []
        while len(found) < MOST - 1 and (kind := self._largest(values, left, weights)) is not None:
            members = np.zeros_like(left)
            members[self._items[self._kinds == kind]] = True
            found.append(group(f"of {self.names[kind]}", self.titles, values, members & left))
            left &= ~members
        if left.any():
            found.append(group("others" if found else "items", self.titles, values, left))
        return few([one.value for one in found], lambda i: found[i].text)

    def _largest(self, values: np.ndarray, left: np.ndarray, weights: np.ndarray) -> int | None:
        """The kind of several items that adds most; of equals the first by name."""
        is_left = left[self._items]
        kinds, n_kinds = self._kinds[is_left], len(self.names)
        sums = np.bincount(kinds, values[self._items[is_left]], n_kinds)
        sizes = np.where(np.bincount(kinds, minlength=n_kinds) > 1, weights * np.abs(sums), -1.0)
        best = int(np.argmax(sizes)) if n_kinds else 0
        return best if n_kinds and sizes[best] >= 0 else None


def group(what: str, titles: Sequence[str], values: np.ndarray, which: np.ndarray) -> Reason:
    """Items as one line, the largest by name. which: bool (n_items,)."""
    items = np.flatnonzero(which)
    largest = items[np.argsort(-np.abs(values[items]), kind="stable")][:NAMED]
    named = ", ".join(titles[item] for item in largest.tolist())
    return Reason(f"from {len(items):,} {what}, such as {named}", float(values[items].sum()))


def short(title: str) -> str:
    """A title in one line, cut where it is long.

    >>> short("Mending a net with my uncle before the boats go out")
    'Mending a net with my un…'
    """
    return shorten(" ".join(title.split()), SHOWN)
