"""Positions: the sinusoidal table's figures, and the learned table's limits."""

import numpy as np
import pytest

from qkvsearch.attention.layers.basic import LearnedPositions, sinusoidal_positions


@pytest.mark.parametrize("d", [1, 2, 5, 8])
def test_every_entry_is_the_papers_formula(d):
    table = sinusoidal_positions(7, d, dtype=np.float64)
    for position in range(7):
        for column in range(d):
            angle = position / 10000 ** ((column - column % 2) / d)
            expected = np.cos(angle) if column % 2 else np.sin(angle)
            assert table[position, column] == pytest.approx(expected, abs=1e-12)


def test_learned_positions_are_added_from_the_first_on():
    layer = LearnedPositions.create(5, 2, rng=0, dtype=np.float64)
    np.testing.assert_array_equal(layer(np.zeros((3, 4, 2)))[2], layer.weight[:4])


def test_a_text_longer_than_the_table_is_refused():
    layer = LearnedPositions.create(5, 2, rng=0)
    with pytest.raises(ValueError, match="6 tokens is longer than the 5 positions"):
        layer(np.zeros((6, 2)))
