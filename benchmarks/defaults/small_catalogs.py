"""What encoders learn from small catalogs: words alone, all heads, and what `build` takes there.

Parts of TED's talks, drawn at random, searched by title and tags with the dev queries that a talk
of the part answers. The smaller a part, the more of them are drawn. "all heads" are weighed as in a
large catalog. Without the heads that are learned from the catalog, words take over their weights,
as `build` decides below 500 items; with `corpus`, these heads order what words leave equal. "over
words" is the mean difference of a query, ± 1.96 standard errors. The first pass alone ranks, and
all queries get hits.

QKVSEARCH_DATA=data python benchmarks --only small_catalogs    (three minutes)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from tempfile import TemporaryDirectory

import numpy as np

import qkvsearch as qkv
from benchmarks.support.public_data import JudgedTexts, ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.learn.head_weights import without_learned
from qkvsearch.scores.fusion import fuse
from qkvsearch.scores.topk import top_k
from qkvsearch.tables.ids import id_text
from qkvsearch.text.encoders import prior_weights
from qkvsearch.text.pretrained.fetch import find

K = 10
# The number of talks in a part, and how many parts there are.
SIZES = {100: 12, 250: 6, 500: 4, 1000: 3}
WORDS, ALL, RULE = "words alone", "all heads", "without those learned from it"


def by_size(encoder: str) -> Iterator[Row]:
    if encoder != "corpus" and find(encoder) is None:
        return
    data = ted("dev")
    prior = prior_weights(encoder)
    systems: dict[str, Mapping[str, float]] = {
        WORDS: {"lexical": 1.0},
        ALL: prior,
        RULE: without_learned(prior),
    }
    for size, n_parts in SIZES.items():
        ranks: dict[str, list[float]] = defaultdict(list)
        for seed in range(n_parts):
            for system, of_part in ranks_of(part_of(data, size, seed), encoder, systems).items():
                ranks[system] += of_part
        task = f"{n_parts} parts of {size:,} talks, {len(ranks[WORDS]):,} queries, {encoder}"
        for system in systems:
            yield Row(task, system, f"MRR@{K}", float(np.mean(ranks[system])))
            if system != WORDS:
                yield from difference(task, system, ranks[system], ranks[WORDS])


def part_of(data: JudgedTexts, size: int, seed: int) -> JudgedTexts:
    """A part of the talks, and the queries that one of them answers."""
    rows = np.random.default_rng(seed).permutation(len(data.items))[:size]
    items = data.items.iloc[np.sort(rows)]
    kept = set(items["id"].map(id_text))
    judgements = {
        query: {item: grade for item, grade in right.items() if item in kept}
        for query, right in data.judgements.items()
    }
    answered = {query: text for query, text in data.queries.items() if judgements.get(query)}
    return JudgedTexts(items, data.text, answered, judgements)


def ranks_of(
    data: JudgedTexts, encoder: str, systems: Mapping[str, Mapping[str, float]]
) -> dict[str, list[float]]:
    """The reciprocal rank of each query by each system's weights of heads."""
    ranks: dict[str, list[float]] = {system: [] for system in systems}
    columns = qkv.Columns(id="id", text=data.text)
    with (
        TemporaryDirectory() as place,
        qkv.build(place, items=data.items, columns=columns, encoder=encoder) as engine,
    ):
        ids = list(engine.catalog.ids("items"))
        names = list(engine.models.head_weights)
        for query, text in data.queries.items():
            heads = {name: head for name in names if (head := engine.head(name, text)) is not None}
            for system, weights in systems.items():
                counted = [name for name in heads if weights.get(name, 0) > 0]
                best = []
                if counted:
                    scores = [heads[name] for name in counted]
                    fused = fuse(scores, [weights[name] for name in counted])
                    best = [id_text(ids[row]) for row in top_k(fused.scores, K)]
                ranks[system].append(reciprocal_rank(best, data.judgements[query], K))
    return ranks


def difference(task: str, system: str, ranks: list[float], others: list[float]) -> Iterator[Row]:
    """The mean difference of the same queries, and 1.96 standard errors."""
    differences = np.array(ranks) - np.array(others)
    error = 1.96 * differences.std() / np.sqrt(len(differences))
    yield Row(task, system, "over words", float(differences.mean()))
    yield Row(task, system, "±", float(error))


PARTS = {encoder: partial(by_size, encoder) for encoder in ("corpus", "static", "minilm")}

if __name__ == "__main__":
    main(__file__, PARTS)
