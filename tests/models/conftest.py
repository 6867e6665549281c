"""Published ratings, shared by the tests of both collaborative models."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix


@pytest.fixture(scope="session")
def movielens() -> tuple[csr_matrix, csr_matrix]:
    """MovieLens 100K: four fifths of the ratings to train on, one held out."""
    if "QKVSEARCH_DATA" not in os.environ:
        pytest.skip("QKVSEARCH_DATA is not set: MovieLens is not shipped")
    table = np.loadtxt(Path(os.environ["QKVSEARCH_DATA"]) / "ml-100k" / "u.data", dtype=np.int32)
    held_out = np.random.default_rng(0).random(len(table)) < 0.2
    train, test = (
        csr_matrix((rows[:, 2].astype(np.float32), (rows[:, 0] - 1, rows[:, 1] - 1)), (943, 1682))
        for rows in (table[~held_out], table[held_out])
    )
    return train, test
