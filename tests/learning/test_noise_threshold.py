"""How near nonsense comes to an item: in blocks of items as at once."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.learning import noise_threshold as chance


@pytest.mark.parametrize("block", [1, 7, 100])
def test_the_nearest_item_is_the_same_in_blocks(block, monkeypatch):
    rng = np.random.default_rng(0)
    probes, keys = rng.normal(size=(100, 4)), rng.normal(size=(30, 4))
    monkeypatch.setattr(chance, "BLOCK", block)
    expected = np.quantile((probes @ keys.T).max(axis=1, initial=0), 0.95)
    assert chance.chance_level(probes, keys) == pytest.approx(expected)


def test_without_an_item_in_their_direction_it_is_0():
    assert chance.chance_level(np.eye(2), -np.eye(2)) == 0
    assert chance.chance_level(np.eye(2), np.zeros((0, 2))) == 0
