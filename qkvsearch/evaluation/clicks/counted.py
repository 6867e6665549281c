"""Which lines of a log are searches: what somebody typed on the way to one is not."""

from __future__ import annotations

from qkvsearch.store.logged_searches import LoggedSearch, LoggedSearches

# Seconds within which a visitor's next search may be the continuation of this one.
TYPING_SECONDS = 10.0


def counted_searches(log: LoggedSearches) -> list[LoggedSearch]:
    """Return the searches that count, the oldest first.

    Further pages of a search do not, nor does what was typed on the way: a search that the same
    visitor continues within ten seconds, by typing on or by deleting. One that somebody clicked on
    counts in any case.
    """
    first_pages = [one for one in log.searches if not one.offset and one.query.strip()]
    is_replaced = [False] * len(first_pages)
    last: dict[str, int] = {}
    for place, search in enumerate(first_pages):
        before = last.get(search.visitor)
        if before is not None:
            earlier = first_pages[before]
            is_replaced[before] = not log.clicks[earlier.id] and continues(earlier, search)
        last[search.visitor] = place
    return [
        search for search, replaced in zip(first_pages, is_replaced, strict=True) if not replaced
    ]


def continues(earlier: LoggedSearch, later: LoggedSearch) -> bool:
    """Return whether a search is a later state of the same typing: one text is the beginning of the
    other. The same text again is another search, unless it was sent while somebody was typing
    (`prefix`), as when they press Enter at its end.
    """
    if not 0 <= later.time - earlier.time <= TYPING_SECONDS:
        return False
    texts = folded(earlier.query), folded(later.query)
    if texts[0] == texts[1]:
        return earlier.is_typing
    return texts[1].startswith(texts[0]) or texts[0].startswith(texts[1])


def folded(query: str) -> str:
    """Return a query without what makes no other query of it: case, and blanks at the ends or
    twice.

    >>> folded("  Red   Tent ")
    'red tent'
    """
    return " ".join(query.casefold().split())
