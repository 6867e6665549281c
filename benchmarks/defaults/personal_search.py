"""How much a user's preferences should count beside the query: tags that people gave to films.

ml-latest-small: a tag that someone gave asks for the films they gave it to. A film's text is its
title, its genres and the tags of the other half of the people; of a person we know the ratings of
films that they did not tag, and no model sees the others. The weight was chosen by the first half
of the people.

QKVSEARCH_DATA=data python benchmarks --only personal_search    (minutes)
"""

from __future__ import annotations

from functools import partial
from statistics import fmean
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pandas as pd

import qkvsearch as qkv
from benchmarks.support.public_data import data_folder
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.heads.taste_head import TASTE

IN_USE = TASTE.weight
WEIGHTS = sorted({0.0, 0.05, 0.1, 0.2, IN_USE, 0.5})
# At most this many tags of one person, or one keen tagger would be the benchmark.
MOST_TAGS, K = 40, 10


def by_weight(first: int) -> list[Row]:
    """Of every second person from the `first` on, who ask; the others' tags are searched."""
    folder = data_folder() / "ml-latest-small"
    tags, films, ratings = (
        pd.read_csv(folder / f"{name}.csv") for name in ("tags", "movies", "ratings")
    )
    pairs = tags[["userId", "movieId"]].drop_duplicates()
    known = ratings.merge(pairs, how="left", indicator=True).query("_merge == 'left_only'")
    known = known.drop(columns="_merge")
    asking = sorted(set(tags.userId) & set(known.userId))[first::2]
    others = tags[~tags.userId.isin(asking)].groupby("movieId").tag.agg(" ".join)
    items = films.assign(tags=films.movieId.map(others).fillna(""))
    columns = qkv.Columns(id="movieId", title="title", text=("title", "genres", "tags"))
    task = f"{'second' if first else 'first'} half, {len(asking)} people"
    with (
        TemporaryDirectory() as place,
        qkv.build(
            place, items=items, interactions=known, columns=columns, encoder="static"
        ) as engine,
    ):
        mine = tags[tags.userId.isin(asking)].groupby("userId")
        return [
            Row(task, f"preferences weigh {weight:g}", f"MRR@{K}",
                fmean(of_person(engine, user, given, weight) for user, given in mine))
            for weight in WEIGHTS
        ]  # fmt: skip


def of_person(engine: qkv.Engine, user: int, tags: pd.DataFrame, weight: float) -> float:
    by_tag = list(tags.groupby("tag").movieId)[:MOST_TAGS]
    ask = partial(engine.search, k=K, user=user if weight else None)
    with patch.object(TASTE, "weight", weight):
        return fmean(
            reciprocal_rank(
                [str(hit.id) for hit in ask(str(tag))], dict.fromkeys(map(str, wanted), 1), K
            )
            for tag, wanted in by_tag
        )


PARTS = {"first-half": partial(by_weight, 0), "second-half": partial(by_weight, 1)}

if __name__ == "__main__":
    main(__file__, PARTS)
