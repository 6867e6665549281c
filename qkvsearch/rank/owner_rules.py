"""The owner's rules as a build reads them, and what they do to scores.

A boost adds to the scores of the items that meet its condition. It changes the order of hits, and
makes no item a hit. A pin brings items to the top for a query, and a bury to the end, after
everything else. A pinned item is a hit, whatever its words are. A filter of the user is obeyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.deadline import DeadlineError
from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import released
from qkvsearch.errors import DamagedError, QkvError, listed_names
from qkvsearch.heads.rule_heads import BOOSTS, PINS
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores, plus
from qkvsearch.store import StoredCatalog
from qkvsearch.store.rules_file import BOOST, PIN, Rule, RulesFile
from qkvsearch.tables.ids import id_text

# How far pinned items are ahead of what is below them, and buried ones behind what is above.
DISTANCE = 1.0
# What lines of the reasons call pins and buries without a name.
PINNED, BURIED = "pinned for this query", "placed last for this query"


def query_key(query: str) -> str:
    """Return a query as rules compare it: letters of any case, with accents or without, and with
    one blank between words.

    >>> query_key("  Café  TENT ") == query_key("cafe tent")
    True
    """
    return " ".join(fold(query).split())


class Boost(NamedTuple):
    """A boost, as a build reads it."""

    name: str
    # bool (n_items,).
    items: np.ndarray
    by: float


class Placed(NamedTuple):
    """An item that a query pins or buries."""

    row: int
    # The line of the reasons.
    name: str


@dataclass(frozen=True)
class QueryRules:
    """What rules do to the answer to one question."""

    boosts: Sequence[Boost] = ()
    # What all boosts add, in standard deviations, float32 (n_items,); None without any.
    boost_values: np.ndarray | None = None
    # In the order in which they are placed.
    pinned: Sequence[Placed] = ()
    buried: Sequence[Placed] = ()
    # Which rules were skipped, and why.
    notes: Sequence[str] = ()

    def boosted(self, scores: Scores, deviation: float = 1.0) -> Scores:
        """Add the boosts to scores. deviation: the standard deviation of these; the heads of a text
        are in standard deviations already.
        """
        if self.boost_values is None:
            return scores

        def parts(position: int) -> Components:
            return Components.of(
                ScoreComponent(BOOSTS.name, None, boost.name, deviation * boost.by)
                for boost in self.boosts
                if boost.items[position]
            )

        values = np.float32(deviation) * self.boost_values
        # A boost is no evidence that an item answers.
        return plus(scores, BOOSTS.name, values, parts, is_evidence=False)

    @cached_property
    def placed_rows(self) -> np.ndarray:
        """The rows of the items that are pinned or buried, int64."""
        rows = [placed.row for placed in (*self.pinned, *self.buried)]
        return np.array(rows, dtype=np.int64)

    def pinned_rows(self, mask: np.ndarray) -> list[int]:
        """Return the rows of the pinned items that may be hits. mask: bool (n_items,)."""
        return [placed.row for placed in self.pinned if mask[placed.row]]

    def placed(self, scores: Scores | None, mask: np.ndarray) -> Scores | None:
        """Bring pinned items to the top, and buried ones to the end.

        scores: None where no head knows the query; then the pinned items are the only hits. mask:
        bool (n_items,), the items that may be hits.
        """
        first = [placed for placed in self.pinned if mask[placed.row]]
        hits = np.zeros_like(mask) if scores is None else scores.allowed(mask)
        last = [placed for placed in self.buried if hits[placed.row]]
        if not first and not last:
            return scores
        before = np.zeros(len(mask), dtype=np.float32) if scores is None else scores.scores
        values = np.zeros(len(mask), dtype=np.float32)
        for row, target in _targets(before, hits, first, last).items():
            values[row] = target - before[row]
        names = {placed.row: placed.name for placed in (*first, *last)}

        def parts(position: int) -> Components:
            if position not in names:
                return Components.of([])
            value = float(values[position])
            return Components.of([ScoreComponent(PINS.name, None, names[position], value)])

        is_pinned = np.zeros(len(mask), dtype=bool)
        is_pinned[[placed.row for placed in first]] = True
        if scores is None:
            return Scores(PINS.name, values, parts, covered=is_pinned)
        covered, notes, is_answer = scores.covered, scores.notes, scores.is_answer
        if covered is not None and first:
            if not covered.any():
                # That there is no hit is wrong now.
                notes, is_answer = [], True
            covered = covered | is_pinned
        return replace(
            plus(scores, PINS.name, values, parts, is_evidence=False),
            covered=covered,
            notes=notes,
            is_answer=is_answer,
            raw=scores.raw,
            best=scores.best,
            near=scores.near,
            has_estimates=scores.has_estimates,
        )


NO_RULES = QueryRules()


def _targets(
    scores: np.ndarray, hits: np.ndarray, first: Sequence[Placed], last: Sequence[Placed]
) -> dict[int, float]:
    """Return the scores that place items as they should be, by row.

    An item that is far enough ahead, or behind, by itself keeps its score.
    """
    others = hits.copy()
    others[[placed.row for placed in (*first, *last)]] = False
    of_others = scores[others]
    targets: dict[int, float] = {}
    top, bottom = 0.0, 0.0
    if len(of_others):
        top, bottom = float(of_others.max()), float(of_others.min())
    for placed in reversed(first):
        top = targets[placed.row] = max(float(scores[placed.row]), top + DISTANCE)
    for placed in last:
        bottom = targets[placed.row] = min(float(scores[placed.row]), bottom - DISTANCE)
    return targets


@dataclass(frozen=True)
class OwnerRules:
    """All rules of a workspace, as one build reads them."""

    rules: Sequence[Rule]
    boosts: Sequence[Boost]
    # By `query_key`.
    pinned: Mapping[str, Sequence[Placed]]
    buried: Mapping[str, Sequence[Placed]]
    # By the number of a rule, why it or a part of it is skipped.
    problems: Mapping[int, str] = field(default_factory=dict)
    # The numbers of the rules of which a part counts.
    partial: frozenset[int] = frozenset()

    @classmethod
    def of(cls, rules: Sequence[Rule], catalog: StoredCatalog) -> OwnerRules:
        """Read the rules for a build. What it lacks becomes a problem of the rule."""
        boosts: list[Boost] = []
        pinned: dict[str, list[Placed]] = {}
        buried: dict[str, list[Placed]] = {}
        problems: dict[int, str] = {}
        partial: set[int] = set()
        for rule in rules:
            if rule.kind != BOOST:
                by_query = pinned if rule.kind == PIN else buried
                of_query = by_query.setdefault(query_key(str(rule.query)), [])
                if gone := _place(rule, catalog, of_query):
                    verb = "is" if len(gone) == 1 else "are"
                    problems[rule.number] = f"{listed_names(gone)} {verb} not in the catalog"
                if 0 < len(gone) < len(rule.items):
                    partial.add(rule.number)
                continue
            try:
                boosts.append(_read_boost(rule, catalog))
            except (DamagedError, DeadlineError):
                raise
            except QkvError as error:
                problems[rule.number] = str(error)
        return cls(rules, boosts, pinned, buried, problems, frozenset(partial))

    @cached_property
    def of_any_question(self) -> QueryRules:
        """What they do to a question without a query: the boosts alone."""
        notes = [self._note(rule) for rule in self.rules if self._is_skipped(rule, BOOST)]
        if not self.boosts:
            return QueryRules(notes=notes)
        values = np.zeros(len(self.boosts[0].items), dtype=np.float32)
        for boost in self.boosts:
            values += np.float32(boost.by) * boost.items
        return QueryRules(self.boosts, values, notes=notes)

    def of_query(self, texts: Iterable[str]) -> QueryRules:
        """Return what they do to a search. texts: the query as it was typed, and as it was read."""
        keys = dict.fromkeys(map(query_key, texts))
        notes = [
            self._note(rule)
            for rule in self.rules
            if self._is_skipped(rule) and query_key(rule.query or "") in keys
        ]
        shared = self.of_any_question
        return replace(
            shared,
            pinned=_of_keys(self.pinned, keys),
            buried=_of_keys(self.buried, keys),
            notes=[*shared.notes, *notes],
        )

    def _is_skipped(self, rule: Rule, kind: str | None = None) -> bool:
        is_asked = rule.kind == kind if kind is not None else rule.kind != BOOST
        return is_asked and rule.number in self.problems

    def _note(self, rule: Rule) -> str:
        part = " in part" if rule.number in self.partial else ""
        return f"Rule {rule.number} is skipped{part}: {self.problems[rule.number]}."


def _of_keys(by_query: Mapping[str, Sequence[Placed]], keys: Iterable[str]) -> list[Placed]:
    """Return the items that queries with these keys place, each once."""
    by_row: dict[int, Placed] = {}
    for key in keys:
        for placed in by_query.get(key, ()):
            by_row.setdefault(placed.row, placed)
    return list(by_row.values())


def _read_boost(rule: Rule, catalog: StoredCatalog) -> Boost:
    """Return a boost. Raises `QkvError` for a condition that the catalog cannot answer."""
    items = items_under(catalog, str(rule.where), "its condition")
    return Boost(boost_name(rule), items, float(rule.by or 0.0))


def items_under(catalog: StoredCatalog, condition: str, what: str) -> np.ndarray:
    """Return the items for which the condition of a boost holds, bool (n_items,). what: its name in
    an error. Raises `QkvError`.
    """
    try:
        with released():  # what a condition compares may take seconds
            return catalog.conditions.mask(condition)
    except QkvError as error:
        if type(error) is not QkvError:  # damage, and an answer that takes too long
            raise
        raise QkvError(str(error).replace("`where`", what, 1)) from None


def _place(rule: Rule, catalog: StoredCatalog, of_query: list[Placed]) -> list[str]:
    """Append the items of a pin or a bury to those of its query, each once, and return the ids that
    are not in the catalog.
    """
    ids = catalog.ids("items")
    unnamed = PINNED if rule.kind == PIN else BURIED
    known = {placed.row for placed in of_query}
    gone = []
    for id_ in rule.items:
        row = ids.find(id_)
        if row < 0:
            gone.append(id_text(id_))
        elif row not in known:
            known.add(row)
            of_query.append(Placed(row, rule.name or unnamed))
    return gone


def boost_name(rule: Rule) -> str:
    """Return what lines of the reasons call a boost: its name, or its condition."""
    return rule.name or " ".join(str(rule.where).split())


class RuleBook:
    """The rules of a workspace, read again when they have changed."""

    def __init__(self, workspace: Path, catalog: StoredCatalog) -> None:
        self.file = RulesFile(workspace)
        self.catalog = catalog
        # The state of the file, and the rules of that state.
        self._read: tuple[tuple[int, ...], OwnerRules] | None = None

    def current(self) -> OwnerRules | None:
        """Return the rules as they are now; None without any. Raises `DamagedError`."""
        state = self.file.state()
        if state is None:
            return None
        read = self._read
        if read is None or read[0] != state:
            read = self._read = state, OwnerRules.of(self.file.read().rules, self.catalog)
        return read[1] if read[1].rules else None
