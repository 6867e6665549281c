"""Ratings to confidences: the documented rule, at its ends and where there is no scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.collaborative.confidences import confidences, rating_scale

halves = st.integers(2, 10).map(lambda value: value / 2)


@given(st.lists(halves, min_size=1))
def test_confidence_is_the_squared_height_on_the_scale(ratings):
    found = confidences(np.array(ratings), len(ratings), (1.0, 5.0))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [((rating - 1) / 4) ** 2 for rating in ratings], atol=1e-6)


def test_ratings_outside_the_scale_stay_within_zero_and_one():
    assert confidences(np.array([-3.0, 99.0]), 2, (1.0, 5.0)).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("ratings", "scale"), [(None, None), (None, (1.0, 5.0)), (np.full(3, 4.0), (4.0, 4.0))]
)
def test_without_ratings_or_with_only_one_value_everything_counts_in_full(ratings, scale):
    assert confidences(ratings, 3, scale).tolist() == [1, 1, 1]


def test_a_pair_without_a_rating_counts_in_full():
    found = confidences(np.array([np.nan, 1.0, 3.0], dtype=np.float32), 3, (1.0, 5.0))
    assert found.dtype == np.float32
    assert found.tolist() == [1, 0, 0.25]


@pytest.mark.parametrize("slip", [35.0, -40.0, 1e6, np.inf, np.nan])
def test_one_slip_does_not_stretch_the_scale(slip):
    """Guards against one 35 among ratings from 1 to 5, which left all others at no confidence."""
    ratings = np.append(np.random.default_rng(0).integers(1, 6, 10_053), slip)
    assert rating_scale(ratings.astype(np.float32)) == (1, 5)


def test_rare_ratings_within_reach_stay_on_the_scale():
    """Few people give the lowest ratings; that makes them no slips."""
    assert rating_scale(np.array([3.0, 4.0, 5.0] * 1000 + [1.0])) == (1, 5)
    assert rating_scale(np.array([1.0, 2.0, 3.0] * 1000 + [5.0])) == (1, 5)
    assert rating_scale(np.array([2.0, 3.0, 4.0] * 1000 + [0.0, 6.0])) == (0, 6)
    assert rating_scale(np.array([2.0, 3.0, 4.0] * 1000 + [-0.1, 6.1])) == (2, 4)
    assert rating_scale(np.array([2.0, 9.0])) == (2, 9)
    assert rating_scale(np.array([4.0])) == (4, 4)


@given(st.lists(halves, min_size=1))
def test_the_scale_of_stars_is_what_occurs(ratings):
    lowest, highest = rating_scale(np.array(ratings))
    assert {lowest, highest} <= set(ratings)
    if len(ratings) < 200:
        assert (lowest, highest) == (min(ratings), max(ratings))


def test_without_any_rating_there_is_no_scale():
    assert rating_scale(np.array([])) is None
    assert rating_scale(np.array([np.nan, np.inf])) is None
