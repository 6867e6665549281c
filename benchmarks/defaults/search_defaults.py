"""The weights of the search heads: given, and as a build of this catalog uses them.

Known-item search for TED talks by title and tags, on the dev queries alone.

QKVSEARCH_DATA=data python benchmarks --only search_defaults
(minutes; minilm, e5, and "best", all together, where they are installed)
"""

from __future__ import annotations

from functools import partial
from statistics import fmean
from tempfile import TemporaryDirectory

import qkvsearch as qkv
from benchmarks.support.public_data import ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.scores.fusion import fuse
from qkvsearch.scores.topk import top_k
from qkvsearch.tables.ids import id_text
from qkvsearch.text.encoders import ALL_ENGLISH, BEST, CHOICES, SPEEDS, prior_weights
from qkvsearch.text.pretrained.fetch import find

K = 10


def by_weights(choice: str) -> list[Row]:
    needed = [name for name in ALL_ENGLISH if name in SPEEDS] if choice == BEST else [choice]
    if choice != "corpus" and any(find(name) is None for name in needed):
        return []
    data = ted("dev")
    prior = prior_weights(choice)
    columns = qkv.Columns(text=data.text)
    rows = []
    with (
        TemporaryDirectory() as place,
        qkv.build(place, items=data.items, columns=columns, encoder=choice) as engine,
    ):
        ids = list(engine.catalog.ids("items"))
        found = {
            query: [head for name in prior if (head := engine.head(name, text)) is not None]
            for query, text in data.queries.items()
        }
        alone = {f"{name} alone": {**dict.fromkeys(prior, 0.0), name: 1.0} for name in prior}
        together = {"given": prior, "used": engine.models.head_weights}
        for label, weights in {**alone, **together}.items():
            ranks = []
            for query, heads in found.items():
                counted = [head for head in heads if weights[head.name]]
                best = []  # where no head that counts knows a word of the query
                if counted:
                    fused = fuse(counted, [weights[head.name] for head in counted])
                    best = [id_text(ids[place]) for place in top_k(fused.scores, K)]
                ranks.append(reciprocal_rank(best, data.judgements[query], K))
            shown = ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items())
            system = f"{label}: {shown}" if label in together else label
            rows.append(Row(f"TED dev queries, {choice}", system, f"MRR@{K}", fmean(ranks)))
    return rows


PARTS = {choice: partial(by_weights, choice) for choice in (*CHOICES, BEST)}

if __name__ == "__main__":
    main(__file__, PARTS)
