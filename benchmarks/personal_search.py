"""How much a user's taste should count beside the query: tags that people gave to films.

ml-latest-small: a tag that someone gave asks for the films they gave it to. A film's text is its
title, its genres and the tags of the other half of the people; of a person we know the ratings of
films that they did not tag, and no model sees the others.

QKVSEARCH_DATA=data python benchmarks/personal_search.py
"""

from __future__ import annotations

from functools import partial
from statistics import fmean
from tempfile import TemporaryDirectory

import pandas as pd
from common import data_folder

import qkvsearch as qkv
from qkvsearch.answers import search
from qkvsearch.data.columns import Columns
from qkvsearch.evaluation.metrics import reciprocal_rank

WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
# Of one person so many tags, or one keen tagger would be the benchmark.
MOST_TAGS, K = 40, 10


def main() -> None:
    folder = data_folder() / "ml-latest-small"
    tags, films, ratings = (
        pd.read_csv(folder / f"{name}.csv") for name in ("tags", "movies", "ratings")
    )
    pairs = tags[["userId", "movieId"]].drop_duplicates()
    known = ratings.merge(pairs, how="left", indicator=True).query("_merge == 'left_only'")
    known = known.drop(columns="_merge")
    people = sorted(set(tags.userId) & set(known.userId))
    for name, asking in (("first half", people[::2]), ("second half", people[1::2])):
        others = tags[~tags.userId.isin(asking)].groupby("movieId").tag.agg(" ".join)
        items = films.assign(tags=films.movieId.map(others).fillna(""))
        columns = Columns(id="movieId", title="title", text=("title", "genres", "tags"))
        with (
            TemporaryDirectory() as place,
            qkv.build(
                place, items=items, interactions=known, columns=columns, encoder="static"
            ) as engine,
        ):
            mine = tags[tags.userId.isin(asking)]
            found = {
                weight: fmean(
                    _of_person(engine, user, given, weight)
                    for user, given in mine.groupby("userId")
                )
                for weight in WEIGHTS
            }
        print(f"{name} ({len(asking)} people): MRR@{K} by the weight of their taste")
        print("  ".join(f"{weight:g}: {value:.4f}" for weight, value in found.items()))


def _of_person(engine: qkv.Engine, user: int, tags: pd.DataFrame, weight: float) -> float:
    search.TASTE_WEIGHT = weight
    by_tag = list(tags.groupby("tag").movieId)[:MOST_TAGS]
    ask = partial(engine.search, k=K, user=user if weight else None)
    return fmean(
        reciprocal_rank(
            [str(hit.id) for hit in ask(str(tag))], dict.fromkeys(map(str, wanted), 1), K
        )
        for tag, wanted in by_tag
    )


if __name__ == "__main__":
    main()
