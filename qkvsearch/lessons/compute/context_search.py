"""Lesson on a real transformer: a search by its table of words alone, and one by its layers."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch.lessons.compute.videos import all_titles
from qkvsearch.text.labelled import unit_rows

# `docs/minilm_layers.py` wrote it and describes it.
RECORDED = Path(__file__).with_name("minilm_layers.json")
# Judged queries of the sample with a word of two meanings, from what the script prints: three that
# the layers help, and one that they hurt.
QUERIES = (
    "java, the kind you drink",
    "a fan who never misses a match",
    "bank where herons nest",
    "jaguar with strings",
)
# What each of them looks for.
WANTED = (
    "Tasting Java: a coffee roaster compares four island farms",
    "Forty seasons in the rain: portrait of a third-division fan",
    "Six weeks beside a heronry",
    "Why offset guitars rattle: setting up a Fender Jaguar",
)
# The layers after which the cosines of a word are shown.
DEPTHS = (0, 1, 3, 6)


@dataclass(frozen=True)
class ContextSearch:
    """A query's first title by the table alone and by the layers, and where the wanted one is.

    places: by the table and by the layers, from 1; None where nothing is known to be wanted.
    """

    query: str
    by_table: str
    by_layers: str
    places: tuple[int, int] | None = None


def table_vectors(encoder: Any, texts: Iterable[str]) -> np.ndarray:
    """Return the mean of the vectors of a text's pieces in the table of words, at length 1 (n, d).

    No piece knows which others stand beside it; [CLS] and [SEP] are left out.
    """
    encodings = encoder.tokenizer.encode_batch(list(texts), add_special_tokens=False)
    width = encoder.embedding.kind.shape[0]
    means = [
        np.asarray(encoder.embedding.words(np.array(each.ids))).mean(axis=0)
        if each.ids
        else np.zeros(width)
        for each in encodings
    ]
    return np.asarray(unit_rows(np.array(means)))


def rankings(encoder: Any, queries: Sequence[str]) -> np.ndarray:
    """Return the order of the sample's titles for each query: by the table alone, by the layers.

    -> int (2, n_queries, n_titles), the numbers of titles from the best on.
    """
    titles = all_titles()
    scores = (
        table_vectors(encoder, queries) @ table_vectors(encoder, titles).T,
        encoder.encode_many(queries) @ encoder.encode_many(titles).T,
    )
    return np.argsort(-np.array(scores), axis=2, kind="stable")


def searches(encoder: Any, queries: Sequence[str] = QUERIES) -> list[ContextSearch]:
    """Search the titles of the sample with each query, by the table alone and by the layers."""
    titles = all_titles()
    wanted = dict(zip(QUERIES, WANTED, strict=True))
    found = []
    for query, by_table, by_layers in zip(queries, *rankings(encoder, queries), strict=True):
        places = None
        if query in wanted:
            item = titles.index(wanted[query])
            places = _place(by_table, item), _place(by_layers, item)
        found.append(ContextSearch(query, titles[by_table[0]], titles[by_layers[0]], places))
    return found


def _place(order: np.ndarray, item: int) -> int:
    return int(np.flatnonzero(order == item)[0]) + 1


def recorded_layers() -> dict[str, Any]:
    """Return what MiniLM gave: "searches", "cosines" of “it” by depth, and "judged".

    judged: how many queries were judged, and for how many of them the first title is a right one,
    by the table alone and by the layers.
    """
    found = json.loads(RECORDED.read_text(encoding="utf-8"))
    for one in found["searches"]:
        one["places"] = tuple(one["places"])
    found["searches"] = [ContextSearch(**one) for one in found["searches"]]
    found["cosines"] = np.array(found["cosines"])
    return dict(found)
