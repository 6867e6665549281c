"""The k best, exactly: against sorting everything, with ties and masks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.retrieval import top_k

# Few values, so that most draws have ties at the threshold.
scores = st.lists(st.sampled_from([-2.0, 0.0, 1.0, 1.5]), max_size=30)


@given(scores, st.integers(0, 35), st.randoms())
def test_top_k_is_the_beginning_of_a_full_sort(values, k, random):
    mask = [random.random() < 0.6 for _ in values]
    expected = sorted(
        (i for i, allowed in enumerate(mask) if allowed), key=lambda i: (-values[i], i)
    )[:k]
    found = top_k(np.array(values, dtype=np.float32), k, np.array(mask, dtype=bool))
    assert found.tolist() == expected


@given(scores, st.integers(0, 35))
def test_without_a_mask_everything_may_be_ranked(values, k):
    found = top_k(np.array(values), k)
    assert found.tolist() == sorted(range(len(values)), key=lambda i: (-values[i], i))[:k]
    assert found.dtype == np.int64


@pytest.mark.parametrize("k", [0, 1, 3, 4, 99])
def test_all_equal_scores_come_in_order(k):
    assert top_k(np.ones(4), k).tolist() == list(range(4))[:k]


@pytest.mark.parametrize("k", [0, 1, 99])
def test_a_mask_that_leaves_nothing_gives_nothing(k):
    assert top_k(np.ones(4), k, np.zeros(4, dtype=bool)).tolist() == []


def test_infinite_scores_are_ordinary_candidates():
    values = np.array([0.0, np.inf, -np.inf, np.inf])
    assert top_k(values, 0).tolist() == []
    assert top_k(values, 1).tolist() == [1]
    assert top_k(values, 3).tolist() == [1, 3, 0]
