"""A log with a pattern to find: people of three tastes, who rate, at times that follow a clock."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.data.interactions import Interactions

N_USERS, N_ITEMS, N_TASTES = 90, 60, 3


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
