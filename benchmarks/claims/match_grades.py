"""What the grades of hits are worth: TED's dev queries, and words of videos and films.

The catalog of TED is titles and tags, and one talk is right for each query. Of 2,335 videos and
9,742 films the queries are made: two words of a title, not those that 1 % of the titles have; a hit
is right if its title has both in any form. Of the ten hits of each query: the share of each grade
that is right and that the grade makes up, and how many of the first hits that are right are strong.
Cranfield's queries, which TED does not answer, show how many of their first hits are called strong.

QKVSEARCH_DATA=data python benchmarks --only match_grades    (three minutes)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import qkvsearch as qkv
from benchmarks.support.public_data import cranfield, data_folder, ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.text.analysis import stem
from qkvsearch.text.encoders import CHOICES
from qkvsearch.text.pretrained.fetch import find

N_QUERIES, SEED = 400, 37


def talks(encoder: str) -> list[Row]:
    if encoder != "corpus" and find(encoder) is None:
        return []
    data = ted("dev")
    columns = qkv.Columns(id="id", title="title", text=data.text)
    queries = list(data.queries.items())[:: max(1, len(data.queries) // N_QUERIES)]
    with TemporaryDirectory() as folder:
        engine = qkv.build(Path(folder, "ted"), items=data.items, columns=columns, encoder=encoder)
        right = {text: data.judgements[id_] for id_, text in queries}
        rows = graded(engine, f"TED talks with {encoder}", right, lambda hit, of: str(hit.id) in of)
        firsts = [engine.search(text, k=1) for text in cranfield().queries.values()]
        strong = sum(hits[0].match == "strong" for hits in firsts if hits)
        what = "first hits of Cranfield's queries that are strong"
        return [*rows, Row(f"TED talks with {encoder}", what, "share", strong / len(firsts))]


def titles(path: str, title: str, encoding: str) -> list[Row]:
    table = pd.read_csv(data_folder() / path, dtype=str, encoding=encoding).drop_duplicates(title)
    words = [set(_words(text)) for text in table[title]]
    counts, rng = Counter(word for of in words for word in of), np.random.default_rng(SEED)
    right: dict[str, set[str]] = {}
    for row in rng.permutation(len(words)).tolist():
        rare = sorted(word for word in words[row] if counts[word] < 0.01 * len(words))
        if len(rare) > 1 and len(right) < N_QUERIES:
            two = rng.permutation(rare)[:2].tolist()
            right[" ".join(two)] = set(two)
    with TemporaryDirectory() as folder:
        items = pd.DataFrame({"id": range(len(table)), "title": table[title].to_numpy()})
        engine = qkv.build(Path(folder, "titles"), items=items, encoder="static")
        return graded(engine, path, right, lambda hit, of: _stems(of) <= _stems(_words(hit.title)))


def _stems(words: Iterable[str]) -> set[str]:
    return {stem(word) for word in words}


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]{3,}", text.lower())


def graded(
    engine: qkv.Engine, task: str, right: dict[str, set[str]], is_right: Callable[..., bool]
) -> list[Row]:
    n_of, right_of, n_first, n_strong = Counter[str](), Counter[str](), 0, 0
    for text, of in right.items():
        for hit in engine.search(text, k=10):
            n_of[hit.match] += 1
            if is_right(hit, of):
                right_of[hit.match] += 1
                n_first += hit.rank == 1
                n_strong += hit.rank == 1 and hit.match == "strong"
    rows = []
    for grade in ("strong", "good", "weak"):
        rows.append(Row(task, f"{grade} hits", "share right", right_of[grade] / (n_of[grade] or 1)))
        rows.append(Row(task, f"{grade} hits", "share of hits", n_of[grade] / n_of.total()))
    return [
        *rows,
        Row(task, "right first hits that are strong", "share", n_strong / (n_first or 1)),
    ]


PARTS = {
    **{choice: partial(talks, choice) for choice in CHOICES if choice != "auto"},
    "youtube": partial(titles, "youtube/USvideos_2017.csv", "title", "utf-8"),
    "films": partial(titles, "ml-latest-small/movies.csv", "title", "utf-8"),
}

if __name__ == "__main__":
    main(__file__, PARTS)
