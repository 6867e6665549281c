"""From a head's scores to a ranking: mask, top-k, softmax weights, and the reasons on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch._utils.deadline import check_deadline
from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.attention.masks import hide
from qkvsearch.attention.weights import softmax
from qkvsearch.data.ids import Id
from qkvsearch.errors import QkvError
from qkvsearch.retrieval.fusion import Scores
from qkvsearch.retrieval.reasons import Reason, Reasoning, WordReasons
from qkvsearch.retrieval.score_components import Components, ScoreComponent
from qkvsearch.retrieval.topk import top_k
from qkvsearch.terminal import in_one_line

if TYPE_CHECKING:
    import pandas as pd

# Positions to the owner's ids and titles.
Names = Callable[[np.ndarray], tuple[Sequence[Id], Sequence[str]]]
# At most 50 hits are shown, and 3 reasons of each; `to_records` gives all.
SHOWN_HITS, SHOWN_REASONS = 50, 3
BAR_PIXELS = 80


class Hit(NamedTuple):
    """One ranked item. `score` is before the softmax, `weight` after; what does not apply to what
    ranked it is None. fields: cells of its row in the catalog, by the owner's names of the columns.
    """

    rank: int
    id: Id
    title: str
    score: float
    weight: float
    heads: dict[str, float] | None = None
    predicted_rating: float | None = None
    because: list[dict[str, Any]] | None = None
    cold: bool | None = None
    weak: bool | None = None
    shared: int | None = None
    matches: dict[str, list[str]] | None = None
    snippet: str | None = None
    fields: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """What applies, in the documented order; the owner's columns come after the weight. One
        that is called like a part of the hit, such as `score`, is `items.score`.
        """
        known = {name: value for name, value in self._asdict().items() if value is not None}
        own = known.pop("fields", {})
        first = {name: known.pop(name) for name in ("rank", "id", "title", "score", "weight")}
        return first | {own_key(name): cell for name, cell in own.items()} | known


# What a row about an item says of itself: an owner's column of such a name is called otherwise.
ROW_NAMES = (*Hit._fields, "parts", "reasons", "users", "user", "query")


def own_key(name: str) -> str:
    """Under which name a row holds an owner's column.

    >>> own_key("Price"), own_key("score")
    ('Price', 'items.score')
    """
    return f"items.{name}" if name in ROW_NAMES else name


@dataclass(frozen=True)
class Ranking(Sequence[Hit]):
    """Hits, best first. `weight` is the softmax of score / `temperature` over `n_candidates`.
    `notes`: what whoever asked should know about the answer. Of a search also the `query` as it was
    typed, `corrections`, the words of it that were read as others, and `facets`: by column, how
    many of the items that match have which value. reasoning: how the parts of a score become
    reasons.
    """

    hits: Sequence[Hit]
    positions: np.ndarray
    temperature: float
    n_candidates: int
    head: Scores | None = field(repr=False, default=None)
    notes: Sequence[str] = ()
    query: str = ""
    corrections: Sequence[dict[str, Any]] = ()
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    reasoning: Reasoning = field(repr=False, default=WordReasons())

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: Any) -> Any:
        return self.hits[index]

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def parts(self, index: int) -> Components:
        """All parts of one hit's score, as arrays."""
        return self.head.parts(int(self.positions[index]))  # type: ignore[union-attr]

    def explain(self, index: int, *, full: bool = False) -> list[ScoreComponent]:
        """The 20 largest parts of one hit's score, and one more with the query "others" for the
        rest; `full`: all parts. They add up to the score.
        """
        parts = self.parts(index)
        return parts.ordered() if full else parts.listed()

    def reasons(self, index: int, parts: Components | None = None) -> list[Reason]:
        """Why one hit has its score, in a few lines of plain words that add up to it. parts: those
        of the hit, where they are at hand.
        """
        known = self.parts(index) if parts is None else parts
        return self.reasoning(int(self.positions[index]), known)

    def annotated(self, **columns: Sequence[Any]) -> Ranking:
        """The same hits with a field filled in: one value a hit."""
        hits = [
            hit._replace(**{name: values[i] for name, values in columns.items()})
            for i, hit in enumerate(self.hits)
        ]
        return replace(self, hits=hits)

    def page(self, offset: int, min_weight: float) -> Ranking:
        """Without the first `offset` hits, and without those of less weight. Ranks stay."""
        return self._kept(
            [i >= offset and hit.weight >= min_weight for i, hit in enumerate(self.hits)]
        )

    def _kept(self, is_kept: Sequence[bool]) -> Ranking:
        if all(is_kept):
            return self
        hits = [hit for hit, kept in zip(self.hits, is_kept, strict=True) if kept]
        return replace(self, hits=hits, positions=self.positions[np.flatnonzero(is_kept)])

    def noted(self, notes: Sequence[str]) -> Ranking:
        """With more notes, before those that there are."""
        return replace(self, notes=[*notes, *self.notes]) if notes else self

    def with_facets(self, facets: Mapping[str, Mapping[str, int]]) -> Ranking:
        """With these counts."""
        return replace(self, facets=facets)

    def envelope(self, hits: Sequence[dict[str, Any]] | None = None) -> dict[str, Any]:
        """A search's answer as one object: the query, what is to be said of it, and the hits, by
        default those of `to_records`.
        """
        return {
            "query": self.query,
            "notes": list(self.notes),
            "corrections": list(self.corrections),
            "facets": dict(self.facets),
            "hits": self.to_records() if hits is None else list(hits),
        }

    def to_records(self) -> list[dict[str, Any]]:
        """One dictionary a hit, with the documented fields."""
        return [hit.to_dict() for hit in self.hits]

    def explained_records(self, full: bool = False) -> list[dict[str, Any]]:
        """The same with the `parts` of each score, as `explain` lists them, where a hit has no
        `because` of its own, and with the `reasons` that these are in plain words. full: with all
        parts of the first hit.
        """
        rows = self.to_records()
        for i, row in enumerate(rows):
            check_deadline()
            row |= self._explained(i, full and i == 0, "because" not in row)
        return rows

    @query_lock()
    @one_blas_thread()
    def _explained(self, index: int, full: bool, with_parts: bool) -> dict[str, Any]:
        """What `explained_records` adds to a hit. Other queries have their turn between hits."""
        parts = self.parts(index)
        reasons = [reason._asdict() for reason in self.reasons(index, parts)]
        if not with_parts:
            return {"reasons": reasons}
        listed = parts.ordered() if full else parts.listed()
        return {"parts": [part.to_dict() for part in listed], "reasons": reasons}

    def to_frame(self) -> pd.DataFrame:
        """One row a hit."""
        import pandas as pd

        return pd.DataFrame(self.to_records())


def rank(
    head: Scores | None,
    names: Names,
    *,
    k: int,
    offset: int = 0,
    temperature: float | None = None,
    mask: np.ndarray | None = None,
) -> Ranking:
    """softmax(scores / temperature + mask), and the k items that it weighs most after the first
    `offset`.

    mask: bool (n_items,), True = may be ranked. Items that the head has nothing to say about are
    hidden too; no head, no hits. temperature: by default one standard deviation of the scores, so
    that weights compare between heads that measure in units of their own.
    """
    if head is None:
        return Ranking([], np.zeros(0, dtype=np.int64), temperature or 1.0, 0)
    if temperature is None:
        temperature = head.moments()[1] or 1.0
        if not isfinite(temperature):
            raise QkvError("a score is no finite number: what it is made of is damaged; see repair")
    allowed = head.allowed(mask)
    positions = top_k(head.scores, k + offset if k else 0, allowed)[offset:]
    weights = softmax(hide(head.scores, allowed), temperature)[positions].tolist()
    ids, titles = names(positions)
    scores, by_head = head.scores[positions].tolist(), head.by_names(positions)
    ranks = range(offset + 1, offset + 1 + len(positions))
    hits = [Hit(*row) for row in zip(ranks, ids, titles, scores, weights, by_head, strict=True)]
    n_candidates = int(np.count_nonzero(allowed))
    return Ranking(hits, positions, temperature, n_candidates, head, head.notes)


# --- a ranking as it shows itself: as text in Python, as an HTML table in a notebook ---


def as_text(ranking: Ranking) -> str:
    """A line a hit, under how many there are."""
    lines = [_counted(ranking)]
    for hit in ranking.hits[:SHOWN_HITS]:
        lines.append(f"{hit.rank:4}  {hit.score:8.4f}  {hit.weight:6.1%}  {_named(hit)}")
    return "\n".join([*lines, *["   …"] * (len(ranking) > SHOWN_HITS)])


def as_html(ranking: Ranking) -> str:
    """A table: rank, title, score, a bar as long as the weight, and the reasons there are."""
    from html import escape

    longest = max((hit.weight for hit in ranking), default=0.0) or 1.0
    rows = []
    for hit in ranking.hits[:SHOWN_HITS]:
        width = f"{BAR_PIXELS * hit.weight / longest:.0f}px"
        bar = f'<div style="background:#4c78a8;height:0.7em;width:{width}"></div>'
        cells = (str(hit.rank), escape(_named(hit)), f"{hit.score:.4f}", bar, f"{hit.weight:.1%}")
        rows.append("".join(f"<td>{cell}</td>" for cell in (*cells, escape(_reasons(hit)))))
    names = ("#", "title", "score", "weight", "", "reasons")
    heading = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    said = "".join(f"<p>{escape(note)}</p>" for note in ranking.notes)
    return (
        f"<table><caption>{_counted(ranking)}</caption><thead><tr>{heading}</tr></thead>"
        f"<tbody>{body}</tbody></table>{said}"
    )


def _counted(ranking: Ranking) -> str:
    return f"Ranking: {len(ranking):,} hits of {ranking.n_candidates:,} candidates"


def _named(hit: Hit) -> str:
    """Title and id."""
    return in_one_line(f"{hit.title} ({hit.id})")


def _reasons(hit: Hit) -> str:
    """The history's largest contributions, the words that match, or else what each head adds."""
    if hit.because is not None:
        because = sorted(hit.because, key=lambda reason: -abs(reason["contribution"]))
        found = [(reason["title"], reason["contribution"]) for reason in because]
    elif hit.matches:
        return "; ".join(f"{column}: {', '.join(words)}" for column, words in hit.matches.items())
    else:
        found = list((hit.heads or {}).items())
    return ", ".join(f"{name} {value:+.3f}" for name, value in found[:SHOWN_REASONS])
