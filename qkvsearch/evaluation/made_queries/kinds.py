"""The kinds of made queries, and the queries of all of them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import islice
from zlib import crc32

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch.evaluation.made_queries.alike_by_sentence import AlikeBySentence
from qkvsearch.evaluation.made_queries.alike_by_title import AlikeByTitle
from qkvsearch.evaluation.made_queries.description import Description
from qkvsearch.evaluation.made_queries.description_clause import DescriptionClause
from qkvsearch.evaluation.made_queries.query_kind import HEADS, MadeQuery, QueryKind
from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.made_queries.title_as_it_is import TitleAsItIs
from qkvsearch.evaluation.made_queries.title_beginning import TitleBeginning
from qkvsearch.evaluation.made_queries.title_synonym import TitleSynonym
from qkvsearch.evaluation.made_queries.title_typo import TitleTypo
from qkvsearch.evaluation.made_queries.title_word_left_out import TitleWordLeftOut
from qkvsearch.evaluation.made_queries.title_words_swapped import TitleWordsSwapped
from qkvsearch.evaluation.made_queries.value_and_word import ValueAndWord
from qkvsearch.evaluation.made_queries.words_among_alike import WordsAmongAlike
from qkvsearch.rank.loaded_build import LoadedBuild

KINDS: list[QueryKind] = [
    Description(),
    DescriptionClause(),
    TitleBeginning(),
    TitleTypo(),
    TitleWordLeftOut(),
    TitleWordsSwapped(),
    TitleSynonym(),
    ValueAndWord(),
    WordsAmongAlike(),
    AlikeByTitle(),
    AlikeBySentence(),
]
# Asked where a catalog allows no kind of `KINDS`.
LAST_RESORT: QueryKind = TitleAsItIs()
KINDS_BY_NAME: Mapping[str, QueryKind] = {kind.name: kind for kind in [*KINDS, LAST_RESORT]}

# So many queries of each kind. Those that compare heads have so many times more, together: most
# settings differ little.
MAX_QUERIES, FOR_HEADS = 150, 6


def make_queries(
    build: LoadedBuild,
    random_state: int = 0,
    per_kind: int = MAX_QUERIES,
    *,
    only: Container[str] | None = None,
    source: QueriedCatalog | None = None,
    progress: Progress = silent,
) -> list[MadeQuery]:
    """Return queries of all kinds that a build allows; the same ones for the same random state.

    per_kind: how many of each. The kinds that compare heads have six times as many, together.
    only: the names of the kinds to make, None for all. Their queries are the same either way.
    source: of this build, where there is one already: it remembers what it has read.
    """
    source = source or QueriedCatalog(build)
    queries: list[MadeQuery] = []
    n_for_heads = per_kind * FOR_HEADS // max(1, sum(kind.carries_heads(source) for kind in KINDS))
    for done, kind in enumerate(KINDS):
        progress("making queries", done, len(KINDS))
        if only is not None and kind.name not in only:
            continue
        n_queries = n_for_heads if kind.carries_heads(source) else per_kind
        queries += _some(kind, source, random_state, n_queries)
    if not queries and only is None:
        queries += _some(LAST_RESORT, source, random_state, per_kind)
    progress("making queries", len(KINDS), len(KINDS))
    return queries


def _some(
    kind: QueryKind, source: QueriedCatalog, random_state: int, n_queries: int
) -> list[MadeQuery]:
    """Return at most so many queries of a kind."""
    # A kind has its own random numbers, so that a new kind does not change the others.
    rng = np.random.default_rng([random_state, crc32(kind.name.encode())])
    return list(islice(_distinct(kind.make(source, rng)), n_queries))


def _distinct(queries: Iterable[MadeQuery]) -> Iterator[MadeQuery]:
    """Yield the queries without those that were asked before: items may share a title."""
    asked: set[str] = set()
    for query in queries:
        if query.text not in asked:
            asked.add(query.text)
            yield query


def kinds_that_count(queries: list[MadeQuery], source: QueriedCatalog) -> list[str]:
    """Return the names of the kinds over which a report averages, in the order of the kinds.

    These are the kinds that compare heads on catalogs like this one: their mean orders settings as
    people do. Where the catalog allows none of these, they are all kinds.
    """
    present = {query.kind for query in queries}
    kinds = [kind for name, kind in KINDS_BY_NAME.items() if name in present]
    with_heads = [kind.name for kind in kinds if HEADS in kind.carries(source)]
    return with_heads or [kind.name for kind in kinds]
