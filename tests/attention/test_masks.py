"""Masks: each one against its definition, entry by entry, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.attention import (
    exclusion_mask,
    keep_from_ignore,
    look_ahead_mask,
    padding_mask,
    window_mask,
)

sizes = st.integers(0, 7)
offsets = st.integers(-5, 9)
sides = st.none() | st.integers(0, 8)


@given(sizes, sizes, sides, sides, offsets)
def test_window_mask_is_its_inequality(L, S, left, right, offset):
    mask = window_mask(L, S, left, right, offset)
    assert mask.dtype == bool
    assert mask.shape == (L, S)
    for i in range(L):
        for j in range(S):
            reaches_left = left is None or j >= i + offset - left
            reaches_right = right is None or j <= i + offset + right
            assert mask[i, j] == (reaches_left and reaches_right)


def test_look_ahead_mask_is_square_unless_told():
    np.testing.assert_array_equal(look_ahead_mask(4), np.tri(4, dtype=bool))


def test_look_ahead_offset_aligns_the_last_query_with_the_last_key():
    np.testing.assert_array_equal(look_ahead_mask(2, 4, offset=2), np.tri(4, dtype=bool)[2:])


@given(st.lists(sizes, min_size=1, max_size=5))
def test_padding_mask_keeps_as_many_as_each_length(lengths):
    mask = padding_mask(lengths, 7)
    assert mask.tolist() == [[j < length for j in range(7)] for length in lengths]


def test_padding_mask_size_defaults_to_the_longest_sentence():
    assert padding_mask([2, 3, 0]).tolist() == [
        [True, True, False],
        [True, True, True],
        [False, False, False],
    ]
    assert padding_mask([]).shape == (0, 0)


@given(st.integers(1, 9), st.data())
def test_exclusion_mask_hides_exactly_the_excluded(size, data):
    excluded = data.draw(st.lists(st.integers(0, size - 1)))
    assert exclusion_mask(size, excluded).tolist() == [j not in excluded for j in range(size)]


def test_exclusion_of_nothing_is_not_mistaken_for_floats():
    assert exclusion_mask(2, []).tolist() == [True, True]
    assert exclusion_mask(0, []).shape == (0,)


def test_keep_from_ignore_turns_every_entry_round():
    assert keep_from_ignore([[True, False]]).tolist() == [[False, True]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: padding_mask([4], size=3), ValueError, r"between 0 and size=3, got 4 to 4"),
        (lambda: padding_mask([2, -1]), ValueError, r"lengths must lie between 0.*got -1 to 2"),
        (lambda: padding_mask([1.5]), TypeError, r"lengths must be whole numbers, got float64"),
        (lambda: window_mask(2, 2, left=-1), ValueError, r"left side.*got -1; None is unlimited"),
        (lambda: window_mask(2, 2, right=-1), ValueError, r"right side.*got -1; None is unlimited"),
        (lambda: exclusion_mask(3, [0, 3]), ValueError, r"between 0 and size - 1 = 2, got 3"),
        (lambda: exclusion_mask(3, [-1]), ValueError, r"between 0 and size - 1 = 2, got -1"),
        (lambda: exclusion_mask(2, [True, False]), TypeError, r"whole numbers, got bool"),
        (lambda: keep_from_ignore([0, 1]), TypeError, r"must be boolean, True = ignore, got int64"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()
