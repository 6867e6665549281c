"""Compare the answers of two sides to the same queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path
from statistics import fmean
from typing import Any

from qkvsearch._utils.callbacks import Progress
from qkvsearch.errors import Count, QkvError, listed_names, quantity
from qkvsearch.evaluation.comparison.moves import Move, moves
from qkvsearch.evaluation.comparison.sides import Side, SideAnswer
from qkvsearch.evaluation.made_queries.kinds import make_queries
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.tables.judgements import Queries, as_queries
from qkvsearch.terminal import html_table

# So many queries of each kind are made where no file is given.
PER_KIND = 50
# At most this many names are in a note.
MAX_NAMES = 3
# The rows that a notebook displays.
DISPLAYED_ROWS = 20
# The fields of a row about an item that rose or fell.
FIELDS = ("query", "text", "kept", "id", "title", "from", "to", "by")
# The shares that `by_share` counts, without overlap: 100%, 90–99%, and so on.
SHARES = ("100%", *(f"{tenth}0–{tenth}9%" for tenth in range(9, 0, -1)), "0–9%")
# What a share may be off.
ROUNDING = 1e-9


@dataclass(frozen=True)
class ComparedSide:
    """What is said of one side."""

    # The name of the build.
    id: str
    # When it was made, in UTC.
    created: str
    items: int
    # The heads that were asked for; None for all.
    heads: list[str] | None
    # How many rules of the owner applied; None where they were to be left out.
    rules: int | None = 0

    @classmethod
    def of(cls, side: Side) -> ComparedSide:
        snapshot = side.build.snapshot
        heads = None if side.heads is None else list(side.heads)
        rules = side.build.rules
        n_rules = 0 if rules is None else len(rules.rules)
        return cls(
            snapshot.name,
            snapshot.created,
            side.build.n_items,
            heads,
            n_rules if side.rules else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, without the heads where all answer, and without the number of
        rules where there are none.
        """
        fields = {"id": self.id, "created": self.created, "items": self.items}
        if self.heads is not None:
            fields["heads"] = self.heads
        if self.rules != 0:
            fields["rules"] = self.rules or 0
        return fields

    @property
    def rules_text(self) -> str:
        """Whether the owner's rules applied, for people; empty where there are none."""
        if self.rules is None:
            return "no rules"
        return quantity(self.rules, "rule") if self.rules else ""


@dataclass(frozen=True)
class ChangedQuery:
    """A query with other hits, or the same ones in another order."""

    id: str
    text: str
    # The share of the hits before that are among the hits after; None if there were no hits before.
    kept: float | None
    moves: Sequence[Move]

    @property
    def rose(self) -> list[Move]:
        """The items that rank higher than before, or are new among the hits."""
        return [move for move in self.moves if move.rose]

    @property
    def fell(self) -> list[Move]:
        """The items that rank lower than before, or left the hits."""
        return [move for move in self.moves if not move.rose]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return {
            "id": self.id,
            "text": self.text,
            "kept": self.kept,
            "rose": [move.to_dict() for move in self.rose],
            "fell": [move.to_dict() for move in self.fell],
        }


@dataclass(frozen=True, repr=False)
class Comparison:
    """What differs between two sides."""

    before: ComparedSide
    after: ComparedSide
    # The share of the ten hits that stayed, by the id of each query; None where there were none.
    shares: Mapping[str, float | None]
    # The queries whose hits or whose order changed.
    queries: Sequence[ChangedQuery]
    # Sentences for people about what does not count.
    notes: Sequence[str] = ()

    def __repr__(self) -> str:
        return f"<Comparison: {self.summary}>"

    def _repr_html_(self) -> str:
        rows = [list(row.values()) for row in self.to_records()[:DISPLAYED_ROWS]]
        return html_table(self.summary, FIELDS, rows, self.notes)

    @property
    def asked(self) -> int:
        """How many queries were asked."""
        return len(self.shares)

    @property
    def kept(self) -> float:
        """The mean share of the ten hits that stayed, over the queries that had hits; 1 where none
        had any, since nothing can be lost.
        """
        shares = [share for share in self.shares.values() if share is not None]
        return fmean(shares) if shares else 1.0

    @property
    def changed(self) -> int:
        """How many queries have other hits, or the same ones in another order."""
        return len(self.queries)

    @property
    def summary(self) -> str:
        """One sentence.

        >>> side = ComparedSide("b1", "2026-01-01", 12, None)
        >>> Comparison(side, side, {"q1": 1.0, "q2": 0.5}, []).summary
        '75.0% of the hits stayed; 0 of 2 queries changed.'
        """
        # Rounded down: 100% are all of them.
        percent = floor(1000 * self.kept + ROUNDING) / 10
        return (
            f"{percent:.1f}% of the hits stayed; {self.changed:,} of "
            f"{Count(self.asked)} {Count(self.asked):query|queries} changed."
        )

    def by_change(self) -> list[ChangedQuery]:
        """Return the queries, those of which the fewest hits stayed first."""

        def lost(query: ChangedQuery) -> tuple[float, int]:
            # A query that had no hits lost none.
            kept = 1.0 if query.kept is None else query.kept
            return kept, -len(query.moves)

        return sorted(self.queries, key=lost)

    def by_share(self) -> dict[str, int]:
        """Return how many queries kept which share of their hits, the largest share first."""
        counts = dict.fromkeys(SHARES, 0)
        for share in self.shares.values():
            if share is not None:
                counts[SHARES[ceil(10 * (1 - share) - ROUNDING)]] += 1
        return counts

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON."""
        return {
            "kept": self.kept,
            "changed": self.changed,
            "asked": self.asked,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "queries": [query.to_dict() for query in self.queries],
        }

    def to_records(self) -> list[dict[str, Any]]:
        """Return a row for each item that rose or fell."""
        return [
            {"query": query.id, "text": query.text, "kept": query.kept, **move.to_dict()}
            for query in self.queries
            for move in query.moves
        ]

    @property
    def names(self) -> list[str]:
        """The fields of `to_records`, also of one without rows."""
        return list(FIELDS)

    def to_page(self) -> str:
        """Return a page of HTML that needs no network."""
        from qkvsearch.evaluation.comparison.comparison_page import to_page

        return to_page(self)


def queries_for(
    build: LoadedBuild,
    queries: str | Path | Queries | Sequence[str] | None,
    random_state: int,
) -> Queries:
    """Return the texts of the given queries by their ids, or of those that a catalog makes of
    itself. Raises `DataError`, and `QkvError` where a catalog makes none.
    """
    if queries is not None:
        return as_queries(queries)
    made = make_queries(build, random_state, PER_KIND)
    if not made:
        raise QkvError("no queries can be made of this catalog: give some with `queries`")
    texts: Queries = {}
    numbers: dict[str, int] = {}
    for query in made:
        numbers[query.kind] = numbers.get(query.kind, 0) + 1
        texts[f"{query.kind}-{numbers[query.kind]}"] = query.text
    return texts


def compare_sides(
    before: Side, after: Side, queries: Mapping[str, str], progress: Progress | None = None
) -> Comparison:
    """Ask both sides all queries, and return what differs. Raises `QkvError`, which names the
    build without a head, or the query that cannot be asked.
    """
    before.check_heads()
    after.check_heads()
    shares: dict[str, float | None] = {}
    changed: list[ChangedQuery] = []
    for done, (id_, text) in enumerate(queries.items(), 1):
        answers = _asked(before, id_, text), _asked(after, id_, text)
        shares[id_] = _kept(*answers)
        if answers[0].items != answers[1].items:
            changed.append(ChangedQuery(id_, text, shares[id_], moves(*answers)))
        if progress is not None:
            progress("asking both sides", done, len(queries))
    return Comparison(
        before=ComparedSide.of(before),
        after=ComparedSide.of(after),
        shares=shares,
        queries=changed,
        notes=_notes([id_ for id_, share in shares.items() if share is None]),
    )


def _asked(side: Side, id_: str, text: str) -> SideAnswer:
    try:
        return side.answer(text)
    except QkvError as error:
        # Of the same kind, so that damage stays damage.
        if type(error) is not QkvError:
            raise
        raise QkvError(f"query {id_}: {error}") from None


def _kept(before: SideAnswer, after: SideAnswer) -> float | None:
    """Return the share of the hits before that are among those after; None if there were none."""
    if not before.items:
        return None
    return sum(item in after.hits for item in before.items) / len(before.items)


def _notes(without_hits: Sequence[str]) -> list[str]:
    if not without_hits:
        return []
    n = Count(len(without_hits))
    return [
        f"{n} {n:query had|queries had} no hits before, and {n:does|do} not count in the share of "
        f"hits that stayed: {listed_names(without_hits, MAX_NAMES)}"
    ]
