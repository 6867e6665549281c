"""Positions: the sinusoidal table's figures and what it is for, and the learned table's limits."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.attention.layers.basic import LearnedPositions, sinusoidal_positions


@pytest.mark.parametrize("d", [1, 2, 5, 8])
def test_every_entry_is_the_papers_formula(d: int) -> None:
    table = sinusoidal_positions(7, d, dtype=np.float64)
    for position in range(7):
        for column in range(d):
            angle = position / 10000 ** ((column - column % 2) / d)
            expected = np.cos(angle) if column % 2 else np.sin(angle)
            assert table[position, column] == pytest.approx(expected, abs=1e-12)


def test_the_product_of_two_positions_tells_only_how_far_apart_they_are() -> None:
    table = sinusoidal_positions(30, 16, dtype=np.float64)
    products = table @ table.T
    for distance in range(10):
        np.testing.assert_allclose(np.diag(products, distance), products[0, distance], atol=1e-12)


def test_no_two_positions_are_alike() -> None:
    table = sinusoidal_positions(500, 32)
    distances = np.linalg.norm(table[:, None] - table, axis=-1) + 9 * np.eye(500)
    assert distances.min() > 0.5


def test_learned_positions_are_added_from_the_first_on() -> None:
    layer = LearnedPositions.create(5, 2, rng=0, dtype=np.float64)
    np.testing.assert_array_equal(layer(np.zeros((3, 4, 2)))[2], layer.weight[:4])


def test_a_text_longer_than_the_table_is_refused() -> None:
    layer = LearnedPositions.create(5, 2, rng=0)
    with pytest.raises(ValueError, match="6 tokens is longer than the 5 positions"):
        layer(np.zeros((6, 2)))
