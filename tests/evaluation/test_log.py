"""The log as a workspace gives it back: what was built from, in its owner's ids."""

import numpy as np
import pytest

from qkvsearch.data.dataset import read_dataset
from qkvsearch.data.sources import read_source
from qkvsearch.errors import WorkspaceError


def assert_same(found, given):
    assert list(found.user_ids) == list(given.user_ids)
    assert list(found.item_ids) == list(given.item_ids)
    assert found.times_comparable == given.times_comparable
    for name in ("users", "items", "ratings", "times"):
        left, right = getattr(found, name), getattr(given, name)
        assert (left is None) == (right is None)
        assert left is None or np.array_equal(left, right)


def test_the_log_comes_back_as_it_was_given(movies):
    assert_same(movies.models.log(), read_source("sample:movies").interactions)


def test_whole_numbers_come_back_as_numbers_and_no_times_as_none(shop, shop_items, shop_log):
    found = shop.models.log()
    assert_same(found, read_dataset(shop_items, shop_log).interactions)
    assert found.item_ids.integer
    assert found.times is None


def test_without_interactions_there_is_no_log(things):
    with pytest.raises(WorkspaceError, match="there are no interactions to judge by"):
        things.models.log("judge by")
