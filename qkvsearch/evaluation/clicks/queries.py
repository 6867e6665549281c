"""The queries of a log: how often each was asked, what it found, and what would help it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qkvsearch.evaluation.clicks.counted import counted_searches, folded
from qkvsearch.rank.listing import Listing
from qkvsearch.store.logged_searches import LoggedSearch, LoggedSearches

# The first hits, which people look at.
N_FIRST = 3
# Fewer searches do not show that nobody clicks on the first hits.
MIN_SEARCHES = 3
# Seconds within which a visitor's next search is another attempt at this one.
NEXT_SECONDS = 120.0
# So many visitors' attempts propose a synonym: one of them may have been about something else.
MIN_NEXT = 2
# How many of the next searches, and of the items that were clicked on, are listed.
N_LISTED = 3
# Signs that mean something in a file of synonyms: a stranger's query must not write another rule.
IS_SYNONYM_SIGN = re.compile("[,#]|=>").search
# The problems of a query, by which a list is chosen.
NO_HITS, NO_CLICKS = PROBLEMS = ("no_hits", "no_clicks")
NAMES = (
    "query",
    "searches",
    "total",
    "clicks",
    "first_clicks",
    "problem",
    "reason",
    "words",
    "conditions",
    "next",
    "clicked",
    "synonyms",
    "pin",
)


@dataclass
class AskedQuery:
    """One query, however often it was asked."""

    # As it was typed.
    spellings: Counter[str] = field(default_factory=Counter)
    n_searches: int = 0
    # How many hits it had, and why it had none, the last time. Filters that left nothing do not
    # count where the query had hits before: they say nothing of its words.
    total: int = 0
    no_hits: Mapping[str, Any] | None = None
    # How many hits were clicked on, and how many of these were among the first.
    n_clicks: int = 0
    n_first_clicks: int = 0
    # How often each item was clicked on, by the text of its id.
    clicked: Counter[str] = field(default_factory=Counter)
    # What the same visitors searched for next, without a click before.
    next: Counter[str] = field(default_factory=Counter)
    # Which visitors did: one can try the same a thousand times.
    next_visitors: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, search: LoggedSearch) -> None:
        """Count a search."""
        self.spellings[search.query.strip()] += 1
        self.n_searches += 1
        if self.total and _is_filtered_out(search.no_hits):
            return
        self.total = search.total
        # Where weak hits were asked for, an answer does not say why there are no others.
        if search.total or search.no_hits:
            self.no_hits = search.no_hits

    def add_clicks(self, clicks: Mapping[str, int]) -> None:
        """Count the clicks on the hits of a search, or of one of its further pages."""
        self.n_clicks += len(clicks)
        self.n_first_clicks += sum(position <= N_FIRST for position in clicks.values())
        self.clicked.update(clicks.keys())

    @property
    def query(self) -> str:
        """The most frequent spelling."""
        return self.spellings.most_common(1)[0][0]

    @property
    def problem(self) -> str | None:
        """What is wrong with the answers, if anything is."""
        if not self.total:
            return NO_HITS
        has_enough = self.n_searches >= MIN_SEARCHES
        return NO_CLICKS if has_enough and not self.n_first_clicks else None


def _is_filtered_out(no_hits: Mapping[str, Any] | None) -> bool:
    """Return whether filters, a condition or operators left nothing."""
    return no_hits is not None and no_hits.get("reason") == "filtered_out"


def asked_queries(log: LoggedSearches) -> list[AskedQuery]:
    """Return the queries of a log, the most frequent first."""
    queries: dict[str, AskedQuery] = defaultdict(AskedQuery)
    counted = counted_searches(log)
    for search in counted:
        queries[folded(search.query)].add(search)
    for search in log.searches:
        query = folded(search.query)
        if query in queries:
            queries[query].add_clicks(log.clicks[search.id])
    for search, following in _attempts(counted):
        is_better = following.total and not log.clicks[search.id]
        if is_better and folded(search.query) != folded(following.query):
            asked, then = queries[folded(search.query)], folded(following.query)
            asked.next[then] += 1
            asked.next_visitors[then].add(search.visitor)
    return sorted(queries.values(), key=lambda one: (-one.n_searches, one.query))


def _attempts(searches: Iterable[LoggedSearch]) -> Iterable[tuple[LoggedSearch, LoggedSearch]]:
    """Yield each search with the next one of the same visitor, where that follows soon."""
    last: dict[str, LoggedSearch] = {}
    for search in searches:
        before = last.get(search.visitor)
        if before is not None and 0 <= search.time - before.time <= NEXT_SECONDS:
            yield before, search
        last[search.visitor] = search


def query_rows(
    log: LoggedSearches,
    titles: Callable[[Sequence[str]], Mapping[str, str]],
    *,
    only: str | None = None,
    k: int | None = None,
    offset: int = 0,
) -> Listing:
    """Return the queries as rows, the most frequent first.

    titles: the titles of known items by the texts of their ids. only: a problem.
    """
    queries = [one for one in asked_queries(log) if only is None or one.problem == only]
    page = queries[offset : None if k is None else offset + k]
    rows = [_row(one, titles) for one in page]
    return Listing(rows, len(queries), NAMES, offset, log.notes())


def _row(asked: AskedQuery, titles: Callable[[Sequence[str]], Mapping[str, str]]) -> dict[str, Any]:
    no_hits = asked.no_hits or {}
    following = asked.next.most_common(N_LISTED) if asked.problem is not None else []
    most_clicked = asked.clicked.most_common(N_LISTED)
    known = titles([item for item, _ in most_clicked])
    return {
        "query": asked.query,
        "searches": asked.n_searches,
        "total": asked.total,
        "clicks": asked.n_clicks,
        "first_clicks": asked.n_first_clicks,
        "problem": asked.problem,
        "reason": no_hits.get("reason"),
        "words": list(no_hits.get("words", ())),
        "conditions": _conditions(no_hits),
        "next": [{"query": query, "searches": n} for query, n in following],
        "clicked": [
            {"id": item, "title": known.get(item), "clicks": n} for item, n in most_clicked
        ],
        "synonyms": _synonyms(asked),
        "pin": _pin(asked, known),
    }


def _conditions(no_hits: Mapping[str, Any]) -> list[str]:
    """Return what leaves no hit: the condition, the filters and the operators of the query."""
    where = [no_hits["where"]] if no_hits.get("where") else []
    return [*where, *no_hits.get("filter", ()), *no_hits.get("operators", ())]


def _synonyms(asked: AskedQuery) -> str | None:
    """Return a line for the file of synonyms that makes the query find what visitors searched for
    next: the words of one that the other lacks. None where no word is missing.
    """
    if asked.problem is None or _is_filtered_out(asked.no_hits):
        return None
    for query, _ in asked.next.most_common():
        if len(asked.next_visitors[query]) < MIN_NEXT:
            continue
        words, others = folded(asked.query).split(), query.split()
        mine = [word for word in words if word not in others]
        theirs = [word for word in others if word not in words]
        if mine and theirs and not any(map(IS_SYNONYM_SIGN, [*mine, *theirs])):
            return f"{' '.join(mine)}, {' '.join(theirs)}"
    return None


def _pin(asked: AskedQuery, known: Mapping[str, str]) -> str | None:
    """Return the rule that brings the item to the top which visitors clicked on further down; None
    where there is none, or `rules add --pin` would take a part of the query for the item.
    """
    if asked.problem != NO_CLICKS or "=" in asked.query:
        return None
    for item, _ in asked.clicked.most_common(N_LISTED):
        if item in known:
            return f"{asked.query}={item}"
    return None
