"""What is shown for queries with a word that the catalog lacks, and what is not.

293 queries of our own for six catalogs, in English, Chinese and German, with judgements that were
written before any result was looked at (benchmarks/queries/unknown_words.tsv); one that turned out
to be wrong was corrected. The rules of `qkvsearch/rank/named_things.py` were chosen on the first
185. The 68 later ones were written when the rules stood, and 40 as a test of what categories and
words of asking are worth. A query is for something that the catalog
*has*, for something *near* what it has ("cheap tent" in a shop that calls nothing cheap, "blue
backpack" where backpacks are red), or for something *other*.

Of the first two kinds, the share whose first hit is right and no weak match, so that it is shown
where weak hits are left out; of the second kind, the share that is called strong, which promises
too much; of the third kind, the share that has no hits or weak ones alone.

QKVSEARCH_DATA=data python benchmarks --only unknown_words    (three minutes)
QKVSEARCH_DATA=data python -m benchmarks.claims.unknown_words films-e5    (and others by name)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import qkvsearch as qkv
from benchmarks.support.public_data import data_folder
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.small_shops import kitchen_shop, outdoor_shop
from qkvsearch.rank.grades import STRONG, WEAK
from qkvsearch.text.pretrained.fetch import find

QUERIES = Path(__file__).parents[1] / "queries" / "unknown_words.tsv"
HAS, NEAR, OTHER = "has", "near", "other"
PARTS_OF_QUERIES = ("first", "later", "test")


class Query(NamedTuple):
    """A query of the list."""

    # One of `PARTS_OF_QUERIES`.
    part: str
    catalog: str
    kind: str
    query: str
    # A pattern that one of the texts of a right hit matches.
    right: str


class First(NamedTuple):
    """The first hit of a query."""

    query: Query
    # None where there is no hit.
    match: str | None
    title: str
    is_right: bool

    @property
    def is_shown(self) -> bool:
        """Whether it is shown where weak hits are left out."""
        return self.match not in (None, WEAK)


def catalogs() -> Mapping[str, Callable[[], dict[str, Any]]]:
    """By name, the arguments of `build` that a catalog needs."""
    return {
        "outdoor": lambda: {"items": outdoor_shop()},
        "kitchen": lambda: {"items": kitchen_shop()},
        "films": lambda: {"items": data_folder() / "zh-films" / "films.csv"},
        "museum": lambda: {"items": data_folder() / "museum" / "objects.jsonl"},
        "videos": lambda: {"source": "sample:videos"},
        "movielens": lambda: {"items": data_folder() / "ml-latest-small" / "movies.csv"},
    }


def queries(catalog: str) -> list[Query]:
    table = pd.read_csv(QUERIES, sep="\t", keep_default_na=False)
    every = [Query(*row) for row in table.itertuples(index=False)]
    return [query for query in every if query.catalog == catalog]


def first(engine: qkv.Engine, query: Query) -> First:
    hits = engine.search(query.query, k=1)
    if not hits:
        return First(query, None, "", False)
    hit = hits[0]
    texts = engine.texts.item_texts.of(int(hits.positions[0]))
    is_right = query.kind != OTHER and any(re.search(query.right, text) for text in texts)
    return First(query, hit.match, str(hit.title), is_right)


def worth(task: str, firsts: Iterable[First]) -> list[Row]:
    of_kind: dict[str, list[First]] = {HAS: [], NEAR: [], OTHER: []}
    for one in firsts:
        of_kind[one.query.kind].append(one)
    shares = {
        "has it: right and shown": [one.is_right and one.is_shown for one in of_kind[HAS]],
        "near: right and shown": [one.is_right and one.is_shown for one in of_kind[NEAR]],
        "near: strong": [one.match == STRONG for one in of_kind[NEAR]],
        "other: none or weak": [not one.is_shown for one in of_kind[OTHER]],
    }
    return [Row(task, what, "share", float(np.mean(of))) for what, of in shares.items() if of]


def catalog(name: str, encoder: str) -> list[Row]:
    if encoder != "corpus" and find(encoder) is None:
        return []
    with TemporaryDirectory() as folder:
        arguments = catalogs()[name]()
        with qkv.build(Path(folder, name), encoder=encoder, **arguments) as engine:
            firsts = [first(engine, query) for query in queries(name)]
    rows = []
    for part in PARTS_OF_QUERIES:
        of_part = [one for one in firsts if one.query.part == part]
        rows += worth(f"{name} with {encoder}, {part} queries", of_part)
    return rows


def _parts(encoders: Iterable[str]) -> dict[str, Callable[[], Iterable[Row]]]:
    return {
        f"{name}-{encoder}": partial(catalog, name, encoder)
        for name in catalogs()
        for encoder in encoders
    }


PARTS = _parts(("corpus", "static"))
# Transformers read films and objects for minutes.
EXTRA = _parts(("minilm", "e5"))

if __name__ == "__main__":
    main(__file__, PARTS, EXTRA)
