"""The second pass of search: what attention over the words of the best hundred adds, and costs.

Known-item search for TED talks by title and tags, on the dev queries alone: MRR@10 by the weight of
the token head and its temperature. A weight of 0 is a search without it.

QKVSEARCH_DATA=data python benchmarks --only token_head    (minutes, minilm ten)
"""

from __future__ import annotations

from functools import partial
from statistics import fmean, median
from tempfile import TemporaryDirectory

import qkvsearch as qkv
from benchmarks.support.public_data import ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import timed
from qkvsearch.data.ids import id_text
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.retrieval import fuse_known, top_k
from qkvsearch.retrieval.late_interaction import (
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


def of_tokens(engine: qkv.Engine, choice: str, head: str) -> list[Row]:
    """MRR@10 by temperature and weight of one encoder's tokens beside the heads of a build, the
    time of a query's second pass, and the size of what is stored.
    """
    data = ted("dev")
    ids = list(map(id_text, engine.tables.ids("items")))
    models = engine.models
    encoder, names = models.encoder(head), models.head_weights
    fields = list(map(list, zip(*map(engine.texts.texts, range(len(ids))), strict=True)))
    stored = list(item_tokens(encoder, fields))
    keys = token_keys(stored, encoder.table)
    if keys is None:
        return []
    firsts = {
        query: fuse_known({name: engine.head(name, text) for name in names}, names)
        for query, text in data.queries.items()
    }
    words = {query: encoder.read(text).tokens for query, text in data.queries.items()}
    rows, took = [], []
    for temperature in TEMPERATURES:
        attend = partial(late_interaction, keys=keys, lexical=models.lexical_keys)
        seconds = {
            query: attend(tokens, labels_of=lambda _: (), temperature=temperature)
            for query, tokens in words.items()
        }
        for weight in WEIGHTS:
            ranks = []
            for query, first in firsts.items():
                if first is None:
                    ranks.append(0.0)
                    continue
                spent, second = timed(partial(rerank, first, seconds[query], weight))
                took += [spent] if weight else []
                best = [ids[place] for place in top_k(second.scores, K)]
                ranks.append(reciprocal_rank(best, data.judgements[query], K))
            task = f"weight {weight:g}"
            setting = f"{choice}, tokens of {head}, temperature {temperature:g}"
            rows.append(Row(task, setting, f"MRR@{K}", fmean(ranks)))
    size = sum(tokens.nbytes for tokens in stored) / len(ids) / 1e3
    system = f"{choice}, tokens of {head}"
    cost = Row("the cost", system, "MB for 1,000 items", size, seconds=median(took), ratio=1.0)
    return [*rows, cost]


PARTS = {choice: partial(by_weight, choice) for choice in CHOICES}

if __name__ == "__main__":
    main(__file__, PARTS)
