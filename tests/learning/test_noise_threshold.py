"""How near nonsense comes to an item: in blocks of items as at once."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.learning import noise_threshold as module
from qkvsearch.learning.noise_threshold import noise_threshold


@pytest.mark.parametrize("block", [1, 7, 100])
def test_the_nearest_item_is_the_same_in_blocks(block, monkeypatch):
    rng = np.random.default_rng(0)
    fingerprint, keys = rng.normal(size=(100, 4)), rng.normal(size=(30, 4))
    monkeypatch.setattr(module, "BLOCK", block)
    expected = np.quantile((fingerprint @ keys.T).max(axis=1, initial=0), 0.95)
    assert noise_threshold(fingerprint, keys) == pytest.approx(expected)


def test_without_an_item_in_their_direction_it_is_0():
    assert noise_threshold(np.eye(2), -np.eye(2)) == 0
    assert noise_threshold(np.eye(2), np.zeros((0, 2))) == 0
