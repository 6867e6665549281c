"""From a head's scores to a ranking: mask, top-k, softmax, and reasons on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch._utils.deadline import check_deadline
from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.shown_sums import DECIMALS, adding_up, reasons_adding_up, signed
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch._utils.validation import is_whole
from qkvsearch.attention.masks import hide
from qkvsearch.attention.weights import softmax
from qkvsearch.errors import QkvError, quantity
from qkvsearch.rank.found import Found, NoHits
from qkvsearch.rank.reasons import Reason, Reasoning, WordReasons, reason_records
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores
from qkvsearch.scores.topk import best_of_groups
from qkvsearch.tables.ids import Id
from qkvsearch.terminal import html_table, in_one_line

if TYPE_CHECKING:
    import pandas as pd

# Rows of items to their ids and titles.
NamesOfRows = Callable[[np.ndarray], tuple[Sequence[Id], Sequence[str]]]
# Python and notebooks display so many hits, with so many reasons each; `to_records` returns all.
MAX_HITS, MAX_REASONS = 50, 3
SCORE_DECIMALS = 4


# The fields that every hit has, before the catalog's columns.
FIRST = ("rank", "id", "title", "score", "weight", "match")


class Hit(NamedTuple):
    """One ranked item. Fields that do not apply to the ranking are None.

    >>> Hit(1, "a", "Red lamp", score=2.0, weight=0.5).title
    'Red lamp'
    """

    # From 1.
    rank: int
    id: Id
    title: str
    # Before the softmax.
    score: float
    # After the softmax, over all candidates.
    weight: float
    # What each head adds to the score.
    heads: dict[str, float] | None = None
    predicted_rating: float | None = None
    # What the items of the history add to the score.
    because: list[dict[str, Any]] | None = None
    # The item of the history whose part is more than half of what items of the history add.
    rests_on: Id | None = None
    # Whether the item was placed by its text, for want of interactions.
    cold: bool | None = None
    # Whether a recommendation rests on too little.
    weak: bool | None = None
    # How well the item answers a text: strong, good or weak.
    match: str | None = None
    # What would have to be gone for the hit not to be among the first k: the `items` of the history
    # or the `words` of the query. Empty where no set of at most ten is found.
    smallest: dict[str, list[Any]] | None = None
    # The words that the lexical head matches, by column.
    matches: dict[str, list[str]] | None = None
    # The passage of the longest text that answers best.
    snippet: str | None = None
    # The passage of a long text that answers best: its text, and `start`, `end` and `link` where
    # these are known.
    passage: dict[str, Any] | None = None
    # The best passages, where they were asked for.
    passages: list[dict[str, Any]] | None = None
    # Cells of the catalog, by the names of the columns.
    fields: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that apply, in the documented order, with the catalog's columns after
        the weight. A column named like a field of the hit, such as `score`, is `items.score`.
        """
        values = {name: value for name, value in self._asdict().items() if value is not None}
        cells = values.pop("fields", {})
        first = {name: values.pop(name) for name in FIRST if name in values}
        return first | {own_key(name): cell for name, cell in cells.items()} | values


# The names of fields in rows about items.
ROW_NAMES = (
    *Hit._fields,
    *("parts", "reasons", "others", "why", "users", "original", "user", "query"),
)
# Before the name of a catalog's column that is one of these.
OWN_PREFIX = "items."


def own_key(name: str) -> str:
    """Return the name of a catalog's column in a row about an item. No two columns have the same.

    >>> own_key("Price"), own_key("score"), own_key("items.score")
    ('Price', 'items.score', 'items.items.score')
    """
    bare = name
    while bare.startswith(OWN_PREFIX):
        bare = bare.removeprefix(OWN_PREFIX)
    return OWN_PREFIX + name if bare in ROW_NAMES else name


@dataclass(frozen=True)
class Ranking(Sequence[Hit]):
    """Hits, best first. The weight of a hit is the softmax of score / temperature over
    `n_candidates` items.

    >>> ranking = Ranking([Hit(1, "a", "Red lamp", 2.0, 0.5)], np.array([0]), 1.0, n_candidates=2)
    >>> ranking[0].title, len(ranking), ranking.to_records()[0]["weight"]
    ('Red lamp', 1, 0.5)
    """

    hits: Sequence[Hit]
    # The rows of the hits in the build, int64 (n_hits,).
    positions: np.ndarray
    temperature: float
    # How many items were ranked: those that the mask allows and the head knows anything about.
    n_candidates: int
    # The scores of all items; None where no head knew the query.
    head: Scores | None = field(repr=False, default=None)
    # Notes for the user.
    notes: Sequence[str] = ()
    # The query as it was typed.
    query: str = ""
    # The words of the query that were read as others.
    corrections: Sequence[dict[str, Any]] = ()
    # By column, how many of the matching items have each value.
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # Turns the parts of a score into reasons.
    reasoning: Reasoning = field(repr=False, default=WordReasons())
    # From the row of a hit to its `smallest`; None where nothing can be left out.
    smallest_of: Callable[[int], dict[str, list[Any]]] | None = field(
        repr=False, compare=False, default=None
    )
    # The columns of the catalog that are shown with each hit.
    columns: Sequence[str] = ()
    # The fields that `annotated` filled.
    annotations: Sequence[str] = ()
    # The build that parts and reasons are read from. Its files stay open as long as the ranking is
    # there.
    source: object = field(repr=False, compare=False, default=None)
    # What a search found: how many items match. None for other rankings.
    found: Found | None = field(repr=False, compare=False, default=None)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: Any) -> Any:
        return self.hits[index]

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def total(self) -> int | None:
        """The number of hits on all pages, without weak ones; None where it is no search."""
        return None if self.found is None else self.found.total

    @property
    def total_weak(self) -> int | None:
        """The number of weak hits on all pages; None where it is no search."""
        return None if self.found is None else self.found.total_weak

    @property
    def no_hits(self) -> NoHits | None:
        """Why the search has no hits on any page, and what would help; None where it has some."""
        return None if self.found is None else self.found.no_hits

    def parts(self, index: int) -> Components:
        """Return all parts of one hit's score, as arrays."""
        return self._scores().parts(self._row(index))

    def _scores(self) -> Scores:
        if self.head is None:
            raise QkvError(
                "this ranking is a copy of one, by pickle or deepcopy, and has no parts and no "
                "reasons: ask the engine again, or keep what `explained_records` returns"
            )
        return self.head

    def _row(self, index: int) -> int:
        """Return the row of a hit in the build. Raises `QkvError` where there is no such hit."""
        if not is_whole(index) or not -len(self.hits) <= index < len(self.hits):
            hits = quantity(len(self.hits), "hit")
            raise QkvError(
                f"`index` must be the place of a hit in the ranking, from 0, not {index!r}: "
                f"it has {hits}"
            )
        return int(self.positions[index])

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle keeps: hits, notes and facets, not the way back to the engine."""
        gone = {"head": None, "reasoning": WordReasons(), "smallest_of": None, "source": None}
        found = None if self.found is None else self.found.remains()
        return {**self.__dict__, **gone, "found": found}

    def explain(self, index: int, *, full: bool = False) -> list[ScoreComponent]:
        """Return the 20 largest parts of one hit's score, and one with the query "others" for the
        rest; with `full` all parts. They add up to the score.
        """
        parts = self.parts(index)
        return parts.ordered() if full else parts.listed()

    def reasons(self, index: int, parts: Components | None = None) -> list[Reason]:
        """Return why a hit has its score, in a few lines that add up to it.

        parts: of the hit, where they are computed already.
        """
        if parts is None:
            parts = self.parts(index)
        return self.reasoning(self._row(index), parts, self.hits[index].score)

    @query_lock()
    @one_blas_thread()
    def quoted_reasons(self, index: int) -> list[Reason]:
        """Return the `reasons` of one hit with the titles of items in quotation marks, for a reader
        who is not to take them for something that is said to them.
        """
        row, quoting = self._row(index), self.reasoning.quoting()
        return quoting(row, self.parts(index), self.hits[index].score)

    def sentence(self, index: int) -> str:
        """Return the `quoted_reasons` of one hit in one line that ends in its score, such as
        "+2.410 tent: exact words; -0.310 average item (subtracted); = 2.100".
        """
        reasons = self.quoted_reasons(index)
        score = self.hits[index].score
        values = reasons_adding_up(reasons, score)
        lines = [
            f"{signed(value)} {in_one_line(reason.text)}"
            for value, reason in zip(values, reasons, strict=True)
        ]
        return "; ".join([*lines, f"= {score:.{DECIMALS}f}"])

    @query_lock()
    @one_blas_thread()
    def smallest(self, index: int) -> dict[str, list[Any]]:
        """Return what would have to be gone for one hit not to be among the hits asked for, as in
        `Hit.smallest`; nothing where nothing can be left out.
        """
        row = self._row(index)
        return {} if self.smallest_of is None else self.smallest_of(row)

    def with_smallest(self) -> Ranking:
        """Return the ranking with `smallest` of each hit."""
        return self.annotated(smallest=[self.smallest(index) for index in range(len(self))])

    def annotated(self, **columns: Sequence[Any]) -> Ranking:
        """Return the ranking with fields of the hits filled in: for each field, a value a hit."""
        hits = []
        if self.hits:
            # Field by field: to replace fields of each hit would take several times as long.
            fields = dict(zip(Hit._fields, zip(*self.hits, strict=True), strict=True))
            rows = zip(*(fields | columns).values(), strict=True)
            hits = list(map(Hit._make, rows))
        return replace(self, hits=hits, annotations=[*self.annotations, *columns])

    def page(self, offset: int) -> Ranking:
        """Return the ranking from `offset` on. The ranks stay."""
        return replace(self, hits=self.hits[offset:], positions=self.positions[offset:])

    def noted(self, notes: Sequence[str]) -> Ranking:
        """Return the ranking with more notes in front."""
        return replace(self, notes=[*notes, *self.notes]) if notes else self

    def envelope(self, hits: Sequence[dict[str, Any]] | None = None) -> dict[str, Any]:
        """Return the answer as one object: the query, the notes on it, how many hits there are, why
        there are none, and the hits.

        hits: by default those of `to_records`.
        """
        return {
            "query": self.query,
            "notes": list(self.notes),
            "corrections": list(self.corrections),
            "total": self.total,
            "total_weak": self.total_weak,
            "no_hits": None if self.no_hits is None else self.no_hits.to_dict(),
            "facets": dict(self.facets),
            "hits": self.to_records() if hits is None else list(hits),
        }

    def to_records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each hit, with the documented fields."""
        return [hit.to_dict() for hit in self.hits]

    @property
    def names(self) -> list[str]:
        """The names of the fields in `to_records`, in order; without hits, of those they would
        have.
        """
        own = {*FIRST[:5], "heads", *self.annotations}
        names = [name for name in Hit._fields if name in own]
        first = [name for name in FIRST if name in names]
        others = [name for name in names if name not in (*FIRST, "fields")]
        return [*first, *map(own_key, self.columns), *others]

    def explained_records(self, full: bool = False) -> list[dict[str, Any]]:
        """Return `to_records` with the `parts` of each score, as `explain` lists them, where a hit
        has no `because`; with `reasons`, the parts in plain words; and with `others`, what the
        reasons add that name no part of their own. full: all parts of the first hit.
        """
        rows = self.to_records()
        for i, row in enumerate(rows):
            check_deadline()
            row |= self._explained(i, full and i == 0, "because" not in row)
        return rows

    @query_lock()
    @one_blas_thread()
    def _explained(self, index: int, full: bool, with_parts: bool) -> dict[str, Any]:
        """Return what `explained_records` adds to a hit. Other queries may run between hits."""
        parts = self.parts(index)
        explained = reason_records(self.reasons(index, parts))
        if not with_parts:
            return explained
        listed = parts.ordered() if full else parts.listed()
        return {"parts": [part.to_dict() for part in listed], **explained}

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each hit."""
        import pandas as pd

        return pd.DataFrame(self.to_records(), columns=self.names)


def rank(
    head: Scores | None,
    names: NamesOfRows,
    *,
    k: int,
    offset: int = 0,
    temperature: float | None = None,
    mask: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    positions: np.ndarray | None = None,
) -> Ranking:
    """Compute softmax(scores / temperature + mask), and return the k best items after the first
    `offset`; no items for None.

    mask: bool (n_items,), True = may be ranked. Items that the head knows nothing about are masked
    as well. groups: a number for each item (n_items,); only the best item of each is a hit, with
    its weight among all items. positions: the rows of the hits from `offset` on, where these are
    not the k best. temperature: by default one standard deviation of the scores, so
    that the weights of heads with different units are comparable.
    """
    if head is None:
        return Ranking([], np.zeros(0, dtype=np.int64), temperature or 1.0, 0)
    if temperature is None:
        temperature = head.moments[1] or 1.0
        if not isfinite(temperature):
            raise QkvError("a score is not finite: the build is damaged; run qkvsearch repair")
    allowed = head.allowed(mask)
    if positions is None:
        positions = best_of_groups(head.scores, k + offset if k else 0, allowed, groups)[offset:]
    weights = softmax(hide(head.scores, allowed), temperature)[positions].tolist()
    ids, titles = names(positions)
    scores, by_head = head.scores[positions].tolist(), head.by_names(positions)
    ranks = range(offset + 1, offset + 1 + len(positions))
    hits = [Hit(*row) for row in zip(ranks, ids, titles, scores, weights, by_head, strict=True)]
    n_candidates = int(np.count_nonzero(allowed))
    return Ranking(hits, positions, temperature, n_candidates, head, head.notes)


# --- a ranking as text in Python, and as an HTML table in a notebook ---


def as_text(ranking: Ranking) -> str:
    """Return the number of hits and a line for each."""
    lines = [_counted(ranking)]
    for hit in ranking.hits[:MAX_HITS]:
        lines.append(
            f"{hit.rank:4}  {hit.score:8.{SCORE_DECIMALS}f}  {hit.match or '':6}  {_named(hit)}"
        )
    if len(ranking) > MAX_HITS:
        lines.append("   …")
    return "\n".join(lines)


def as_html(ranking: Ranking) -> str:
    """Return a table: rank, title, match, score and reasons."""
    rows = [
        (hit.rank, _named(hit), hit.match or "", f"{hit.score:.{SCORE_DECIMALS}f}", _reasons(hit))
        for hit in ranking.hits[:MAX_HITS]
    ]
    names = ("#", "title", "match", "score", "reasons")
    return html_table(_counted(ranking), names, rows, ranking.notes)


def _counted(ranking: Ranking) -> str:
    candidates = quantity(ranking.n_candidates, "candidate")
    return f"Ranking: {quantity(len(ranking), 'hit')} of {candidates}"


def _named(hit: Hit) -> str:
    """Return title and id."""
    return in_one_line(f"{hit.title} ({hit.id})")


def _reasons(hit: Hit) -> str:
    """Return the largest contributions of the history, matching words, or the heads.

    Contributions end in their sum, the score, and those that are not named are one of them.
    """
    if hit.because is None and hit.matches:
        return "; ".join(f"{column}: {', '.join(words)}" for column, words in hit.matches.items())
    if hit.because:
        named = [(reason["title"], reason["contribution"]) for reason in hit.because]
    else:
        named = list((hit.heads or {}).items())
    if not named:
        return ""
    named.sort(key=lambda pair: -abs(pair[1]))
    if len(named) > MAX_REASONS + 1:
        others = named[MAX_REASONS:]
        rest = (f"{len(others):,} others", sum(value for _, value in others))
        named = [*named[:MAX_REASONS], rest]
    shown = adding_up([value for _, value in named], hit.score, SCORE_DECIMALS)
    addends = [
        f"{name} {signed(value, SCORE_DECIMALS)}"
        for (name, _), value in zip(named, shown, strict=True)
    ]
    return f"{', '.join(addends)} = {hit.score:.{SCORE_DECIMALS}f}"
