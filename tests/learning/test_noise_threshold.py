"""How near nonsense comes to an item: in blocks of items as at once, and where items leave."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.labelled import unit_rows
from qkvsearch.learning import noise_threshold as module
from qkvsearch.learning.noise_threshold import (
    nearest_cosines,
    noise_threshold,
    random_strings,
    without,
)
from qkvsearch.stored.dense import FIRST_STRING


def test_the_first_random_string_is_the_one_that_an_opened_encoder_is_known_by():
    assert random_strings(1) == [FIRST_STRING]


@pytest.mark.parametrize("block", [1, 7, 100])
def test_the_nearest_item_is_the_same_in_blocks(block, monkeypatch):
    rng = np.random.default_rng(0)
    fingerprint, keys = rng.normal(size=(100, 4)), rng.normal(size=(30, 4))
    monkeypatch.setattr(module, "BLOCK", block)
    nearest = nearest_cosines(fingerprint, keys)
    np.testing.assert_allclose(nearest, (fingerprint @ keys.T).max(axis=1, initial=0))
    assert noise_threshold(nearest) == np.quantile(nearest, 0.95)


def test_without_an_item_in_their_direction_it_is_0():
    assert noise_threshold(nearest_cosines(np.eye(2), -np.eye(2))) == 0
    assert noise_threshold(nearest_cosines(np.eye(2), np.zeros((0, 2)))) == 0


@pytest.mark.parametrize("seed", range(8))
def test_after_items_left_it_is_that_of_the_others(seed):
    rng = np.random.default_rng(seed)
    fingerprint, keys = (unit_rows(rng.normal(size=(n, 3))) for n in (20, 12))
    leaving = rng.choice(12, size=rng.integers(0, 6), replace=False)
    kept = np.delete(keys, leaving, axis=0)
    found = without(nearest_cosines(fingerprint, keys), fingerprint, keys[leaving], lambda: kept)
    np.testing.assert_allclose(found, nearest_cosines(fingerprint, kept))


def test_keys_are_not_read_where_no_nearest_item_left():
    fingerprint, keys = np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
    nearest = nearest_cosines(fingerprint, keys)

    def read():
        raise AssertionError

    np.testing.assert_array_equal(without(nearest, fingerprint, keys[2:], read), nearest)
    with pytest.raises(AssertionError):
        without(nearest, fingerprint, keys[1:2], read)
