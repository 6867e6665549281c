"""On questions written to be hard for words alone, meaning helps: nDCG@10 by head, and by both.

Queries and judgements come with the samples. They tell the heads apart, not how good either is
elsewhere (datasets/README.md).

python benchmarks/judged_search.py
"""

from __future__ import annotations

from functools import partial
from tempfile import TemporaryDirectory

from common import Row, System, ask, compare, mean_over, print_table

import qkvsearch as qkv
from qkvsearch.data.judgements import read_judgements, read_queries
from qkvsearch.data.samples import datasets_folder
from qkvsearch.evaluation.metrics import ndcg

K, TURNS = 10, 9
HEADS = {
    "qkvsearch, defaults": ["lexical", "semantic"],
    "qkvsearch, lexical alone": ["lexical"],
    "qkvsearch, semantic alone": ["semantic"],
}


def claim() -> list[Row]:
    queries = read_queries(datasets_folder() / "queries.tsv")
    judgements = read_judgements(datasets_folder() / "qrels.tsv")
    task = f"`sample:videos`, {len(queries)} bundled queries; a query"
    turns = [list(queries.values())] * TURNS
    judge = mean_over(ndcg, K, queries, judgements)
    with TemporaryDirectory() as folder, qkv.build(folder, "sample:videos") as engine:
        systems = [System(name, partial(ask, engine, heads, K)) for name, heads in HEADS.items()]
        return compare(task, systems, turns, f"nDCG@{K}", judge, per=len(queries))


if __name__ == "__main__":
    print_table([claim])
