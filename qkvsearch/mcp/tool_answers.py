"""The answers of tools: small objects, which stay within the characters that the caller sets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from qkvsearch._utils.deadline import check_deadline
from qkvsearch.errors import QkvError
from qkvsearch.rank.ranking import Ranking

ToolAnswer = dict[str, Any]
# Characters of an answer, as JSON without indentation: the limits of `max_chars`, and its default,
# some 3,000 tokens.
LEAST_CHARS, DEFAULT_CHARS, MOST_CHARS = 500, 10_000, 1_000_000
# Fields of a hit that an agent does not need beside its sentence of reasons.
LEFT_OUT = ("score", "weight", "heads", "because", "matches")
MARK = "…"


def as_text(answer: Any) -> str:
    """Return an answer as compact JSON.

    >>> as_text({"title": "Küche"})
    '{"title":"Küche"}'
    """
    return json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def ranking_answer(ranking: Ranking, max_chars: int) -> ToolAnswer:
    """Return the hits of a ranking, each with its reasons in a sentence, `why`, and the notes; of a
    search also how many hits there are, and why there are none.
    """
    hits = []
    for index, record in enumerate(ranking.to_records()):
        check_deadline()
        shown = {name: value for name, value in record.items() if name not in LEFT_OUT}
        hits.append({**shown, "why": ranking.sentence(index)})
    answer: ToolAnswer = {}
    if ranking.found is not None:
        answer |= {"total": ranking.total, "total_weak": ranking.total_weak}
    if ranking.no_hits is not None:
        answer["no_hits"] = ranking.no_hits.to_dict()
    if ranking.notes:
        answer["notes"] = list(ranking.notes)
    if ranking.facets:
        answer["facets"] = dict(ranking.facets)
    return with_rows(answer, "hits", hits, max_chars)


def with_rows(
    answer: ToolAnswer, name: str, rows: Sequence[ToolAnswer], max_chars: int
) -> ToolAnswer:
    """Return an answer with as many of the rows as fit into `max_chars`, each of them whole. Where
    not all do, `truncated` is true, and a note says how many there are. Raises `QkvError` where the
    answer is too long without any row.

    >>> rows = [{"title": "a" * 100}, {"title": "b" * 100}]
    >>> cut = with_rows({}, "hits", rows, max_chars=220)
    >>> len(cut["hits"]), cut["truncated"], len(as_text(cut)) <= 220
    (1, True, True)
    """
    if length_of(whole := {**answer, name: list(rows)}) <= max_chars:
        return whole
    sizes = [length_of(row) + 1 for row in rows]  # and a comma
    for n_shown in range(len(rows) - 1, -1, -1):
        note = (
            f"`max_chars`: {n_shown:,} of {len(rows):,} {name} fit into {max_chars:,} characters."
        )
        cut = {**answer, "notes": [*answer.get("notes", ()), note], "truncated": True, name: []}
        if length_of(cut) + sum(sizes[:n_shown]) <= max_chars:
            return {**cut, name: list(rows[:n_shown])}
    raise too_long(answer, max_chars)


def too_long(answer: ToolAnswer, max_chars: int) -> QkvError:
    """Return the error for an answer that cannot be made short enough."""
    return QkvError(
        f"`max_chars`: at its shortest the answer has {length_of(answer):,} characters, more than "
        f"{max_chars:,}: ask for less, or allow more"
    )


def length_of(answer: Any) -> int:
    """Return how many characters an answer has."""
    return len(as_text(answer))


def with_texts_cut(answer: ToolAnswer, max_chars: int) -> ToolAnswer:
    """Return an answer about one item within `max_chars`: its longest texts are cut, with an
    ellipsis, and `truncated` is true. Raises `QkvError` where it is too long without them.

    >>> cut = with_texts_cut({"title": "Tent", "about": "x" * 1000}, 120)
    >>> cut["truncated"], cut["title"], len(as_text(cut)) <= 120
    (True, 'Tent', True)
    """
    if length_of(answer) <= max_chars:
        return answer
    answer = {**answer, "truncated": True}
    # The greatest length that every text may have, found by halving.
    low, high = 0, max_chars
    while low < high:
        middle = (low + high + 1) // 2
        if length_of(_cut(answer, middle)) <= max_chars:
            low = middle
        else:
            high = middle - 1
    shortest: ToolAnswer = _cut(answer, low)
    if length_of(shortest) > max_chars:
        raise too_long(shortest, max_chars)
    return shortest


def _cut(value: Any, length: int) -> Any:
    """Return a value whose texts have at most so many characters, and an ellipsis. An id stays."""
    if isinstance(value, str) and len(value) > length:
        return value[:length] + MARK
    if isinstance(value, dict):
        return {name: cell if name == "id" else _cut(cell, length) for name, cell in value.items()}
    if isinstance(value, list):
        return [_cut(each, length) for each in value]
    return value
