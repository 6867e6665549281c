"""Records what the layers of MiniLM change: python docs/minilm_layers.py [MODEL_FOLDER]

Writes qkvsearch/lessons/compute/minilm_layers.json, which the course shows where the model is not
installed. Of the model it holds no weight:

searches   the queries of the lesson: the first title of the sample of videos by the table of words
           alone and by the layers, and the places of the title that is wanted
judged     of the judged queries of that sample: how many there are, and how many of them have a
           title that was judged best in the first place, by the table alone and by the layers
cosines    of "it" with each word of the lesson's sentence, before any layer and after each

It also prints the judged queries that the layers help and hurt most, from which those of the lesson
were chosen. Needs qkvsearch[encoders] and `qkvsearch model fetch minilm`, or the model's folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch.lessons.compute.context_search import RECORDED, rankings, searches
from qkvsearch.lessons.compute.learning import ANIMAL, measured
from qkvsearch.lessons.compute.videos import all_titles
from qkvsearch.tables.judgements import read_judgements, read_queries
from qkvsearch.tables.sources import read_source
from qkvsearch.text.encoders import pretrained

DATASETS = Path(__file__).parent.parent / "datasets"
DECIMALS = 5
PRINTED = 8


def places_of_the_best(
    order: np.ndarray, grades: Mapping[Any, Mapping[Any, float]], ids: list[Any]
) -> np.ndarray:
    """Return the place of the first title with a query's highest grade, from 1.

    order: int (n, n_titles), a query of `grades` each -> int (n,).
    """
    places = []
    for row, graded in zip(order, grades.values(), strict=True):
        best = {item for item, grade in graded.items() if grade == max(graded.values())}
        places.append(1 + next(n for n, item in enumerate(row) if ids[item] in best))
    return np.array(places)


def main(model: str = "minilm") -> None:
    encoder = pretrained(model)
    queries = read_queries(DATASETS / "queries.tsv")
    judgements = read_judgements(DATASETS / "qrels.tsv")
    grades = {name: judgements[name] for name in queries}
    catalog_ids = read_source("sample:videos").catalog.ids
    ids = [catalog_ids[n] for n in range(len(catalog_ids))]
    by_table, by_layers = (
        places_of_the_best(order, grades, ids)
        for order in rankings(encoder, list(queries.values()))
    )
    gain = np.log(by_table) - np.log(by_layers)
    texts = list(queries.values())
    for n in [*np.argsort(-gain)[:PRINTED], *np.argsort(gain)[:PRINTED]]:
        print(f"{by_table[n]:>4} → {by_layers[n]:<4} {texts[n]}")
    depths = measured(encoder, ANIMAL.sentences[0], "it", "animal").depths
    recorded = {
        "searches": [vars(one) for one in searches(encoder)],
        "judged": [len(queries), int((by_table == 1).sum()), int((by_layers == 1).sum())],
        "cosines": depths.round(DECIMALS).tolist(),
    }
    RECORDED.write_text(json.dumps(recorded, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(f"{RECORDED}: {len(all_titles())} titles, {recorded['judged']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
