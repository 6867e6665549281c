"""The passages of a hit: what they say, when it is said, and a link that jumps there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import numpy as np

from qkvsearch._utils.query_lock import pause
from qkvsearch.heads.item_texts import ItemTexts
from qkvsearch.heads.passages import Units
from qkvsearch.rank.ranking import Ranking
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.columns import text_times
from qkvsearch.tables.columns.text_times import Times

# The column with the address of an item. Without it, the first of the others that there is, for the
# cells in it that are addresses; their names are without spaces, `_` and `-`.
URL = "url"
LINKS = ("videourl", "videolink", "webpageurl", "pageurl", "permalink", "link")
ADDRESS = re.compile(r"\s*https?://\S+\s*", re.IGNORECASE)
YOUTUBE = ("youtube.com", "youtu.be", "youtube-nocookie.com")
# Column, start and end of a passage.
PassageSpan = tuple[int, int, int]
# Players of YouTube that take no time, or take it as another parameter.
EMBEDDED = re.compile(r"/(?:embed|shorts|v)/([\w-]+)/?")


def with_passages(ranking: Ranking, texts: ItemTexts, n: int = 0) -> Ranking:
    """Return each hit of a long text with its best passage, and with its `n` best ones.

    A hit without passages has None.
    """
    units = texts.models.units
    if units is None or ranking.head is None or ranking.head.best is None:
        return ranking
    reader = _PassageReader(texts, units)
    best = ranking.head.best.of_items[ranking.positions]
    if (best < units.n_short).all():
        return ranking
    of_hits: list[list[dict[str, Any]] | None] = []
    for item, unit in zip(ranking.positions.tolist(), best.tolist(), strict=True):
        pause()
        if unit < units.n_short:
            of_hits.append(None)
            continue
        chosen = [unit]
        if n > 1:
            own = units.passages_of(item)
            scores = ranking.head.best.scores[own]
            chosen = own[np.argsort(-scores, kind="stable")][:n].tolist()
        of_hits.append(reader.passages(item, chosen))
    annotations: dict[str, Sequence[Any]] = {
        "passage": [None if of_hit is None else of_hit[0] for of_hit in of_hits]
    }
    if n:
        annotations["passages"] = of_hits
    return ranking.annotated(**annotations)


class _PassageReader:
    """Reads what the catalog has of passages."""

    def __init__(self, texts: ItemTexts, units: Units) -> None:
        self.texts, self.units = texts, units
        columns = texts.catalog.catalog_columns
        self._columns = [columns.stored_as(stored) for stored in texts.columns]
        self._times = next((c for c in columns if c.role == text_times.ROLE), None)
        self._url = _column_of_addresses(columns)

    def passages(self, item: int, chosen: Sequence[int]) -> list[dict[str, Any]]:
        """Return these passages of an item. chosen: units, the best first.

        Neighbours share a sentence, which the better one has.
        """
        fields = self.texts.of(item)
        row = self.texts.catalog.row(item)
        times = None if self._times is None else Times.of(row[self._times.stored])
        url = None if self._url is None else row[self._url.stored]
        if self._url is not None and self._url.name.casefold() != URL:
            url = url if ADDRESS.fullmatch(str(url)) else None
        spans = without_overlap([self._span(unit) for unit in chosen])
        return [self._passage(span, fields, times, url) for span in spans]

    def _span(self, unit: int) -> PassageSpan:
        span = self.units.span(unit)
        assert span is not None
        return span

    def _passage(
        self, span: PassageSpan, fields: Sequence[str], times: Times | None, url: object
    ) -> dict[str, Any]:
        column, start, end = span
        text = fields[column][start:end]
        passage: dict[str, Any] = {"text": text.strip()}
        if times is not None and self._is_timed(self._columns[column]):
            first = start + len(text) - len(text.lstrip())
            passage["start"], passage["end"] = times.between(first, start + len(text.rstrip()))
            if url:
                passage["link"] = link_to(str(url), passage["start"])
        return passage

    def _is_timed(self, column: StoredColumn) -> bool:
        """Return whether the times are those of this column."""
        return column.name.casefold() == text_times.TEXT


def without_overlap(spans: Sequence[PassageSpan]) -> list[PassageSpan]:
    """Return spans of which each lacks what an earlier one has of it at its beginning or end.

    >>> without_overlap([(0, 50, 100), (0, 90, 140), (0, 10, 60), (1, 0, 100)])
    [(0, 50, 100), (0, 100, 140), (0, 10, 50), (1, 0, 100)]
    """
    distinct: list[PassageSpan] = []
    for column, start, end in spans:
        for other, first, last in distinct:
            if other == column and first <= start < last < end:
                start = last
            elif other == column and start < first < end <= last:
                end = first
        distinct.append((column, start, end))
    return distinct


def _column_of_addresses(columns: Iterable[StoredColumn]) -> StoredColumn | None:
    """Return the column with the addresses of items, or None."""
    found = {re.sub(r"[\s_-]", "", column.name.casefold()): column for column in columns}
    return next((found[name] for name in (URL, *LINKS) if name in found), None)


def link_to(url: str, seconds: float) -> str:
    """Return the address of a video at a time, in whole seconds.

    >>> link_to("https://example.org/v/2", 617.8), link_to("https://youtu.be/abc", 617)
    ('https://example.org/v/2#t=617', 'https://youtu.be/abc?t=617s')
    >>> link_to("https://www.youtube.com/watch?v=abc&t=5s#x", 617)
    'https://www.youtube.com/watch?v=abc&t=617s'

    Addresses that do not jump become that of the video:

    >>> link_to("https://www.youtube.com/embed/abc?rel=0", 617)
    'https://www.youtube.com/watch?v=abc&t=617s'
    """
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    host = (parts.hostname or "").casefold()
    if not any(host == name or host.endswith(f".{name}") for name in YOUTUBE):
        return urlunsplit(parts._replace(fragment=f"t={int(seconds)}"))
    if match := EMBEDDED.fullmatch(parts.path):
        return f"https://www.youtube.com/watch?v={match[1]}&t={int(seconds)}s"
    query = parts.query
    given = parse_qsl(query, keep_blank_values=True)
    others = [(name, value) for name, value in given if name not in ("t", "start")]
    if others != given:
        query = urlencode(others)
    at = f"t={int(seconds)}s"
    return urlunsplit(parts._replace(query=f"{query}&{at}" if query else at, fragment=""))


def clock(seconds: float) -> str:
    """Return a time of a video.

    >>> clock(617.8), clock(3725)
    ('10:17', '1:02:05')
    """
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
