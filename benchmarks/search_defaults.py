"""The weights of the search heads: given, learned from the catalogue, and halfway, which is used.

Known-item search for TED talks by title and tags, on the dev queries alone.

QKVSEARCH_DATA=data python benchmarks/search_defaults.py    (minutes; minilm where it is installed)
"""

from __future__ import annotations

from tempfile import TemporaryDirectory

from common import data_folder

import qkvsearch as qkv
from qkvsearch.data.columns import Columns
from qkvsearch.data.judgements import read_judgements, read_queries
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.retrieval import fuse
from qkvsearch.texts.encoders import CHOICES, prior_weights
from qkvsearch.texts.pretrained.fetch import find

K = 10


def main() -> None:
    folder = data_folder() / "ted"
    queries = read_queries(folder / "queries_dev.tsv")
    judgements = read_judgements(folder / "qrels_dev.tsv")
    print("| encoder | weights | MRR@10 | " + " | ".join(CHOICES["minilm"]) + " |")
    print("| --- " * (3 + len(CHOICES["minilm"])) + "|")
    for choice in CHOICES:
        if choice != "corpus" and find(choice) is None:
            continue
        prior = prior_weights(choice)
        columns = Columns(text=("title", "tags"))
        with (
            TemporaryDirectory() as place,
            qkv.build(place, items=folder / "talks.csv", columns=columns, encoder=choice) as engine,
        ):
            used = engine.models.head_weights
            learned = {name: 2 * used[name] - prior[name] for name in prior}
            ids = list(engine.tables.ids("items"))
            found = {name: [engine.head(name, text) for text in queries.values()] for name in prior}
            alone = [(f"{name} alone", {**dict.fromkeys(prior, 0), name: 1}) for name in prior]
            for label, weights in (
                *alone,
                ("given", prior),
                ("learned", learned),
                ("halfway", used),
            ):
                total = 0.0
                for i, query in enumerate(queries):
                    heads = [h for name in prior if (h := found[name][i]) is not None]
                    fused = fuse(heads, [weights[head.name] for head in heads])
                    best = (-fused.scores).argsort(kind="stable")[:K]
                    total += reciprocal_rank([ids[j] for j in best], judgements[query], K)
                shown = " | ".join(f"{weights.get(n, 0):.2f}" for n in CHOICES["minilm"])
                print(f"| {choice} | {label} | {total / len(queries):.4f} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
