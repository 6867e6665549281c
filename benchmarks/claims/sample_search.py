"""Questions written to be hard for words alone: nDCG@10 by words, by meaning, and by both.

Queries and judgements come with the samples. They tell the heads apart, not how good either is
elsewhere (datasets/README.md). The 40 later ones were written before any result of theirs was
looked at, with typos and Chinese among them.

python benchmarks --only sample_search    (half a minute)
"""

from __future__ import annotations

from functools import partial
from tempfile import TemporaryDirectory

import qkvsearch as qkv
from benchmarks.support.quality import ask, mean_over
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare
from qkvsearch.evaluation.metrics import ndcg
from qkvsearch.tables.judgements import read_judgements, read_queries
from qkvsearch.tables.samples import datasets_folder

K, TURNS = 10, 9
HEADS = {
    "qkvsearch, defaults": ["lexical", "semantic"],
    "qkvsearch, lexical alone": ["lexical"],
    "qkvsearch, semantic alone": ["semantic"],
}


# The number of the first query that was written later.
LATER = 61


def videos(is_later: bool = False) -> list[Row]:
    every = read_queries(datasets_folder() / "queries.tsv")
    queries = {
        query: text for query, text in every.items() if (int(query[1:]) >= LATER) == is_later
    }
    judgements = read_judgements(datasets_folder() / "qrels.tsv")
    which = f"{len(queries)} {'later' if is_later else 'bundled'} queries"
    task = f"`sample:videos` with static, {which}; a query"
    texts, judge = list(queries.values()), mean_over(ndcg, K, queries, judgements)
    with (
        TemporaryDirectory() as folder,
        qkv.build(folder, "sample:videos", encoder="static") as engine,
    ):
        systems = [System(name, partial(ask, engine, heads, K)) for name, heads in HEADS.items()]
        return compare(task, systems, [texts], f"nDCG@{K}", judge, turns=TURNS, per=len(queries))


PARTS = {"videos": videos, "later": partial(videos, True)}

if __name__ == "__main__":
    main(__file__, PARTS)
