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
from functools import cache
from typing import Any, NamedTuple

from qkvsearch.cached import cached_property
from qkvsearch.retrieval.fusion import Part
from qkvsearch.texts.analysis import Analyzer, fold
from qkvsearch.texts.language.languages import stop_words
from qkvsearch.texts.language.word_patterns import CJK, HAS_CJK, RUNS

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
Reasoning = Callable[[int, Sequence[Part]], list[Reason]]


class WordReasons:
    """A `Reasoning` by the words of a query: a line a word, by all heads together."""

    def __init__(self, text: str = "") -> None:
        self.text = text

    @cached_property
    def words(self) -> dict[str, None]:
        """The words of the query, folded, in order."""
        return dict.fromkeys(RUNS.findall(fold(self.text)))

    @cached_property
    def says_nothing(self) -> frozenset[str]:
        """The words that get no line of their own."""
        return stop_words() if self.words.keys() - stop_words() else frozenset()

    def __call__(self, position: int, parts: Sequence[Part]) -> list[Reason]:
        groups: dict[str, list[Part]] = {}
        name = cache(self._name)  # a long query and a long item have millions of parts
        for part in without_constant(parts):
            groups.setdefault(name(part.head, part.query, part.key is None), []).append(part)
        sums = {name: total(of_one) for name, of_one in groups.items()}
        worth = WORD_SHARE * sum(map(abs, sums.values()))
        found = [
            _of_word(name, of_one, abs(sums[name]) >= worth) for name, of_one in groups.items()
        ]
        return [*few(found), *constant(parts)]

    def _name(self, head: str, query: Any, is_of_whole: bool) -> str:
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


def _of_word(name: str, parts: Sequence[Part], is_worth: bool) -> Reason:
    """One line: what a word brings, by which kinds of heads, and, where it is worth it, the item's
    words that it goes with.
    """
    value, query, key = total(parts), parts[0].query, parts[0].key
    if query is None and key is not None:
        return Reason(f"{name}, {key}", value)
    if name == WHOLE or key is None or PLACE.fullmatch(str(query)):
        return Reason(name, value)
    kinds: dict[str, float] = {}
    for part in parts:
        kind = KINDS.get(part.head, MEANING)
        kinds[kind] = kinds.get(kind, 0.0) + part.value
    largest = sorted(kinds.items(), key=lambda one: -abs(one[1]))
    by = ", ".join(f"{kind} {v:+.2f}" for kind, v in largest) if len(kinds) > 1 else largest[0][0]
    pairs = ", ".join(_pairs(name, parts, value)) if is_worth else ""
    return Reason(f"{name} ~ {pairs}: {by}" if pairs else f"{name}: {by}", value)


def _pairs(word: str, parts: Sequence[Part], value: float) -> list[str]:
    """The item's words, other than the word itself, that bring a good share of what it brings."""
    keys: dict[str, float] = {}
    same = terms(word)
    for part in parts:
        key = fold(str(part.key))
        is_another = is_word(key) and not terms(key) & same
        is_found_as = part.head == "lexical" and key not in word and terms(key) != same
        if is_another or is_found_as:
            keys[key] = keys.get(key, 0.0) + part.value
    worth = [(v, key) for key, v in keys.items() if v / value >= PAIR_SHARE] if value else []
    return [key for _, key in sorted(worth, key=lambda one: -abs(one[0]))[:MOST_PAIRS]]


def is_word(label: str) -> bool:
    """Whether a person recognises it as a word that says something.

    >>> [label for label in ("rain", "[SEP]", "ed", "the", "雨", "2001") if is_word(label)]
    ['rain', '雨']
    """
    word = fold(label)
    # CJK's letters take longer to be compiled than a table of hits to be written.
    recognised = ASCII_RECOGNISED if word.isascii() else RECOGNISED
    return re.fullmatch(recognised, word) is not None and word not in stop_words()


def terms(word: str) -> set[str]:
    """By which a word is found, so that "knots" is no other word than "knot"."""
    return set(Analyzer().key_terms(word))


# --- lines of whatever kind ---


def total(parts: Sequence[Part]) -> float:
    """What parts add up to."""
    return float(sum(part.value for part in parts))


def without_constant(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if not _is_constant(part)]


def constant(parts: Sequence[Part]) -> list[Reason]:
    """What every item gets, as one line; none where nothing is taken off."""
    values = [part.value for part in parts if _is_constant(part)]
    return [Reason(EVERYTHING, float(sum(values)))] if values else []


def _is_constant(part: Part) -> bool:
    return part.query is None and part.key is None and part.head not in OF_ITEMS


def few(found: Sequence[Reason], most: int = MOST) -> list[Reason]:
    """The largest, until they carry `SHARE` of what is added up, and all others as one.

    >>> few([Reason("a", 6.0), Reason("b", -3.0), Reason("c", 0.5), Reason("d", 0.25)])[1:]
    [Reason(text='b', value=-3.0), Reason(text='2 smaller ones', value=0.75)]
    """
    ordered = sorted((one for one in found if one.value), key=lambda one: -abs(one.value))
    n = n_carrying([one.value for one in ordered])
    shown = ordered[: min(n, most)]
    rest = ordered[len(shown) :]
    if len(rest) < 2:
        return [*shown, *rest]
    return [*shown, Reason(f"{len(rest):,} smaller ones", sum(one.value for one in rest))]


def n_carrying(values: Sequence[float]) -> int:
    """How many of the values, the largest first, carry `SHARE` of their absolute sum."""
    wanted, carried = SHARE * sum(map(abs, values)), 0.0
    for n, value in enumerate(values):
        if carried >= wanted:
            return n
        carried += abs(value)
    return len(values)


class Addend(NamedTuple):
    """An item that adds `value` to a score, and what it is, such as its genres."""

    title: str
    value: float
    kinds: Collection[str] = ()


def in_groups(addends: Sequence[Addend], first: Collection[str] = ()) -> list[Reason]:
    """A line an item where a few carry most, else a line a group of items of one kind, each item in
    one group alone, and all that is in none as one.

    The kind that adds most is the first group, then the one that adds most of what is left. Kinds
    in `first`, those of the item that the score is of, count twice: they say more about it.
    """
    largest = sorted(addends, key=lambda one: -abs(one.value))
    if n_carrying([one.value for one in largest]) <= MOST:
        return few([Reason(f"because of {one.title}", one.value) for one in addends])
    left, own = list(largest), frozenset(first)
    found: list[Reason] = []
    while len(found) < MOST - 1 and (kind := _largest_kind(left, own)) is not None:
        found.append(group(f"of {kind}", [one for one in left if kind in one.kinds]))
        left = [one for one in left if kind not in one.kinds]
    return few([*found, *[group("others" if found else "items", left)] * bool(left)])


def group(what: str, addends: Sequence[Addend]) -> Reason:
    """Items as one line, the largest by name."""
    largest = sorted(addends, key=lambda one: -abs(one.value))[:NAMED]
    named = ", ".join(one.title for one in largest)
    return Reason(
        f"from {len(addends):,} {what}, such as {named}", sum(one.value for one in addends)
    )


def _largest_kind(addends: Sequence[Addend], twice: Collection[str]) -> str | None:
    """The kind of several items that adds most; of equals the first by name."""
    sums: dict[str, list[float]] = {}
    for one in addends:
        for kind in one.kinds:
            sums.setdefault(kind, []).append(one.value)
    several = [
        (-abs(sum(values)) * (2 if kind in twice else 1), kind)
        for kind, values in sums.items()
        if len(values) > 1
    ]
    return min(several)[1] if several else None


def short(title: str) -> str:
    """A title in one line, cut where it is long.

    >>> short("Mending a net with my uncle before the boats go out")
    'Mending a net with my un…'
    """
    line = " ".join(title.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"
