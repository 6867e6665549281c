"""The scale of ratings: what the numbers of a column mean, case by case."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.tables.columns.rating_cells import read_ratings
from qkvsearch.tables.ratings import ends_of, infer_scale, standing_apart

N = 10_000
halves = st.integers(2, 10).map(lambda value: value / 2)


def some(values, shares=None):
    """Numbers of a log, drawn with a fixed seed."""
    return np.random.default_rng(0).choice(np.array(values, float), N, p=shares)


SCALES = {
    "fours and fives": (some([4, 5]), (1, 5)),
    "fives alone": (np.full(9, 5.0), (1, 5)),
    "ones alone": (np.ones(9), (0, 1)),
    "twos alone": (np.full(9, 2.0), (1, 2)),
    "zeros alone": (np.zeros(9), (0, 0)),
    "a third of a percent of 0s among 1s": (some([0, 1], [0.0033, 0.9967]), (0, 1)),
    "thumbs": (some([-1, 1]), (-1, 1)),
    "thumbs and neither": (some([-1, 0, 1]), (-1, 1)),
    "half stars": (some(np.arange(1, 11) / 2), (0.5, 5)),
    "half stars, none of the lowest": (some(np.arange(2, 11) / 2), (1, 5)),
    "one to ten": (some(range(1, 11)), (1, 10)),
    "seven points": (some(range(1, 8)), (1, 7)),
    "three points": (some([1, 2, 3]), (1, 3)),
    "percent": (some(range(101)), (0, 100)),
    "shares": (some([0.25, 0.5, 0.9]), (0, 0.9)),
    "around zero": (np.array([-7.5, 0.0, 9.0]), (-9, 9)),
    "below zero": (np.array([-5.0, -1.0]), (-5, -1)),
    "most are ones, and many fives": (some([1, 2, 4, 5], [0.6, 0.05, 0.05, 0.3]), (1, 5)),
}


@pytest.mark.parametrize("case", SCALES)
def test_the_scale_of(case):
    ratings, scale = SCALES[case]
    assert infer_scale(ratings.astype(np.float32)) == pytest.approx(scale)


COUNTS = {
    "97% of 1 and 3% of 2": some([1, 2], [0.97, 0.03]),
    "half 1 and half 2": some([1, 2]),
    "quantities": some([1, 2, 3, 4, 10], [0.7, 0.15, 0.08, 0.05, 0.02]),
    "clicks, of which there may be none": some([0, 1, 2, 3], [0.5, 0.4, 0.08, 0.02]),
    "one large count": np.array([1.0] * 50 + [2.0] * 10 + [3000.0]),
    "a refund among quantities": np.repeat([1.0, 2.0, -1.0], [970, 29, 1]),
}


@pytest.mark.parametrize("case", COUNTS)
def test_counts_have_no_scale(case):
    assert infer_scale(COUNTS[case]) is None


@pytest.mark.parametrize(
    "slip", [35.0, 0.0, -1.0, -40.0, 6.0, 8.0, 1e6, 3e38, -3e38, np.inf, np.nan]
)
@pytest.mark.filterwarnings("error")
def test_one_slip_among_one_to_five_does_not_stretch_the_scale(slip):
    """Guards against one 35 among ratings from 1 to 5, which left all others at no confidence."""
    ratings = np.append(some(range(1, 6)), slip)
    assert infer_scale(ratings.astype(np.float32)) == (1, 5)


def test_rare_ratings_within_reach_stay_on_the_scale():
    """Few people give the lowest ratings; that makes them no slips."""
    assert infer_scale(np.array([3.0, 4.0, 5.0] * 1000 + [1.0])) == (1, 5)
    assert infer_scale(np.array([1.0, 2.0, 3.0] * 1000 + [5.0])) == (1, 5)
    assert infer_scale(np.array([2.0, 3.0, 4.0] * 1000 + [7.0])) == (1, 7)
    assert infer_scale(np.array([2.0, 3.0, 4.0] * 1000 + [7.1])) == (1, 4)


@given(st.lists(halves, min_size=1, max_size=199))
def test_the_top_of_a_scale_of_stars_occurs(ratings):
    scale = infer_scale(np.array(ratings))
    if scale is not None and max(ratings) > 1:
        assert scale == (1, max(ratings))


def test_without_any_rating_there_is_no_scale():
    assert infer_scale(np.array([])) is None
    assert infer_scale(np.array([np.nan, np.inf])) is None
    assert ends_of(np.array([4.0, 5.0, np.nan])) == (4, 5)
    assert ends_of(np.append(some(range(1, 6)), 35.0)) == (1, 5)


def test_a_rare_minus_one_among_half_stars_does_not_move_the_scale():
    """The scale was from -5 to 5, and ratings of 2 became likes."""
    half_stars = np.tile(np.arange(0.5, 5.5, 0.5), 100)
    assert infer_scale(np.append(half_stars, -1.0)) == (0.5, 5.0)
    assert infer_scale(np.append(np.tile(np.arange(2.0, 11.0), 100), -1.0)) == (1.0, 10.0)


@pytest.mark.parametrize(
    ("ratings", "apart"),
    [
        ([-9.9, 0.5, 1, 2, 3.5, 5], [-9.9]), ([-9.9, -9.5, 0, 3, 9, 99], [99]), ([-1, 1, 99], [99]),
        ([1, 2, 3, 4, 5, 98, 99], [98, 99]), ([-99, 1, 2, 3, 4, 5, 99], [-99, 99]),
        ([-1, 1, 2, 3], [-1]), ([0, 8, 9, 10], [0]), ([1, 2, 3, 4, 5, 10], [10]),
        ([1, 8, 9, 10], []), ([1, 5], []), ([1, 2, 5], []), ([1, 4, 5], []), ([1, 10], []),
        ([0, 1], []), ([-1, 0, 1], []), ([1, 2, 9, 10], []), ([1, 2, 3, 9, 10], []),
        ([-9.5, 0, 9], []), ([20, 40, 60, 80, 100], []), ([0.1, 0.4, 1.5, 4, 8, 14, 22], []),
    ],
)  # fmt: skip
def test_which_ratings_stand_apart(ratings, apart):
    shares = np.full(len(ratings), 7)
    assert sorted(standing_apart(np.array(ratings, float), shares)) == apart
    typo = [*ratings, 1e6]  # is too rare to hide them, and no reason to stop
    assert sorted(standing_apart(np.array(typo, float), np.append(shares * 200, 1))) == apart


@pytest.mark.parametrize(
    ("like", "dislike"),
    [("EVET", "HAYIR"), ("ΝΑΙ", "ΟΧΙ"), ("Sim", "Na\u0303o"), ("有り", "無し"), ("Taip", "Ne")],
)
def test_answers_in_any_case_and_unicode_form_are_likes_and_dislikes(like, dislike):
    cells = read_ratings(pd.Series([like, dislike]), np.array([97, 3]), "rating", "log.csv")
    assert cells.values.tolist() == [1.0, 0.0]
