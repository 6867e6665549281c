"""What comes next in MovieLens-1M: `NextItem` by its defaults, and what knows no order beside it.

Each user's last interaction is the test item, the one before it the validation item; all models
learn from what is before both, once. Ranked are all items that the user had not met by then, no
sample of them; for the test item the validation item belongs to the history. Defaults were chosen
by the validation items.

QKVSEARCH_DATA=data python benchmarks/next_item.py    (ten minutes; needs '.[train]')
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from common import CORES, data_folder
from scipy.sparse import csr_matrix

from qkvsearch.data.interactions import Interactions
from qkvsearch.embeddings import ImplicitALS, NextItem
from qkvsearch.evaluation.splits import split
from qkvsearch.sequences.windows import Sequences

K = 10
# A history, from the oldest on, to the scores of all items.
Scorer = Callable[[np.ndarray], np.ndarray]


def main() -> None:
    log = read_log()
    for_test = split(log, "leave-last-out")
    for_validation = split(for_test.train, "leave-last-out")
    print(f"{len(log):,} interactions, {len(for_test.test):,} users, {CORES} cores")
    print(f"{'':34} validation          test")
    print(f"{'':34} HR@10   NDCG@10   HR@10   NDCG@10   minutes   processor minutes", flush=True)
    for name, fit in systems():
        wall, work = time.monotonic(), time.process_time()
        scorer = fit(for_validation.train)
        minutes = (time.monotonic() - wall) / 60, (time.process_time() - work) / 60
        figures = [
            figure
            for parts in (for_validation, for_test)
            for figure in quality(scorer, parts.train, parts.test)
        ]
        print(
            f"{name:32}",
            *(f"{x:9.4f}" for x in figures),
            *(f"{x:9.2f}" for x in minutes),
            flush=True,
        )


def read_log() -> Interactions:
    table = pd.read_csv(data_folder() / "ml-1m" / "ratings.csv")
    columns = (table[name].to_numpy() for name in ("user", "item", "rating", "time_rank_in_user"))
    return Interactions.from_columns(*columns, times_comparable=False)


def quality(scorer: Scorer, known: Interactions, held_out: Interactions) -> tuple[float, float]:
    """HR@10 and NDCG@10 of one held-out item a user; of equal scores the target's comes last."""
    histories = Sequences.of(known).histories(held_out.users)
    gains = []
    for history, target in zip(histories, held_out.items, strict=True):
        scores = scorer(history).copy()
        scores[history] = -np.inf
        rank = np.count_nonzero(scores >= scores[target])
        gains.append(1 / np.log2(rank + 1) if rank <= K else 0.0)
    return float(np.mean(np.array(gains) > 0)), float(np.mean(gains))


# --- the contenders: what learns from a log, and scores items by a history ---


def systems() -> Iterator[tuple[str, Callable[[Interactions], Scorer]]]:
    yield "NextItem, defaults", fit_next_item
    yield "ImplicitALS, defaults", fit_tastes
    yield "neighbours of the last item", fit_neighbours
    yield "what followed the last item", fit_followers
    yield "popularity", fit_popularity


def fit_next_item(train: Interactions) -> Scorer:
    def tell(epoch: int, epochs: int) -> None:
        print(f"epoch {epoch} of {epochs}", file=sys.stderr, flush=True)

    model = NextItem(random_state=0, callback=tell).fit(train).model_
    return lambda history: model.items.weight @ model.fold_in(history)


def fit_tastes(train: Interactions) -> Scorer:
    factors = ImplicitALS(random_state=0).fit(train.matrix()).factors_
    return lambda history: factors.item_embeddings @ factors.fold_in(history).astype(np.float32)


def fit_neighbours(train: Interactions) -> Scorer:
    """As `similar` has them: cosines of the embeddings that `ImplicitALS` learned."""
    embeddings = ImplicitALS(random_state=0).fit(train.matrix()).item_embeddings_
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    directions = embeddings / np.where(lengths > 0, lengths, 1)
    return lambda history: directions @ directions[history[-1]]


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


if __name__ == "__main__":
    main()
