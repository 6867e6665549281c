"""Ratings to confidences: the documented rule, at its ends and where there is no scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.models.confidences import rating_confidences

halves = st.integers(2, 10).map(lambda value: value / 2)


@given(st.lists(halves, min_size=1))
def test_confidence_is_the_squared_height_from_the_middle_of_the_scale_up(ratings):
    found = rating_confidences(np.array(ratings), len(ratings), (1.0, 5.0))
    assert found.dtype == np.float32
    expected = [((rating - 1) / 4) ** 2 if rating >= 3 else 0 for rating in ratings]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_ratings_outside_the_scale_stay_within_zero_and_one():
    assert rating_confidences(np.array([-3.0, 99.0]), 2, (1.0, 5.0)).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("ratings", "scale"), [(None, None), (None, (1.0, 5.0)), (np.full(3, 4.0), (4.0, 4.0))]
)
def test_without_ratings_or_with_only_one_value_everything_counts_in_full(ratings, scale):
    assert rating_confidences(ratings, 3, scale).tolist() == [1, 1, 1]


def test_a_pair_without_a_rating_counts_in_full():
    found = rating_confidences(np.array([np.nan, 1.0, 3.0], dtype=np.float32), 3, (1.0, 5.0))
    assert found.dtype == np.float32
    assert found.tolist() == [1, 0, 0.25]
