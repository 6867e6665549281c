"""What heavy use is worth, and on which scale ratings are: how both rules were chosen.

Weights are hours of play (Steam), how many films of each combination of genres a user rated
(MovieLens-1M) and how many tags a user gave a film (latest-small). A fifth of each user's pairs is
kept for nobody to look at; of the others a fifth is held out, three times over (tags, of which
there are few, twelve times), and `ImplicitALS` learns from the rest under each rule. *Heavy* is
NDCG@20 of those held out whose weight is above the median. (1 + ln(1 + w/m)) / (1 + ln 2) was
taken, with m the item's usual weight, its geometric mean drawn to the log's median: it is the best
on play and within .003 of the best on genres, and where heavy use alone counts it is near the best
on both. On tags, where two thirds of the weights are 1 and 58 people gave them, what differs is
chance.

Scales: NDCG@20, and which share of the users are left without a recommendation, where only 4s and
5s are in the log, where ratings are from half a star, and where numbers of films stand in the
column of ratings.

QKVSEARCH_DATA=data python benchmarks --only weights_and_scales    (ten minutes)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import fmean

import numpy as np
import pandas as pd

from benchmarks.support.public_data import data_folder, read_films
from benchmarks.support.quality import mean_ndcg, rankings
from benchmarks.support.recommenders import als
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch import Interactions
from qkvsearch.evaluation.splits import split
from qkvsearch.models.confidences import Feedback, rating_confidences, weight_confidences

K = 20
# A log's confidences (n,), or those of its pairs by what weights there are.
Rule = Callable[[Interactions], np.ndarray]


# --- logs ---


def play() -> Interactions:
    """Hours of play."""
    return _log(pd.read_csv(data_folder() / "steam/game_play.dat", sep="\t"))


def genres() -> Interactions:
    """How many films of each combination of genres someone rated."""
    films = read_films()
    rated = pd.read_csv(data_folder() / "ml-1m/ratings.csv").merge(films, on="item")
    return _log(rated.assign(n=1)[["user", "genres", "n"]])


def tags() -> Interactions:
    """How many tags someone gave a film."""
    given = pd.read_csv(data_folder() / "ml-latest-small/tags.csv")
    return _log(given.assign(n=1)[["userId", "movieId", "n"]])


def _log(frame: pd.DataFrame) -> Interactions:
    users, items, weights = (frame.iloc[:, column] for column in range(3))
    return Interactions.from_columns(users, items, weights=weights)


def fours_and_fives() -> Interactions:
    table = pd.read_csv(data_folder() / "ml-100k/u.data", sep="\t", header=None)
    table = table[table[2] >= 4]
    return Interactions.from_columns(table[0], table[1], ratings=table[2])


def half_stars() -> Interactions:
    table = pd.read_csv(data_folder() / "ml-latest-small/ratings.csv")
    return Interactions.from_columns(table["userId"], table["movieId"], ratings=table["rating"])


def counts() -> Interactions:
    log = genres()
    return replace(log, ratings=log.weights, weights=None)


# --- rules ---


def of_log(log: Interactions) -> np.ndarray:
    """Each weight in median ones."""
    assert log.weights is not None
    return np.asarray(log.weights / np.median(log.weights))


def of_item(log: Interactions) -> np.ndarray:
    """Each weight in usual ones of the item."""
    usual = Feedback.of(log).usual_weights
    assert usual is not None
    return np.asarray(log.weights / usual[log.items])


def rank_in_item(log: Interactions) -> np.ndarray:
    """The share of the item's weights that are no larger."""
    ranks = pd.Series(log.weights).groupby(log.items).rank(pct=True)
    return ranks.to_numpy()


WEIGHTS: dict[str, Rule] = {
    "1": lambda log: np.ones(len(log)),
    "w": lambda log: np.asarray(log.weights),
    "ln(1 + w/median)": lambda log: np.log1p(of_log(log)),
    "1 + ln(1 + w/median)": lambda log: 1 + np.log1p(of_log(log)),
    "w/(w + median)": lambda log: 1 - 1 / (1 + of_log(log)),
    "w/(w + m)": lambda log: 1 - 1 / (1 + of_item(log)),
    "1 + w/(w + m)": lambda log: 2 - 1 / (1 + of_item(log)),
    "rank within the item": rank_in_item,
    "1 + rank within the item": lambda log: 1 + rank_in_item(log),
    "1 + ln(1 + w/m), as taken": lambda log: weight_confidences(of_item(log), np.ones(len(log))),
}


def as_taken(log: Interactions) -> np.ndarray:
    return Feedback.of(log).confidences(log.items, log.ratings, log.weights)


def lowest_to_highest(log: Interactions) -> np.ndarray:
    assert log.ratings is not None
    ends = float(log.ratings.min()), float(log.ratings.max())
    return rating_confidences(log.ratings, len(log), ends)


def no_counts(log: Interactions) -> np.ndarray:
    assert log.ratings is not None
    return rating_confidences(log.ratings, len(log), (1.0, float(log.ratings.max())))


SCALES: dict[str, Rule] = {
    "the lowest to the highest that occur": lowest_to_highest,
    "1 to the highest that occurs": no_counts,
    "inferred, as taken": as_taken,
}


# --- judging ---


def learned(log: Interactions, rule: Rule, seed: int) -> tuple[Interactions, list[list[int]]]:
    """What was held out, and what is recommended after learning from the rest by a rule."""
    parts = split(log, "random", seed)
    score = als("", 64).run(parts.train.matrix(rule(parts.train)))
    return parts.test, list(rankings(score, parts.train.matrix(), K))


def by_weight(task: str, read: Callable[[], Interactions], n_seeds: int) -> list[Row]:
    log = split(read(), "random").train
    assert log.weights is not None
    heavy = np.median(log.weights)
    rows = []
    for name, rule in WEIGHTS.items():
        figures = []
        for seed in range(1, 1 + n_seeds):
            test, top = learned(log, rule, seed)
            assert test.weights is not None
            used = test.take(test.weights > heavy)
            figures.append([mean_ndcg(top, part.matrix(), K) for part in (test, used)])
        of_all, of_heavy = np.mean(figures, axis=0)
        rows += [Row(task, name, f"NDCG@{K}", of_all), Row(task, name, "heavy", of_heavy)]
    return rows


def by_scale(task: str, read: Callable[[], Interactions], n_seeds: int) -> list[Row]:
    log = split(read(), "random").train
    rows = []
    for name, rule in SCALES.items():
        found, left_out = [], []
        for seed in range(1, 1 + n_seeds):
            test, top = learned(log, rule, seed)
            assert test.ratings is not None
            found.append(mean_ndcg(top, test.take(test.ratings > log_middle(log)).matrix(), K))
            likes = np.bincount(log.users, rule(log), len(log.user_ids)) > 0
            left_out.append(1 - likes[np.unique(log.users)].mean())
        rows.append(Row(task, name, f"NDCG@{K}", fmean(found)))
        rows.append(Row(task, name, "left out", fmean(left_out)))
    return rows


def log_middle(log: Interactions) -> float:
    """Above it is relevant, by the meaning that the numbers are known to have; all of counts."""
    scale = Feedback.of(log).scale
    return -np.inf if scale is None else sum(scale) / 2


PARTS = {
    "play": partial(by_weight, "Steam, hours of play", play, 3),
    "genres": partial(by_weight, "MovieLens-1M, films of a combination of genres", genres, 3),
    "tags": partial(by_weight, "MovieLens latest-small, tags given to a film", tags, 12),
    "fours": partial(by_scale, "MovieLens-100k, 4s and 5s alone", fours_and_fives, 3),
    "stars": partial(by_scale, "MovieLens latest-small, half stars", half_stars, 3),
    "counts": partial(by_scale, "MovieLens-1M, counts as ratings", counts, 3),
}

if __name__ == "__main__":
    main(__file__, PARTS)
