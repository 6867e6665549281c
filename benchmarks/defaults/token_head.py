"""The second pass of search: what attention over the words of the best items adds, and costs.

Known-item search for TED talks by title and tags, on the dev queries alone: MRR@10 by the weight of
the token head and its temperature, and by how many items are compared. A weight of 0 is a search
without it.

QKVSEARCH_DATA=data python benchmarks --only token_head    (minutes, minilm ten)
"""

from __future__ import annotations

from functools import partial
from itertools import product
from statistics import fmean, median
from tempfile import TemporaryDirectory

import numpy as np

import qkvsearch as qkv
from benchmarks.support.public_data import ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import timed
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.heads.late_interaction import (
    DEPTH,
    TEMPERATURE,
    TokenKeys,
    item_tokens,
    late_interaction,
    rerank,
)
from qkvsearch.scores.fusion import Scores, fuse
from qkvsearch.scores.topk import top_k
from qkvsearch.tables.ids import id_text
from qkvsearch.text.encoders import CHOICES, SECOND_PASS
from qkvsearch.text.pretrained.fetch import find

K = 10
# Whose tokens are compared, the last first of what a choice has.
TOKENS = {
    "corpus": ["contrastive"],
    "static": ["static"],
    "minilm": ["minilm", "static"],
    "e5": ["e5"],
}
TEMPERATURES = [0.02, 0.05, 0.1, 0.2, 0.5]
WEIGHTS = [0.0, 0.05, 0.1, 0.15, 0.2, 0.3]
DEPTHS = [10, 20, 30, 50, 100]


def by_weight(choice: str) -> list[Row]:
    if choice != "corpus" and find(choice) is None:
        return []
    data = ted("dev")
    columns = qkv.Columns(text=data.text)
    with (
        TemporaryDirectory() as place,
        qkv.build(place, items=data.items, columns=columns, encoder=choice) as engine,
    ):
        return [row for head in TOKENS[choice] for row in of_tokens(engine, choice, head)]


def first_pass(engine: qkv.Engine, text: str) -> Scores | None:
    """The fused heads that know a word of a query; None where none does."""
    found = {name: engine.head(name, text) for name in engine.models.head_weights}
    known = {name: head for name, head in found.items() if head is not None}
    weights = [engine.models.head_weights[name] for name in known]
    return fuse(list(known.values()), weights) if known else None


def of_tokens(engine: qkv.Engine, choice: str, head: str) -> list[Row]:
    """MRR@10 by temperature, weight and depth of one encoder's tokens beside the heads of a build,
    the time of a query's second pass, and the size of what is stored.
    """
    data = ted("dev")
    ids = list(map(id_text, engine.catalog.ids("items")))
    models = engine.models
    encoder, names = models.encoder(head), models.head_weights
    fields = list(map(list, zip(*map(engine.texts.item_texts.of, range(len(ids))), strict=True)))
    stored = list(item_tokens(encoder, fields))
    starts = np.cumsum([0, *map(len, stored)], dtype=np.int64)
    keys = TokenKeys(starts, np.concatenate(stored), encoder.table)
    firsts = {query: first_pass(engine, text) for query, text in data.queries.items()}
    words = {query: encoder.read(text).tokens for query, text in data.queries.items()}
    rows, took = [], []
    attend = partial(late_interaction, keys=keys, lexical=models.lexical_keys)

    def mrr(temperature: float, weight: float, depth: int) -> float:
        ranks = []
        for query, first in firsts.items():
            if first is None:
                ranks.append(0.0)
                continue
            second = attend(words[query], labels_of=lambda _: (), temperature=temperature)
            spent, head = timed(partial(rerank, first, second, weight, depth=depth))
            took.extend([spent] * (weight > 0 and depth == DEPTH))
            best = [ids[place] for place in top_k(head.scores, K)]
            ranks.append(reciprocal_rank(best, data.judgements[query], K))
        return fmean(ranks)

    system = f"{choice}, tokens of {head}"
    for temperature, weight in product(TEMPERATURES, WEIGHTS):
        setting = f"{system}, temperature {temperature:g}"
        figure = mrr(temperature, weight, DEPTH)
        rows.append(Row(f"weight {weight:g}", setting, f"MRR@{K}", figure))
    for depth in DEPTHS:
        figure = mrr(TEMPERATURE, SECOND_PASS.get(head, 0.2) * names[head], depth)
        rows.append(Row(f"the best {depth} compared", system, f"MRR@{K}", figure))
    size = sum(tokens.nbytes for tokens in stored) / len(ids) / 1e3
    cost = Row("the cost", system, "MB for 1,000 items", size, seconds=median(took), ratio=1.0)
    return [*rows, cost]


PARTS = {choice: partial(by_weight, choice) for choice in CHOICES}

if __name__ == "__main__":
    main(__file__, PARTS)
