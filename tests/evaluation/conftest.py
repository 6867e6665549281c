"""A log with a pattern to find: people of three tastes, who rate, at times that follow a clock."""

from functools import partial

import numpy as np
import pytest

from qkvsearch.evaluation import systems
from qkvsearch.models.next_item import NextItem
from qkvsearch.tables.interactions import Interactions

N_USERS, N_ITEMS, N_TASTES = 90, 60, 3
# A model of what comes next.
SMALL = {"n_components": 16, "n_positions": 10, "batch_size": 8, "learning_rate": 0.01}


@pytest.fixture(scope="session")
def log():
    """Each of 90 users meets about 26 of 60 items, more of their own taste, and likes those;
    user 0 meets a single one. Times are distinct.
    """
    rng = np.random.default_rng(7)
    users, items = np.divmod(np.arange(N_USERS * N_ITEMS), N_ITEMS)
    own = users % N_TASTES == items % N_TASTES
    met = rng.random(len(users)) < np.where(own, 0.7, 0.3)
    met[users == 0] = False
    met[4] = True
    ratings = np.where(own, rng.integers(4, 6, len(users)), rng.integers(1, 3, len(users)))
    return Interactions.from_columns(
        users[met],
        items[met],
        ratings=ratings[met],
        times=rng.permutation(met.sum()),
    )


@pytest.fixture(scope="session")
def log_with_new_items(log):
    """The same, and at last each user meets and likes an item of their own, all at different times:
    under every protocol some of these are held out, and met by nobody in the train part.
    """
    users = np.arange(N_USERS)
    return Interactions.from_columns(
        np.concatenate([log.users, users]),
        np.concatenate([log.items, N_ITEMS + users]),
        ratings=np.concatenate([log.ratings, np.full(N_USERS, 5)]),
        times=np.concatenate([log.times, len(log) + users]),
    )


@pytest.fixture(scope="session")
def keys():
    """A text vector for each item of `log_with_new_items`, which tells the taste it is for."""
    items = np.arange(N_ITEMS + N_USERS)
    noise = np.random.default_rng(8).normal(0, 0.1, (len(items), 5)).astype(np.float32)
    noise[items, items % N_TASTES] += 1
    return noise


@pytest.fixture
def quick(monkeypatch):
    """A small model of what comes next, that learns in some seconds."""
    monkeypatch.setattr(systems, "NextItem", partial(NextItem, **SMALL, max_iter=40))


@pytest.fixture
def hasty(monkeypatch):
    """A model of what comes next that has learned next to nothing, at once."""
    monkeypatch.setattr(systems, "NextItem", partial(NextItem, **SMALL, max_iter=1))
