"""What comes next in MovieLens-1M: `NextItem` by its defaults, and what knows no order beside it.

Each user's last interaction is the test item, the one before it the validation item; all models
learn from what is before both, once. Ranked are all items that the user had no interaction with by
then, no sample of them; for the test item the validation item belongs to the history. Defaults were
chosen by the validation items.

QKVSEARCH_DATA=data python benchmarks --only next_item
(a quarter of an hour; needs '.[train]', and without it NextItem is left out)
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from benchmarks.support.public_data import data_folder
from benchmarks.support.results import Row, installed
from benchmarks.support.script import main
from benchmarks.support.timing import timed, with_times
from qkvsearch import Interactions
from qkvsearch.evaluation.splits import split
from qkvsearch.models.estimators import ImplicitALS
from qkvsearch.models.next_item import NextItem
from qkvsearch.models.next_item_windows import Sequences

K = 10
TASK = "MovieLens-1M, each user's last interaction; a fit"
# A history, from the oldest on, to the scores of all items.
Scorer = Callable[[np.ndarray], np.ndarray]


def last_interactions() -> list[Row]:
    for_test = split(read_log(), "leave-last-out")
    train = split(for_test.train, "leave-last-out").train
    rows, seconds = [], []
    for name, fit in systems().items():
        took, scorer = timed(lambda: fit(train))  # noqa: B023
        figures = quality(scorer, for_test.train, for_test.test)
        rows.append([Row(TASK, name, f"{metric}@{K}", q) for metric, q in figures.items()])
        seconds.append(took)
    # The time stands beside the first metric of each.
    firsts = with_times([own[0] for own in rows], seconds)
    return [row for first, own in zip(firsts, rows, strict=True) for row in (first, *own[1:])]


def read_log() -> Interactions:
    table = pd.read_csv(data_folder() / "ml-1m" / "ratings.csv")
    columns = (table[name].to_numpy() for name in ("user", "item", "rating", "time_rank_in_user"))
    return Interactions.from_columns(*columns, times_comparable=False)


def quality(scorer: Scorer, known: Interactions, held_out: Interactions) -> dict[str, float]:
    """HR and NDCG of one held-out item a user; of equal scores the target's comes last."""
    histories = Sequences.of(known).histories(held_out.users)
    gains = []
    for history, target in zip(histories, held_out.items, strict=True):
        scores = scorer(history).copy()
        scores[history] = -np.inf
        rank = np.count_nonzero(scores >= scores[target])
        gains.append(1 / np.log2(rank + 1) if rank <= K else 0.0)
    return {"HR": float(np.mean(np.array(gains) > 0)), "NDCG": float(np.mean(gains))}


# --- the contenders: what learns from a log, and scores items by a history ---


def systems() -> dict[str, Callable[[Interactions], Scorer]]:
    ours = {"qkvsearch `NextItem`, defaults": fit_next_item} if installed("torch") else {}
    return {
        **ours,
        "qkvsearch `ImplicitALS`, which knows no order": fit_preferences,
        "neighbours of the last item": fit_neighbours,
        "what followed the last item most often": fit_followers,
        "popularity": fit_popularity,
    }


def fit_next_item(train: Interactions) -> Scorer:
    def callback(epoch: int, epochs: int) -> None:
        print(f"epoch {epoch} of {epochs}", file=sys.stderr, flush=True)

    model = NextItem(random_state=0, callback=callback).fit(train).model_
    return lambda history: model.items.weight @ model.fold_in(history)


def fit_preferences(train: Interactions) -> Scorer:
    factors = ImplicitALS(random_state=0).fit(train.matrix()).factors_
    return lambda history: factors.item_embeddings @ factors.fold_in(history).astype(np.float32)


def fit_neighbours(train: Interactions) -> Scorer:
    """As `similar` has them: cosines of the embeddings that `ImplicitALS` learned."""
    embeddings = ImplicitALS(random_state=0).fit(train.matrix()).item_embeddings_
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    unit_rows = embeddings / np.where(lengths > 0, lengths, 1)
    return lambda history: unit_rows @ unit_rows[history[-1]]


def fit_followers(train: Interactions) -> Scorer:
    """How often an item came right after the last one: a Markov chain of the first order."""
    histories = Sequences.of(train).histories(np.arange(len(train.user_ids)))
    before, after = (
        np.concatenate([h[part] for h in histories]) for part in (slice(-1), slice(1, None))
    )
    n = len(train.item_ids)
    counts = csr_matrix((np.ones(len(before), np.float32), (before, after)), shape=(n, n))
    return lambda history: counts[history[-1]].toarray()[0]


def fit_popularity(train: Interactions) -> Scorer:
    counts = np.bincount(train.items, minlength=len(train.item_ids)).astype(np.float32)
    return lambda history: counts


PARTS = {"ml-1m": last_interactions}

if __name__ == "__main__":
    main(__file__, PARTS, peers=["torch"])
