"""Matrices whose right answer is known, shared by the tests of both collaborative models."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array


@pytest.fixture
def checkerboard() -> csr_matrix:
    """Even users meet even items and odd users odd ones, but for the pairs on the diagonal."""
    users, items = np.indices((12, 10))
    return csr_matrix(((users + items) % 2 == 0) & (users != items), dtype=np.float32)


@pytest.fixture
def scattered() -> csr_matrix:
    """40 users × 30 items with confidences; user 3 and item 5 have no interactions."""
    rng = np.random.default_rng(0)
    matrix = random_array((40, 30), density=0.2, rng=rng, data_sampler=rng.random).tolil()
    matrix[3, :] = 0
    matrix[:, 5] = 0
    matrix = csr_matrix(matrix, dtype=np.float32)
    matrix.data = 0.5 + 2 * matrix.data
    return matrix


@pytest.fixture
def planted() -> tuple[csr_matrix, csr_matrix]:
    """Ratings = 3 + biases + two tastes, little noise; four fifths to train on, one to test."""
    rng = np.random.default_rng(1)
    tastes = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 80)) * 0.7
    biases = 0.4 * rng.normal(size=(120, 1)) + 0.4 * rng.normal(size=(1, 80))
    ratings = 3 + biases + tastes + 0.05 * rng.normal(size=tastes.shape)
    part = rng.random(ratings.shape)
    users, items = np.indices(ratings.shape)
    train, test = (
        csr_matrix((ratings[chosen], (users[chosen], items[chosen])), shape=ratings.shape)
        for chosen in (part < 0.4, (part > 0.4) & (part < 0.5))
    )
    return train, test


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
