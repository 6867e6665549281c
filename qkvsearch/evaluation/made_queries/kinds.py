"""The kinds of made queries, and the queries of all of them."""

from __future__ import annotations

from itertools import islice

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import MadeQuery, QueryKind, Source
from qkvsearch.evaluation.made_queries.title_beginning import TitleBeginning
from qkvsearch.rank.loaded_build import LoadedBuild

KINDS: list[QueryKind] = [TitleBeginning()]

# So many queries of each kind.
MAX_QUERIES = 150


def make_queries(
    build: LoadedBuild, random_state: int = 0, per_kind: int = MAX_QUERIES
) -> list[MadeQuery]:
    """Return queries of all kinds that a build allows; the same ones for the same random state."""
    source = Source(build)
    queries: list[MadeQuery] = []
    for number, kind in enumerate(KINDS):
        # A kind of its own has its own numbers, so that a new kind does not change the others.
        rng = np.random.default_rng([random_state, number])
        queries += islice(kind.make(source, rng), per_kind)
    return queries
