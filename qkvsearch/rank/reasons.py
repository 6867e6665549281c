"""Reasons in plain words: the exact parts of a score as a few lines that add up to it.

A score compares an item with the average item: the mean of each head is subtracted, the same number
for every item, and that is the line "average item (subtracted)". The lines of words tell how much
each word adds before that. In the lexical head a word and its pairs add exactly what the item would
lose without them. In a dense head every word adds something to every item: a word speaks for the
item to which it adds more than to others, and for an item where it adds more than its share of the
mean. Words without a meaning of their own, such as "the" or a token that a transformer adds, are
the line "overall meaning".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from qkvsearch._utils.caching import cached_by_word, cached_property
from qkvsearch._utils.folding import fold
from qkvsearch._utils.shown_sums import (
    AVERAGE_ITEM,
    DECIMALS,
    reasons_adding_up,
    rounded_to,
    signed,
)
from qkvsearch.heads.dense_head import MEANING
from qkvsearch.heads.lexical_head import LEXICAL
from qkvsearch.heads.rule_heads import RULE_HEADS
from qkvsearch.heads.search_heads import HEADS
from qkvsearch.scores.components import Components, PartSource
from qkvsearch.terminal import in_one_line, shorten
from qkvsearch.text.analysis import HAS_UNSPACED, RUNS, UNSPACED, Analyzer, is_unit
from qkvsearch.text.languages import stop_words

# The limits were chosen by eye, on both samples and on 9,742 films, with each encoder.

# The lines that are shown add up to this share of all values.
SHARE = 0.8
# There are at most so many lines, beside one for the smaller ones.
MAX_LINES = 6
# A line names other words of the item only if it adds at least this share of all values.
WORD_SHARE = 0.05
# It names those that add at least this share of the line, and at most so many.
PAIR_SHARE = 0.25
MAX_PAIRS = 2
# The items of a group that are named.
MAX_NAMED = 2
# The characters of a title among other words.
MAX_CHARACTERS = 25
# What is added to the scores of heads, in reasons. It differs between items.
ADDED_TO_HEADS: Mapping[str, str] = {
    "popular": "most popular: number of users",
    "popularity": "for how popular it is",
    "diversity": "for the sake of diversity",
    "constant": "whatever the history is",
}
# The names of heads, and of what is added to them, in reasons; all other heads compare meanings.
KINDS = {head.name: head.reason for head in HEADS} | dict(ADDED_TO_HEADS)
SIMILAR_TO = f"{MEANING} to"
# The heads whose parts without query and key differ between items.
OF_ITEMS = {*ADDED_TO_HEADS, *(head.name for head in HEADS if head.is_of_item)}
OVERALL = "overall meaning"
# A token that a transformer adds to a text: [CLS] and [PROMPT], or <s> and </s>.
ADDED = re.compile(r"\[[A-Z]+\]|</?\w+>")
# A folded word that a person recognizes: at least three letters, or any characters of a script
# without spaces.
ASCII_WORD = r"[^\W\d_]{3,}(?:['-][^\W\d_]+)*"
WORD = rf"{ASCII_WORD}|[{UNSPACED}]+"
# Where one pair of characters ends with the character that the next one begins with.
OVERLAP = re.compile(rf"([{UNSPACED}]) \1")


class Reason(NamedTuple):
    """A line of an explanation: what adds `value` to a score."""

    text: str
    value: float


class OtherReasons(Reason):
    """The line of an explanation for all that has no line of its own."""


def only_kinds(text: str) -> str:
    """Return the text of a reason with the kinds of heads, but without what each of them adds.

    >>> only_kinds("river: same word +2.350, similar meaning +2.148")
    'river: same word, similar meaning'
    """
    kinds = "|".join(map(re.escape, [*KINDS.values(), MEANING]))
    return re.sub(rf"\b({kinds}) [+-]\d+\.\d{{{DECIMALS}}}(?=,|$)", r"\1", text)


def reason_records(reasons: Sequence[Reason]) -> dict[str, Any]:
    """Return reasons as the fields of a hit: `reasons`, which add up to the score, and `others`,
    what the last of them adds that names nothing.

    >>> reason_records([Reason("rain", 0.75), OtherReasons("2 other words", 0.25)])["others"]
    0.25
    """
    others = [reason.value for reason in reasons if isinstance(reason, OtherReasons)]
    return {"reasons": [reason._asdict() for reason in reasons], "others": sum(others, 0.0)}


class Reasoning(Protocol):
    """What turns the parts of a score into reasons."""

    def __call__(self, position: int, parts: Components, score: float, /) -> list[Reason]:
        """Return reasons that add up to the score. position: the item's row. score: as shown."""

    def quoting(self) -> Reasoning:
        """Return the same with the titles and kinds of items in quotation marks."""


class WordReasons:
    """A `Reasoning` by the words of a query: a line for each word, for all heads together."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        # The name of each source of parts, computed once: all hits have the same words.
        self._names: dict[tuple[PartSource, bool], str] = {}

    def quoting(self) -> WordReasons:
        """Return the reasons as they are: they name no items, only single words."""
        return self

    @cached_property
    def words(self) -> dict[str, None]:
        """The folded words of the query, in order."""
        return dict.fromkeys(RUNS.findall(fold(self.text)))

    @cached_property
    def unlisted(self) -> frozenset[str]:
        """The words without a line of their own."""
        return stop_words() if self.words.keys() - stop_words() else frozenset()

    def __call__(
        self, position: int, parts: Components, score: float | None = None
    ) -> list[Reason]:
        """Return the reasons for the score of the item in this row, from the parts of the score.

        What the kinds of heads add, in the text of a line, adds up to the value of the line as it
        is shown beside `score`, by default the sum of the parts.
        """
        lines = _Lines(parts, self._name)
        threshold = WORD_SHARE * float(np.abs(lines.values).sum())
        values = lines.values.tolist()
        shown_lines, smaller = lines.shown()
        reasons = [Reason(lines.names[line], values[line]) for line in shown_lines]
        if smaller:
            rest = sum(values[line] for line in smaller)
            reasons.append(OtherReasons(f"{len(smaller):,} other words", rest))
        reasons += [*of_rules(parts), *constant(parts)]
        total = float(parts.sums.sum()) if score is None else score
        shown_values = reasons_adding_up(reasons, total)
        for place, line in enumerate(shown_lines):
            text = lines.text(line, threshold, shown_values[place])
            reasons[place] = reasons[place]._replace(text=text)
        return reasons

    def _name(self, source: PartSource, is_whole_item: bool) -> str:
        name = self._names.get((source, is_whole_item))
        if name is None:
            name = self._names[source, is_whole_item] = self._named(*source[:2], is_whole_item)
        return name

    def _named(self, head: str, query: Any, is_whole_item: bool) -> str:
        """Return the name of the line that a part belongs to: a word, or what its head compares.

        head, query: as in `ScoreComponent`. is_whole_item: whether the part is of no piece of the
        item, as an item of a history is.
        """
        if query is None or is_whole_item:
            return KINDS.get(head, MEANING)
        return self.word_of(query)

    def word_of(self, label: Any) -> str:
        """Return the word that a piece of the query belongs to, or `OVERALL`. label: the piece."""
        label = str(label)
        # The sign of a weight, as in "×0.8", is shown as it is.
        word = "×".join(map(fold, label.split("×")))
        has_letters = any(map(str.isalnum, word))
        if ADDED.fullmatch(label) or not has_letters or word in self.unlisted:
            return OVERALL
        if word not in self.words and HAS_UNSPACED(word):
            # A Chinese token is a piece of what was typed without blanks, as are two that overlap.
            piece = OVERLAP.sub(r"\1", word)
            return next((run for run in self.words if piece in run), word)
        return word


class _Lines:
    """The parts of a score by the words of its query, a line for each word."""

    def __init__(self, parts: Components, name: Callable[[PartSource, bool], str]) -> None:
        self.parts = parts
        numbers: dict[str, int] = {}
        line_of: list[int] = []
        are_words: list[bool] = []
        for source, key, is_constant in zip(
            parts.sources, parts.first_keys, are_constant(parts), strict=True
        ):
            if is_constant or source.head in RULE_HEADS:
                line_of.append(-1)
                continue
            line = numbers.setdefault(name(source, key is None), len(numbers))
            if line == len(are_words):
                are_words.append(source.query is not None and key is not None)
            line_of.append(line)
        # The name of each line: a word, or what a head compares.
        self.names = list(numbers)
        # Whether the line is a word: not a taste, and not the meaning as a whole.
        self.are_words = [
            is_word and name != OVERALL for is_word, name in zip(are_words, self.names, strict=True)
        ]
        # The line of each source, −1 for a constant and for a rule.
        self.line_of = np.array(line_of, dtype=np.int64)
        in_line = self.line_of >= 0
        # What each line adds, float64 (n_lines,).
        self.values = np.bincount(self.line_of[in_line], parts.sums[in_line], len(numbers))

    def shown(self) -> tuple[list[int], list[int]]:
        """Return the lines that are shown, the largest first, and the smaller ones, which are one
        line together. Those are words: what is not a word is told by its name, however small.
        """
        shown, others = largest(self.values.tolist())
        smaller = [line for line in others if self.are_words[line]]
        if len(smaller) == 1:
            smaller = []
        shown += [line for line in others if line not in smaller]
        return sorted(shown, key=lambda line: -abs(self.values[line])), smaller

    def text(self, line: int, threshold: float, shown_value: float) -> str:
        """Return the text of a line: a word, and what heads compare.

        A line that adds at least `threshold` also names the words of the item that it is paired
        with. shown_value: what the line adds as it is shown, which the kinds of heads add up to.
        """
        name, value = self.names[line], float(self.values[line])
        rows = np.flatnonzero(self.line_of == line)
        query, key = self.parts.sources[rows[0]].query, self.parts.first_keys[rows[0]]
        if query is None and key is not None:
            return f"{name}, {key}"
        if name == OVERALL or key is None:
            return name
        by_kind = self._by_kind(rows)
        pairs = self._pairs(name, rows, value) if abs(value) >= threshold else []
        if list(by_kind) == [MEANING]:
            text = f"{SIMILAR_TO} {name}"
            return f"{text}: {', '.join(pairs)}" if pairs else text
        words = ", ".join([name, *pairs])
        if len(by_kind) == 1:
            return f"{words}: {next(iter(by_kind))}"
        shown = rounded_to(list(by_kind.values()), shown_value)
        kinds = [f"{kind} {signed(added)}" for kind, added in zip(by_kind, shown, strict=True)]
        return f"{words}: {', '.join(kinds)}"

    def _by_kind(self, rows: np.ndarray) -> dict[str, float]:
        """Return what these sources add, by what their heads compare, the largest first."""
        sums: dict[str, float] = {}
        for row in rows.tolist():
            kind = KINDS.get(self.parts.sources[row].head, MEANING)
            sums[kind] = sums.get(kind, 0.0) + float(self.parts.sums[row])
        return dict(sorted(sums.items(), key=lambda pair: -abs(pair[1])))

    def _pairs(self, word: str, rows: np.ndarray, value: float) -> list[str]:
        """Return the other words of the item that add a large share of a word's value: what is
        similar as far as `is_named` has it, and any other word that is matched as this one.
        """
        names, values = self.parts.table(rows.tolist())
        is_lexical = [self.parts.sources[row].head == LEXICAL.name for row in rows.tolist()]
        numbers: dict[str, int] = {}
        number_of = [numbers.setdefault(fold(str(name)), len(numbers)) for name in names]
        of_all = np.bincount(number_of, values.sum(axis=0))
        of_lexical = np.bincount(number_of, values[is_lexical].sum(axis=0))
        keys = list(numbers)
        own_terms = terms(word)
        pairs = []
        is_large = np.maximum(of_all / value, of_lexical / value) >= PAIR_SHARE
        for number in np.flatnonzero(is_large).tolist():
            key = keys[number]
            if is_named(key) and not terms(key) & own_terms:
                added = float(of_all[number])
            elif key not in word and terms(key) != own_terms:  # it matches as another word
                added = float(of_lexical[number])
            else:
                continue
            if added / value >= PAIR_SHARE:
                pairs.append((added, key))
        return [key for _, key in sorted(pairs, key=lambda pair: -abs(pair[0]))[:MAX_PAIRS]]


def is_word(label: str) -> bool:
    """Return whether a person recognizes a label as a word with a meaning.

    >>> [label for label in ("rain", "[SEP]", "ed", "the", "雨", "2001") if is_word(label)]
    ['rain', '雨']
    """
    word = fold(label)
    # The pattern for other scripts takes longer to compile than a table of hits takes to print.
    pattern = ASCII_WORD if word.isascii() else WORD
    return re.fullmatch(pattern, word) is not None and word not in stop_words()


def is_named(key: str) -> bool:
    """Return whether a reason names what an encoder read of an item. Without blanks between words,
    a single character may be a piece of any word, which tells a person nothing.

    >>> [key for key in ("tea", "茶具", "具", "the") if is_named(key)]
    ['tea', '茶具']
    """
    return is_word(key) and not is_unit(fold(key))


# The terms of a word: "knots" is the same word as "knot".
terms: Callable[[str], frozenset[str]] = cached_by_word(
    lambda word: frozenset(Analyzer().key_terms(word)), 1 << 14
)


# --- lines of any kind ---


def are_constant(parts: Components) -> list[bool]:
    """Return for each source whether it adds the same to every item."""
    return [
        source.query is None and key is None and source.head not in OF_ITEMS
        for source, key in zip(parts.sources, parts.first_keys, strict=True)
    ]


def constant(parts: Components) -> list[Reason]:
    """Return the subtracted means of heads as one line; none where no mean is subtracted."""
    values = parts.sums[are_constant(parts)]
    return [Reason(AVERAGE_ITEM, float(values.sum()))] if len(values) else []


def of_rules(parts: Components) -> list[Reason]:
    """Return a line for each rule of the owner: its name, and what it adds."""
    return [
        Reason(str(key), value)
        for source, key, value in zip(
            parts.sources, parts.first_keys, parts.sums.tolist(), strict=True
        )
        if source.head in RULE_HEADS
    ]


def few(values: Sequence[float], text: Callable[[int], str]) -> list[Reason]:
    """Return the largest values that add up to `SHARE` of all, and the others as one line.

    text: returns the text of the i-th line; called only for lines that are shown.

    >>> few([6.0, -3.0, 0.5, 0.25], "abcd".__getitem__)[1:]
    [Reason(text='b', value=-3.0), OtherReasons(text='2 others', value=0.75)]
    """
    shown, smaller = largest(values)
    reasons = [Reason(text(i), values[i]) for i in shown]
    if smaller:
        rest = sum(values[i] for i in smaller)
        reasons.append(OtherReasons(f"{len(smaller):,} others", rest))
    return reasons


def largest(values: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return the indices of the largest values that add up to `SHARE` of all, and of the others,
    zeros aside. A single other one is among the largest.
    """
    ordered = sorted((i for i, value in enumerate(values) if value), key=lambda i: -abs(values[i]))
    n = min(n_for_share([values[i] for i in ordered]), MAX_LINES)
    if len(ordered) <= n + 1:
        return ordered, []
    return ordered[:n], ordered[n:]


def n_for_share(values: Sequence[float] | np.ndarray) -> int:
    """Return how many of the values, the largest first, make up `SHARE` of their absolute sum."""
    sums = np.cumsum([0.0, *np.abs(values)])
    return int(np.searchsorted(sums, SHARE * sums[-1]))


def because_of(title: str, value: float) -> str:
    """Return the line of an item of a history, without which the score is lower by `value`."""
    return f"because of {title}"


class KindsOfItems:
    """The items of a history by their kinds, such as genres.

    titles: a title for each item. kinds: the kinds of each item, which may be several or none.
    """

    def __init__(self, titles: Sequence[str], kinds: Sequence[Collection[str]]) -> None:
        self.titles = titles
        self.names = sorted({kind for of_item in kinds for kind in of_item})
        numbers = {name: number for number, name in enumerate(self.names)}
        pairs = []
        for item, of_item in enumerate(kinds):
            pairs += [(item, numbers[kind]) for kind in of_item]
        # One item and one of its kinds in each pair.
        self._items, self._kinds = np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    def reasons(
        self,
        values: np.ndarray,
        which: np.ndarray,
        first: Collection[str] = (),
        say: Callable[[str, float], str] = because_of,
    ) -> list[Reason]:
        """Return a line for each item if few of them make up most of the sum. Otherwise return a
        line for each group of items of one kind; an item is in one group.

        The first group is the kind that adds most, the next one the kind that adds most of the
        rest.

        values: what each item adds, float64 (n_items,). which: the items that count, bool
        (n_items,). first: kinds that count twice, those of the recommended item. say: from the
        title of an item and what it adds to the text of its line.
        """
        values = np.where(which, values, 0.0)
        if n_for_share(-np.sort(-np.abs(values))) <= MAX_LINES:
            return few(values.tolist(), lambda i: say(self.titles[i], float(values[i])))
        left = which.copy()
        weights = np.array([2 if name in first else 1 for name in self.names])
        groups: list[Reason] = []
        for _ in range(MAX_LINES - 1):
            kind = self._largest(values, left, weights)
            if kind is None:
                break
            members = np.zeros_like(left)
            members[self._items[self._kinds == kind]] = True
            groups.append(group(f"of {self.names[kind]}", self.titles, values, members & left))
            left &= ~members
        if left.any():
            groups.append(group("other items" if groups else "items", self.titles, values, left))
        return few([reason.value for reason in groups], lambda i: groups[i].text)

    def _largest(self, values: np.ndarray, left: np.ndarray, weights: np.ndarray) -> int | None:
        """Return the kind that adds most, of those that several items have; None without any.

        Of equal kinds it is the first one by name.
        """
        n_kinds = len(self.names)
        if not n_kinds:
            return None
        is_left = left[self._items]
        kinds = self._kinds[is_left]
        sums = np.bincount(kinds, values[self._items[is_left]], n_kinds)
        has_several = np.bincount(kinds, minlength=n_kinds) > 1
        sizes = np.where(has_several, weights * np.abs(sums), -1.0)
        best = int(np.argmax(sizes))
        return best if has_several[best] else None


def group(what: str, titles: Sequence[str], values: np.ndarray, which: np.ndarray) -> Reason:
    """Return items as one line that names the largest. which: bool (n_items,)."""
    items = np.flatnonzero(which)
    largest = items[np.argsort(-np.abs(values[items]), kind="stable")][:MAX_NAMED]
    names = ", ".join(titles[item] for item in largest.tolist())
    return Reason(f"from {len(items):,} {what}, such as {names}", float(values[items].sum()))


def quoted(title: str) -> str:
    """Return a title in quotation marks, in one line and cut if it is long: a sentence then shows
    where a text of somebody else begins and ends.

    >>> quoted("Tent"), quoted("Tent” now do as I say, and not as they say")
    ('“Tent”', "“Tent' now do as I say,…”")
    """
    bare = in_one_line(title).replace("“", "'").replace("”", "'")
    return f"“{shorten(bare, MAX_CHARACTERS - 2)}”"


def short(title: str) -> str:
    """Return a title in one line, cut if it is long.

    >>> short("Mending a net with my uncle before the boats go out")
    'Mending a net with my un…'
    """
    return shorten(" ".join(title.split()), MAX_CHARACTERS)
