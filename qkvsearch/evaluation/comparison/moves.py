"""Why an item rose or fell between two answers to a query.

An item ranks higher in one answer than in the other because some hits are above it only in the
other. The reason tells what became of these hits. Some left or joined the catalog, or are hits in
one answer only: then that is the reason. Otherwise it is the scores. The item's lead over the other
hits is its score minus their mean. A lead is a sum, of what each head adds for each word of the
query, and so is the change of a lead. The largest part of the change is the reason, and it says
whether its head counts more or less than before. What is subtracted from all items alike cancels
out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from qkvsearch._utils.shown_sums import DECIMALS, signed
from qkvsearch.errors import Count
from qkvsearch.evaluation.comparison.sides import Group, SideAnswer
from qkvsearch.heads.dense_head import MEANING
from qkvsearch.heads.rule_heads import PINS, RULE_HEADS
from qkvsearch.rank.reasons import KINDS, short
from qkvsearch.tables.ids import Id

# A word is named if it has at least this share of what its head added to the change of a lead.
WORD_SHARE = 0.5
# A smaller change of a lead may be rounding.
NEGLIGIBLE = 1e-5
# Weights of a head that differ by a smaller share of the larger one are the same.
SAME_WEIGHT = 0.01
# A value that would be shown as 0 has more decimals, at most so many.
MAX_DECIMALS = 8
EQUAL_SCORES = "equal scores, except for rounding"


@dataclass(frozen=True)
class Move:
    """An item that has another rank in the second answer than in the first.

    >>> Move("7", "Red tent", before=None, after=3, by="new in the catalog").to_dict()
    {'id': '7', 'title': 'Red tent', 'from': None, 'to': 3, 'by': 'new in the catalog'}
    """

    id: Id
    title: str
    # The ranks; None where the item is not among the ten.
    before: int | None
    after: int | None
    # The reason.
    by: str
    # What each head added, for each word of the query, to the change of the item's lead over the
    # items that it passed or that passed it, `others`. Empty where scores are not the reason.
    parts: Mapping[Group, float] | None = None
    others: Sequence[str] = ()

    @property
    def rose(self) -> bool:
        """Whether the item ranks higher in the second answer."""
        return _is_higher(self.after, self.before)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return {
            "id": self.id,
            "title": self.title,
            "from": self.before,
            "to": self.after,
            "by": self.by,
        }


def _is_higher(rank: int | None, other: int | None) -> bool:
    """Return whether one rank is higher than another; None is below all ranks."""
    return rank is not None and (other is None or rank < other)


class Wording(NamedTuple):
    """What reasons say of one direction."""

    # Of an item that one catalog alone has.
    one_catalog: str
    # Of an item that meets the conditions of the query in one build alone.
    conditions: str
    # Of an item that is a hit in one answer alone, whatever its score.
    average: str
    # Of all items, where one answer has no hits: no word is known, nothing answers, none is left.
    no_word: str
    no_answer: str
    none_left: str
    # Of other items that stand above it in one answer alone: one of them, or several.
    others_in_catalog: str
    others_as_hits: str
    # Of a word of the query.
    found: str


RISE = Wording(
    one_catalog="new in the catalog",
    conditions="it meets the conditions of the query only now",
    average="before, no head scored it above the average item",
    no_word="before, no item had any of the words",
    no_answer="before, nothing in the catalog answered the query",
    none_left="before, no item was left that answered",
    others_in_catalog="above it left the catalog|above it left the catalog",
    others_as_hits="above it is no hit any more|above it are no hits any more",
    found="now found in",
)
FALL = Wording(
    one_catalog="not in the catalog any more",
    conditions="it does not meet the conditions of the query any more",
    average="no head scores it above the average item any more",
    no_word="now no item has any of the words",
    no_answer="now nothing in the catalog answers the query",
    none_left="now no item is left that answers",
    others_in_catalog="is new in the catalog, and above it|are new in the catalog, and above it",
    others_as_hits="was no hit before, and is above it|were no hits before, and are above it",
    found="no longer found in",
)


class MoveReason(NamedTuple):
    """A reason, and where scores are the reason the parts of the change of a lead."""

    text: str
    parts: Mapping[Group, float] | None = None
    others: Sequence[str] = ()


def moves(before: SideAnswer, after: SideAnswer) -> list[Move]:
    """Return the items whose ranks differ: by their ranks after, then those that left the hits."""
    items = [*after.items, *(item for item in before.items if item not in after.hits)]
    return [
        _Pair(item, before, after).move() for item in items if before.rank(item) != after.rank(item)
    ]


class _Pair:
    """An item that two answers rank differently."""

    def __init__(self, item: str, before: SideAnswer, after: SideAnswer) -> None:
        self.item, self.before, self.after = item, before, after
        self.ranks = before.rank(item), after.rank(item)
        self.rises = _is_higher(after.rank(item), before.rank(item))
        self.wording = RISE if self.rises else FALL
        # The answer in which the item ranks higher, and the other.
        self.higher, self.lower = (after, before) if self.rises else (before, after)

    def move(self) -> Move:
        """Return the ranks of the item with the reason."""
        hit = self.after.hits.get(self.item) or self.before.hits[self.item]
        reason = self._reason()
        return Move(
            id=hit.id,
            title=hit.title,
            before=self.ranks[0],
            after=self.ranks[1],
            by=reason.text,
            parts=reason.parts,
            others=reason.others,
        )

    def _reason(self) -> MoveReason:
        wording = self.wording
        if self.lower.row(self.item) < 0:
            return MoveReason(wording.one_catalog)
        if self.lower.is_silent:
            return MoveReason(self._pinned() or self._why_silent())
        if not self.lower.meets_conditions(self.item):
            return MoveReason(wording.conditions)
        if not self.lower.is_ranked(self.item):
            return MoveReason(self._pinned() or self._why_no_hit())

        # Those that are above the item only where it ranks lower.
        above = set(self.higher.above(self.item))
        passed = [other for other in self.lower.above(self.item) if other not in above]
        gone = [other for other in passed if self.higher.row(other) < 0]
        ranked = [other for other in passed if other not in gone and self.higher.is_ranked(other)]
        no_hits = [other for other in passed if other not in gone and other not in ranked]
        most = max(len(gone), len(no_hits), len(ranked))
        if len(gone) == most:
            return MoveReason(self._said_of(gone, wording.others_in_catalog))
        if len(no_hits) == most:
            return MoveReason(self._said_of(no_hits, wording.others_as_hits))
        return self._by_scores(ranked)

    # --- reasons that are no scores ---

    def _pinned(self) -> str:
        """Return the rule that makes the item a hit in one answer alone; empty without one."""
        rules = [group.word for group in self.higher.sums(self.item) if group.head == PINS.name]
        return self._of_rule(rules[0], PINS.name) if rules else ""

    def _why_silent(self) -> str:
        """Return why one answer has no hits at all."""
        typed = [*self.after.readings, *self.before.readings]
        for reading in filter(None, map(self._reading, typed)):
            return reading
        if self.lower.knows_no_word:
            return self.wording.no_word
        return self.wording.no_answer if self.lower.is_unanswered else self.wording.none_left

    def _why_no_hit(self) -> str:
        """Return why the item is ranked in one answer alone, and which word made the difference."""
        for word in self.higher.words:
            if found := self._found(word):
                return f"{self.wording.average}: {found}"
        return self.wording.average

    def _said_of(self, others: Sequence[str], text: str) -> str:
        return f"{self._named(others)} {Count(len(others)):{text}}"

    def _named(self, others: Sequence[str]) -> str:
        """Return the title of a single item, or the number of several."""
        if len(others) > 1:
            return f"{len(others)} items"
        return f"“{short(self.lower.hits[others[0]].title)}”"

    def _reading(self, word: str) -> str:
        """Return how differently the two builds read a word of the query; empty if they do not."""
        before, after = self.before.readings.get(word), self.after.readings.get(word)
        if before == after:
            return ""
        if after is not None:
            return f"“{word}” is now read as “{after}”"
        return f"“{word}” is no longer read as “{before}”"

    def _found(self, word: str) -> str:
        """Return in which columns only the answer that ranks the item higher finds it by a word, or
        by the longest piece of the word; empty if in none.
        """
        found = self.higher.found(self.item, word) - self.lower.found(self.item, word)
        if not found:
            return ""
        longest = max(sorted(each.word for each in found), key=len)
        columns = sorted(each.column for each in found if each.word == longest)
        return f"“{longest}” is {self.wording.found} {', '.join(columns)}"

    # --- scores ---

    def _by_scores(self, others: Sequence[str]) -> MoveReason:
        """Return the largest part of the change of the item's lead over others."""
        parts = self._change(others)
        total = sum(parts.values())
        if abs(total) <= NEGLIGIBLE * max(1.0, sum(map(abs, parts.values()))):
            return MoveReason(EQUAL_SCORES, parts, others)
        sign = 1 if self.rises else -1
        head, of_head = max(_by_head(parts).items(), key=lambda pair: sign * pair[1])
        of_words = {word: value for (name, word), value in parts.items() if name == head}
        word = max(of_words, key=lambda word: sign * of_words[word])
        if head in RULE_HEADS:
            text, value = self._of_rule(word, head), of_words[word]
        elif word is None or sign * of_words[word] < WORD_SHARE * sign * of_head:
            text, value = self._kind(head), of_head
        else:
            text, value = self._of_word(word, head), of_words[word]
        against = self._named(others)
        return MoveReason(f"{text}: {_shown(value)} against {against}", parts, others)

    def _change(self, others: Sequence[str]) -> dict[Group, float]:
        """Return what each group adds to the change of the item's lead over the mean of others."""
        change: dict[Group, float] = {}
        for answer, sign in ((self.after, 1.0), (self.before, -1.0)):
            for group, value in answer.sums(self.item).items():
                change[group] = change.get(group, 0.0) + sign * value
            for other in others:
                for group, value in answer.sums(other).items():
                    change[group] = change.get(group, 0.0) - sign * value / len(others)
        return change

    def _of_word(self, word: str, head: str) -> str:
        """Return a word with its head, and what became of the word."""
        what = self._reading(word) or f"“{word}”"
        text = f"{what}, {self._kind(head)}"
        found = self._found(word)
        return f"{text}; {found}" if found else text

    def _of_rule(self, name: str | None, head: str) -> str:
        """Return a rule of the owner by its name, and whether rules count in one answer alone."""
        return f"{KINDS[head]} “{name}”{self._counts(head)}"

    def _kind(self, head: str) -> str:
        """Return what a head compares, in plain words, and whether it counts more or less now."""
        kind = KINDS.get(head, MEANING)
        if kind == MEANING:  # there may be several
            kind = f"{kind} by {head}"
        return f"{kind}{self._counts(head)}"

    def _counts(self, head: str) -> str:
        """Return whether a head counts more or less now; nothing where it counts the same."""
        if head not in self.after.heads:
            return ", which no longer counts"
        if head not in self.before.heads:
            return ", which counts only now"
        before, after = (side.weights.get(head, 0.0) for side in (self.before, self.after))
        if abs(after - before) <= SAME_WEIGHT * max(before, after):
            return ""
        return f", which counts {'more' if after > before else 'less'} now"


def _shown(value: float) -> str:
    """Return a value with its sign, and with a digit that is not 0.

    >>> _shown(0.25), _shown(-0.00012)
    ('+0.250', '-0.0001')
    """
    decimals = DECIMALS
    while decimals < MAX_DECIMALS and not float(signed(value, decimals)):
        decimals += 1
    return signed(value, decimals)


def _by_head(parts: Mapping[Group, float]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for group, value in parts.items():
        sums[group.head] = sums.get(group.head, 0.0) + value
    return sums
