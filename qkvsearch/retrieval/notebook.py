"""A ranking as it shows itself: as text in Python, as an HTML table in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qkvsearch.retrieval.ranking import Hit, Ranking

# At most 50 hits are shown, and 3 reasons of each; `to_records` gives all.
SHOWN_HITS, SHOWN_REASONS = 50, 3
BAR_PIXELS = 80


def as_text(ranking: Ranking) -> str:
    """A line a hit, under how many there are."""
    lines = [_counted(ranking)]
    for hit in ranking.hits[:SHOWN_HITS]:
        lines.append(f"{hit.rank:4}  {hit.score:8.4f}  {hit.weight:6.1%}  {_named(hit)}")
    return "\n".join([*lines, *["   …"] * (len(ranking) > SHOWN_HITS)])


def as_html(ranking: Ranking) -> str:
    """A table: rank, title, score, a bar as long as the weight, and the reasons there are."""
    longest = max((hit.weight for hit in ranking), default=0.0) or 1.0
    rows = []
    for hit in ranking.hits[:SHOWN_HITS]:
        bar = (
            f'<div style="background:#4c78a8;height:0.7em;'
            f'width:{BAR_PIXELS * hit.weight / longest:.0f}px"></div>'
        )
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
    """Title and id, without what would steer a terminal."""
    named = f"{hit.title} ({hit.id})"
    return "".join(char if char.isprintable() else "�" for char in named)


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
