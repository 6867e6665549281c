"""A large made log and its catalog, the same for the same seed: what `build` and `evaluate` are
measured on.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.support.public_data import ted

TOPICS = 60
# Of what a user meets, this share is of one of their few topics; the rest is anything.
OWN_SHARE = 0.7
# Popularity falls with this power of an item's rank; users' activity is log-normal by this much.
POWER, SPREAD = 0.8, 1.2
YEAR = 365 * 24 * 3600


def write_large_log(
    folder: Path,
    n_items: int = 60_000,
    n_users: int = 60_000,
    n_interactions: int = 600_000,
    seed: int = 0,
) -> tuple[Path, Path]:
    """Write items.csv (id, title, tags, year) and interactions.csv (user, item, rating, timestamp)
    to `folder`, and return their paths. No pair of user and item is there twice.
    """
    rng = np.random.default_rng(seed)
    items, log = folder / "items.csv", folder / "interactions.csv"
    pd.DataFrame(
        {
            "id": range(n_items),
            "title": texts(n_items, 3, 12, rng),
            "tags": ["|".join(text.split()) for text in texts(n_items, 1, 4, rng)],
            "year": rng.integers(1990, 2026, size=n_items),
        }
    ).to_csv(items, index=False)
    interactions(n_items, n_users, n_interactions, rng).to_csv(log, index=False)
    return items, log


def interactions(
    n_items: int, n_users: int, n_interactions: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Users of one to three topics, who meet and like more of these."""
    popularity = 1 / rng.permutation(np.arange(1, n_items + 1)) ** POWER
    topic_of = rng.integers(TOPICS, size=n_items)
    favourites = rng.integers(TOPICS, size=(n_users, 3))
    activity = rng.lognormal(0, SPREAD, size=n_users)
    pairs = np.zeros((0, 2), np.int64)
    while len(pairs) < n_interactions:
        users = rng.choice(n_users, size=n_interactions, p=activity / activity.sum())
        items = rng.choice(n_items, size=n_interactions, p=popularity / popularity.sum())
        wanted = np.where(
            rng.random(n_interactions) < OWN_SHARE,
            favourites[users, rng.integers(3, size=n_interactions)],
            -1,
        )
        for topic in range(TOPICS):
            own, places = np.flatnonzero(topic_of == topic), np.flatnonzero(wanted == topic)
            shares = popularity[own] / popularity[own].sum()
            items[places] = rng.choice(own, size=len(places), p=shares)
        pairs = np.unique(np.concatenate([pairs, np.column_stack([users, items])]), axis=0)
    users, items = rng.permutation(pairs)[:n_interactions].T
    likes = (favourites[users] == topic_of[items, None]).any(axis=1)
    ratings = rng.integers(1, 5, size=n_interactions) + np.where(likes, 1, 0)
    times = rng.integers(3 * YEAR, size=n_interactions) + 50 * YEAR
    return pd.DataFrame({"user": users, "item": items, "rating": ratings, "timestamp": times})


@cache
def words() -> tuple[np.ndarray, np.ndarray]:
    """The words of TED's titles and tags, and the share of each."""
    talks = ted("dev").items
    found, counts = np.unique(
        [word for text in (talks["title"] + " " + talks["tags"]) for word in text.split()],
        return_counts=True,
    )
    return found, counts / counts.sum()


def texts(n: int, shortest: int, longest: int, rng: np.random.Generator) -> list[str]:
    """n texts of so many words, drawn as often as TED talks have them."""
    known, shares = words()
    lengths = rng.integers(shortest, longest + 1, size=n)
    drawn = rng.choice(known, size=lengths.sum(), p=shares)
    return [" ".join(part) for part in np.split(drawn, np.cumsum(lengths)[:-1])]
