"""The second pass of search: what attention over the words of the best hundred adds, and costs.

Known-item search for TED talks by title and tags, on the dev queries alone.

QKVSEARCH_DATA=data python benchmarks/token_head.py [CHOICE ...]    (minutes, minilm ten)
"""

from __future__ import annotations

import sys
import time
from functools import partial
from statistics import median
from tempfile import TemporaryDirectory

from common import data_folder

import qkvsearch as qkv
from qkvsearch.data.columns import Columns
from qkvsearch.data.ids import Id
from qkvsearch.data.judgements import Judgements, read_judgements, read_queries
from qkvsearch.engine import Engine
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.retrieval import Head, fuse_known, top_k
from qkvsearch.retrieval.late_interaction import (
    LateInteraction,
    item_tokens,
    late_interaction,
    rerank,
    token_keys,
)
from qkvsearch.texts.encoders import CHOICES
from qkvsearch.texts.pretrained.fetch import find

K = 10
# Whose tokens are compared, the last first of what a choice has.
TOKENS = {"corpus": ["contrastive"], "static": ["static"], "minilm": ["minilm", "static"]}
TEMPERATURES = [0.02, 0.05, 0.1, 0.2, 0.5]
WEIGHTS = [0.0, 0.05, 0.1, 0.15, 0.2, 0.3]


def main(choices: list[str]) -> None:
    print("| encoder | tokens of | temperature | " + " | ".join(map(str, WEIGHTS)), end=" | ")
    print("ms a query | MB per 1,000 items |\n" + "| --- " * (5 + len(WEIGHTS)) + "|")
    folder = data_folder() / "ted"
    for choice in choices:
        if choice != "corpus" and find(choice) is None:
            continue
        columns = Columns(text=("title", "tags"))
        with (
            TemporaryDirectory() as place,
            qkv.build(place, items=folder / "talks.csv", columns=columns, encoder=choice) as engine,
        ):
            for head in TOKENS[choice]:
                measure(engine, choice, head)


def measure(engine: Engine, choice: str, head: str) -> None:
    """Print the table's rows of one encoder's tokens beside the heads of a build."""
    folder = data_folder() / "ted"
    queries = read_queries(folder / "queries_dev.tsv")
    judgements = read_judgements(folder / "qrels_dev.tsv")
    ids = list(engine.tables.ids("items"))
    models = engine.models
    encoder, names = models.encoder(head), models.head_weights
    fields = [
        [engine.tables.text(i, [column]) for i in range(len(ids))] for column in ("title", "tags")
    ]
    stored = item_tokens(encoder, fields)
    keys = token_keys(stored, encoder.table)
    if keys is None:
        return
    size = sum(tokens.nbytes for tokens in stored) / len(ids) / 1e3
    firsts = {
        query: fuse_known({name: engine.head(name, text) for name in names}, names)
        for query, text in queries.items()
    }
    words = {query: encoder.read(text).tokens for query, text in queries.items()}
    for temperature in TEMPERATURES:
        ask = partial(late_interaction, keys=keys, lexical=models.lexical_keys)
        seconds = {
            query: ask(tokens, labels_of=lambda _: (), temperature=temperature)
            for query, tokens in words.items()
        }
        took: list[float] = []
        found = [mrr(firsts, seconds, weight, judgements, ids, took) for weight in WEIGHTS]
        cells = " | ".join(f"{value:.4f}" for value in found)
        ms = 1e3 * median(took)
        print(
            f"| {choice} | {head} | {temperature} | {cells} | {ms:.1f} | {size:.2f} |", flush=True
        )


def mrr(
    firsts: dict[str, Head | None],
    seconds: dict[str, LateInteraction | None],
    weight: float,
    judgements: Judgements,
    ids: list[Id],
    took: list[float],
) -> float:
    """MRR@10 of the second pass with this weight; `took` gets the seconds of each."""
    total = 0.0
    for query, first in firsts.items():
        if first is None:
            continue
        began = time.perf_counter()
        head = rerank(first, seconds[query], weight)
        if weight:
            took.append(time.perf_counter() - began)
        total += reciprocal_rank([ids[j] for j in top_k(head.scores, K)], judgements[query], K)
    return total / len(firsts)


if __name__ == "__main__":
    main(sys.argv[1:] or list(CHOICES))
