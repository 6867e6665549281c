"""Why an item is recommended: what each item of the history adds to its score."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.query_lock import pause
from qkvsearch.heads.rule_heads import RULE_HEADS
from qkvsearch.models.recommend_heads import HEADS
from qkvsearch.models.user_history import History
from qkvsearch.rank.questions import NEXT_ITEM
from qkvsearch.rank.ranking import Ranking
from qkvsearch.rank.reasons import KINDS, SIMILAR_TO, KindsOfItems, Reason, of_rules, quoted
from qkvsearch.rank.recommender import TEXT
from qkvsearch.scores.components import OTHERS, Components, ScoreComponent
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.column_types import type_named

# A longer text describes an item; it is not the name of a kind.
MAX_KIND_LENGTH = 40


# What an item of the history says for a hit, as `how` in `because`, and the line about it:
#   because  without the item the score is lower by exactly what it adds
#   people   users of the log who have the item have the hit as well
#   less     they have it less often
#   new      nobody has the hit yet: it reads like what they have
#   later    they have the hit after the item
#   similar  the texts are alike; no users are known
LINES = {
    "because": "because of {title}",
    "people": "people who {did} {title} also {did} this",
    "less": "people who {did} {title} {did} this less",
    "new": "people who {did} {title} {did} what reads like this",
    "later": "people who {did} {title} {did} this later",
    "similar": f"{SIMILAR_TO} {{title}}",
}
# What `how` is for a boost of the owner, which has no sentence but its name.
RULE = "rule"
# What people did, where they said what they like; and a word for all that a log may hold.
LIKED, CHOSE = "liked", "chose"


def entry_line(entry: Mapping[str, Any]) -> str:
    """Return the line of an item of the history, by its entry in `because`."""
    return LINES[entry["how"]].format(title=entry["title"], did=entry.get("did", LIKED))


# What people did, by the events of a log that say so.
DONE = {
    LIKED: ("like", "liked", "favorite", "favourite", "喜欢", "喜歡"),
    "bought": (
        "purchase",
        "purchased",
        "buy",
        "bought",
        "order",
        "ordered",
        "sale",
        "购买",
        "購買",
    ),
    "watched": ("watch", "watched", "观看", "觀看"),
    "played": ("play", "played", "播放"),
    "read": ("read",),
    "viewed": ("view", "viewed", "pageview", "浏览", "瀏覽"),
}


def what_people_did(facts: Mapping[str, Any]) -> str:
    """Return what the people of a log did with its items: "liked" by its ratings, what its only
    event says, otherwise "chose".

    facts: of the build, which knows the events that an option gave weights.

    >>> column = {"role": "event", "convention": '{"purchase": 5, "refund": -5}'}
    >>> what_people_did({"interaction_columns": [column]}), what_people_did({})
    ('bought', 'chose')
    """
    weights: dict[str, float] = {}
    for column in facts.get("interaction_columns") or ():
        if column["role"] == "rating":
            return LIKED
        if column["role"] == "event" and column["convention"]:
            weights |= json.loads(column["convention"])
    events = [event for event, weight in weights.items() if weight > 0]
    for did, names in DONE.items():
        if events and set(events) <= set(names):
            return did
    return CHOSE


@dataclass(frozen=True)
class Speaker:
    """What is said of the items of one history, as reasons for hits."""

    history: History
    # What people did with the items.
    did: str
    # How many users have each item, (n_items,); None without a log.
    item_counts: np.ndarray | None

    def how(self, hit: int, parts: Components, value: float) -> str:
        """Return what an item of the history that adds `value` says for a hit, one of `LINES`.

        hit: its row. parts: of its score.
        """
        if holds_by_removal(self.history, parts):
            return "because"
        heads = {source.head for source in parts.sources}
        if TEXT in heads:
            return "similar"
        if self.item_counts is not None and not self.item_counts[hit]:
            return "new"
        if value < 0:
            return "less"
        return "later" if NEXT_ITEM in heads else "people"

    def line(self, title: str, how: str) -> str:
        """Return the line of an item of the history."""
        return LINES[how].format(title=title, did=self.did)


def holds_by_removal(history: History, parts: Components) -> bool:
    """Return whether the score without an item of the history is lower by what the item adds. It is
    by neighbours alone; with other parts a removal also changes what the other items add.
    """
    if history.is_recent:
        return False
    heads = {source.head for source in parts.sources}
    exact = {name for name, head in HEADS.items() if head.holds_by_removal}
    return bool(heads) and heads <= exact


# --- `because` of each hit ---


def with_reasons(
    ranking: Ranking,
    speaker: Speaker,
    catalog: StoredCatalog,
    because: int | None = None,
) -> Ranking:
    """Return the ranking with `because` in each hit: what each item of the history adds to the
    score, what it says for the hit (`how`), and whether the score is lower by that without the item
    (`by_removal`); and, without an id, what damping, diversity, a boost and a constant add. A hit
    that rests on one item of the history has its id as `rests_on`.

    because: how many items of the history are listed, those that add most, with the others as one
    entry; all for None.
    """
    ids, titles = catalog.names(speaker.history.positions)
    title_of = dict(zip(ids, titles, strict=True))
    reasons, rests_on = [], []
    for index in range(len(ranking)):
        pause()
        parts = ranking.parts(index)
        entries = _Entries(title_of, speaker, int(ranking.positions[index]), parts)
        by_item = parts.by_query()
        rests_on.append(main_item(by_item))
        if because is None:
            reasons.append([entries.of(part) for part in by_item.ordered()])
        else:
            reasons.append(entries.largest(by_item, because))
    return ranking.annotated(because=reasons, rests_on=rests_on)


def main_item(by_item: Components) -> Any:
    """Return the id of the item of the history that a score rests on: the one whose part is more
    than half of the sum of the positive parts of all items. None where no part is that large.

    by_item: the score's parts, one for each item of the history.

    >>> parts = [ScoreComponent("h", id_, None, value) for id_, value in [("a", 3), ("b", 2)]]
    >>> main_item(Components.of(parts)), main_item(Components.of(parts[1:]))
    ('a', 'b')
    >>> as_much = [*parts[:1], parts[0]._replace(query="d"), parts[0]._replace(query="e", value=-4)]
    >>> main_item(Components.of(as_much)) is None  # what counts against it is no part of the sum
    True
    """
    values = {
        source.query: value
        for source, value in zip(by_item.sources, by_item.sums.tolist(), strict=True)
        if source.query is not None and value > 0
    }
    largest = max(values, key=values.__getitem__, default=None)
    if largest is None or values[largest] <= sum(values.values()) / 2:
        return None
    return largest


class _Entries:
    """The entries of a hit's `because`. title_of: the titles of the history's items, by id."""

    def __init__(
        self, title_of: dict[Any, str], speaker: Speaker, hit: int, parts: Components
    ) -> None:
        self.title_of, self.speaker = title_of, speaker
        # By whether an item adds something or takes it away.
        self.how = {sign: speaker.how(hit, parts, sign) for sign in (1, -1)}

    def of(self, part: ScoreComponent) -> dict[str, Any]:
        """Return the entry of an item of the history, or of what belongs to no item."""
        if part.head in RULE_HEADS:
            boost = {"id": None, "title": part.key, "contribution": part.value}
            return {**boost, "how": RULE}
        title = self.title_of.get(part.query, part.head)
        entry = {"id": part.query, "title": title, "contribution": part.value}
        if part.query is not None:
            how = self.how[-1 if part.value < 0 else 1]
            entry |= {"how": how, "by_removal": how == "because"}
            if self.speaker.did != LIKED:
                entry["did"] = self.speaker.did
        return entry

    def largest(self, parts: Components, n: int) -> list[dict[str, Any]]:
        """Return the entries of the `n` items that add most and of all that belongs to no item,
        then one entry for the other items.
        """
        is_item = np.array([source.query is not None for source in parts.sources], dtype=bool)
        largest, n_others, value_of_others = parts.only(is_item).largest(n)
        listed = [*largest, *parts.only(~is_item)]
        entries = [self.of(part) for part in sorted(listed, key=lambda part: -abs(part.value))]
        if n_others:
            others = {"id": None, "title": OTHERS, "contribution": value_of_others}
            entries.append({**others, "items": n_others})
        return entries


# --- reasons in words ---


class HistoryReasons:
    """A `Reasoning` by groups of the history's items that share a kind, such as a genre, if
    possible with the recommended item too.

    shown: how titles and kinds are shown.
    """

    def __init__(
        self, speaker: Speaker, catalog: StoredCatalog, shown: Callable[[str], str] = str
    ) -> None:
        self.speaker, self.catalog, self.shown = speaker, catalog, shown
        self.positions = speaker.history.positions

    def quoting(self) -> HistoryReasons:
        """Return the same with titles and kinds in quotation marks."""
        return self._quoting

    @cached_property
    def _quoting(self) -> HistoryReasons:
        # Made once: it reads the titles and kinds of the history for all hits.
        return HistoryReasons(self.speaker, self.catalog, quoted)

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        """The index of each item in the history, by id."""
        ids, _ = self.catalog.names(self.positions)
        return {id_: number for number, id_ in enumerate(ids)}

    @cached_property
    def _kinds(self) -> KindsOfItems:
        _, titles = self.catalog.names(self.positions)
        return KindsOfItems(list(map(self.shown, titles)), self._item_kinds(self.positions))

    def _item_kinds(self, positions: Sequence[int] | np.ndarray) -> list[list[str]]:
        return [list(map(self.shown, kinds)) for kinds in item_kinds(self.catalog, positions)]

    def __call__(self, position: int, parts: Components, score: float) -> list[Reason]:
        """Return the reasons for the score of the item in this row, from the parts of the score."""
        # The item of the history that each source is; −1 for what belongs to none.
        numbers = [self._numbers.get(source.query, -1) for source in parts.sources]
        number_of = np.array(numbers, dtype=np.int64)
        is_item = number_of >= 0
        values = np.bincount(number_of[is_item], parts.sums[is_item], len(self.positions))
        which = np.zeros(len(self.positions), dtype=bool)
        which[number_of[is_item]] = True
        (kinds,) = self._item_kinds([position])

        def line(title: str, value: float) -> str:
            return self.speaker.line(title, self.speaker.how(position, parts, value))

        of_items = self._kinds.reasons(values, which, kinds, line)
        of_no_item = [
            Reason(KINDS[parts.sources[row].head], float(parts.sums[row]))
            for row in np.flatnonzero(~is_item).tolist()
            if parts.sources[row].head not in RULE_HEADS
        ]
        return [*of_items, *of_no_item, *of_rules(parts)]


def item_kinds(catalog: StoredCatalog, positions: Sequence[int] | np.ndarray) -> list[list[str]]:
    """Return the kinds of each item: entries of its lists and its short texts, except id and title,
    such as its genres and its channel.
    """
    columns = [
        column
        for column in catalog.catalog_columns
        if type_named(column.type).is_text and column.stored not in ("id", "title")
    ]
    kinds_of_items = []
    for row in catalog.cells(positions, [column.stored for column in columns]):
        texts: list[str] = []
        for column, cell in zip(columns, row, strict=True):
            if cell is not None:
                texts += type_named(column.type).entries(cell)
        kinds = [text for text in texts if 0 < len(text) <= MAX_KIND_LENGTH]
        kinds_of_items.append(list(dict.fromkeys(kinds)))
    return kinds_of_items
