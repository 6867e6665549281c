"""A comparison as a page of HTML: one file that needs no network and no script."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from qkvsearch.errors import Count
from qkvsearch.evaluation.base_page import with_base
from qkvsearch.terminal import in_one_line

if TYPE_CHECKING:
    from qkvsearch.evaluation.comparison.compared import ChangedQuery, ComparedSide, Comparison
    from qkvsearch.evaluation.comparison.moves import Move

FILES = Path(__file__).parent
TITLE = "What changed in the answers"
LEADS = (
    "A number is what a word, or a head for all words, added to the item's lead over the items "
    "that it passed or that passed it. The lead is its score minus the mean of theirs."
)
# So many queries, the most changed ones, are unfolded.
N_OPEN = 20
# The width of the longest bar.
BAR = 100


def to_page(comparison: Comparison) -> str:
    """Return the whole page. Its style is in it, allowed by its hash; nothing else is loaded."""
    style = "\n" + with_base((FILES / "comparison.css").read_text(encoding="utf-8"))
    sides = [
        ("before", comparison.before),
        ("after", comparison.after),
    ]
    queries = comparison.by_change()
    sections = [_query(query, number < N_OPEN) for number, query in enumerate(queries)]
    return Template((FILES / "comparison.html").read_text(encoding="utf-8")).substitute(
        policy=f"default-src 'none'; style-src {_hash(style)}; base-uri 'none'; form-action 'none'",
        style=style,
        title=TITLE,
        summary=_text(comparison.summary),
        sides="\n".join(_side(name, side) for name, side in sides),
        notes="\n".join(f'<p class="quiet">{_text(note)}</p>' for note in comparison.notes),
        kept=_shares(comparison),
        leads=f'<p class="quiet">{LEADS}</p>' if _has_leads(comparison) else "",
        queries="\n".join(sections) or "<p>All queries have the same hits in the same order.</p>",
    )


def _has_leads(comparison: Comparison) -> bool:
    """Return whether scores are the reason of a move."""
    return any(move.parts is not None for query in comparison.queries for move in query.moves)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _text(text: object) -> str:
    """Return a text of the catalog, or of anybody, as HTML."""
    return escape(in_one_line(str(text)))


def _side(name: str, side: ComparedSide) -> str:
    heads = "" if side.heads is None else f", heads {', '.join(side.heads)}"
    rules = f", {side.rules_text}" if side.rules_text else ""
    items = f"{Count(side.items)} {Count(side.items):item|items}"
    return f"<dt>{name}</dt><dd>{_text(f'{side.id}, {items}{heads}{rules}')}</dd>"


def _shares(comparison: Comparison) -> str:
    """Return a table of how many queries kept how many of their hits."""
    counts = {share: n for share, n in comparison.by_share().items() if n}
    if not counts:
        return ""
    most = max(counts.values())
    rows = []
    for share, n in counts.items():
        width = BAR * n / most
        bar = (
            f'<svg viewBox="0 0 {BAR} 8" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect width="{width:.1f}" height="8"/></svg>'
        )
        rows.append(
            f'<tr><th scope="row">{share}</th><td class="number">{n:,}</td><td>{bar}</td></tr>'
        )
    caption = "Queries by the share of their hits that stayed"
    return f'<table class="shares"><caption>{caption}</caption>{"".join(rows)}</table>'


def _query(query: ChangedQuery, is_open: bool) -> str:
    """Return a section that can be folded: the query, and the items that rose and fell."""
    kept = "no hits before" if query.kept is None else f"{query.kept:.0%} of its hits stayed"
    facts = f"{kept}; {len(query.rose)} rose, {len(query.fell)} fell"
    rows = [_row(move) for move in (*query.rose, *query.fell)]
    return (
        f"<details{' open' if is_open else ''}>"
        f"<summary><h2>{_text(query.text)}</h2>"
        f'<span class="quiet">{_text(query.id)}: {facts}</span></summary>'
        '<table class="moves"><thead><tr><th scope="col">rank</th><th scope="col">item</th>'
        '<th scope="col">reason</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></details>"
    )


def _row(move: Move) -> str:
    before, after = ("–" if rank is None else str(rank) for rank in (move.before, move.after))
    kind, arrow, said = ("rose", "↑", "rose") if move.rose else ("fell", "↓", "fell")
    return (
        f'<tr class="{kind}"><td class="ranks"><span aria-label="{said}">{arrow}</span> '
        f'{before} → {after}</td><td class="title">{_text(move.title)} '
        f'<span class="quiet">({_text(move.id)})</span></td>'
        f'<td class="reason">{_text(move.by)}</td></tr>'
    )
