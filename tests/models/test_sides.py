"""Turning embeddings to principal axes: what stays, and what becomes diagonal."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from qkvsearch.models.implicit_als import (
    ROTATION_BATCH,
    FactorSide,
    principal_axes,
)
from qkvsearch.models.pairs import by_user_and_by_item

D = 5


@pytest.fixture
def sides():
    """More users than are turned at once, and items; 5 components, in 16 with the padding."""
    met = np.random.default_rng(0).random((2 * ROTATION_BATCH + 3, 30)) < 0.2
    rng = np.random.default_rng(1)
    return tuple(
        FactorSide.start(p, D, 1, rng, 1) for p in by_user_and_by_item(csr_matrix(met * 1.0))
    )


@pytest.fixture
def axes(sides):
    """Those of the items, which all embeddings have been turned to, and the lengths along them."""
    lengths, axes = principal_axes(sides[1].embeddings[:, :D])
    before = [side.embeddings.copy() for side in sides]
    with ThreadPoolExecutor(2) as pool:
        for side in sides:
            side.rotate(axes, pool)
    return lengths, before


def test_embeddings_move_but_no_score_does(sides, axes):
    _, (users, items) = axes
    assert not np.allclose(sides[0].embeddings, users, atol=0.01)
    assert np.allclose(sides[0].embeddings @ sides[1].embeddings.T, users @ items.T, atol=1e-5)


def test_the_gram_matrix_becomes_diagonal(sides, axes):
    items = sides[1].embeddings[:, :D]
    assert np.allclose(items.T @ items, np.diag(axes[0]), atol=1e-5)
    assert axes[0].max() > 1


def test_the_padding_stays_zero(sides, axes):
    assert not any(side.embeddings[:, D:].any() for side in sides)


def test_fewer_rows_than_components_give_no_negative_length():
    lengths, _ = principal_axes(np.random.default_rng(0).random((2, 40), dtype=np.float32))
    assert lengths.min() == 0
    assert np.count_nonzero(lengths > 1e-3) == 2
