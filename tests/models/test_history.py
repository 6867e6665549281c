"""Histories of weights: what is recorded later adds to them, and takes back."""

import numpy as np
import pytest

from qkvsearch.models.confidences import Feedback
from qkvsearch.models.user_history import History, PastInteraction

FEEDBACK = Feedback(usual_weight=2.0, usual_weights=np.array([2.0, 4.0, 0.0], np.float32))


def past(weights=(2.0, 0.0)):
    """Of the items 0 and 1, met at the times 10 and 11."""
    items, weights = np.arange(2), np.array(weights, np.float32)
    confidences = FEEDBACK.confidences(items, None, weights)
    return History(items, confidences, np.full(2, np.nan), np.array([10, 11]), weights)


def after(*records):
    """Weight and confidence by item."""
    history = past()
    found = history.then(
        history.recorded_later([PastInteraction(*record) for record in records]), FEEDBACK
    )
    pairs = zip(found.weights.tolist(), found.confidences.tolist(), strict=True)
    return dict(zip(found.positions.tolist(), pairs, strict=True))


def test_what_was_taken_back_is_known_and_not_liked():
    assert past().liked.positions.tolist() == [0]
    assert len(past()) == 2


def test_a_later_purchase_adds_to_what_there_was():
    weight, confidence = after((0, None, 20, 3.0))[0]
    assert weight == 5
    assert confidence == pytest.approx((1 + np.log(1 + 5 / 2)) / (1 + np.log(2)))


def test_a_later_refund_takes_back_down_to_nothing():
    assert after((0, None, 20, -1.0))[0][0] == 1
    assert after((0, None, 20, -9.0))[0] == (0, 0)
    assert after((0, None, 20, -9.0), (0, None, 21, 2.0))[0] == (2, 1)


def test_without_a_weight_it_counts_as_usual_even_after_a_refund():
    weight, confidence = after((1, None, 20, None))[1]
    assert np.isnan(weight)
    assert confidence == 1
    assert after((0, None, 20, None))[0][0] == 2


def test_an_item_that_nobody_met_is_compared_with_the_whole_log():
    assert after((2, None, 20, 2.0))[2] == (2, 1)


def test_records_of_the_same_second_stay_in_order():
    records = [PastInteraction(0, None, 20), PastInteraction(1, None, 20)]
    assert [one.time for one in past().recorded_later(records)] == [20, 21]


def test_a_rating_and_a_weight_are_multiplied():
    feedback = Feedback((1.0, 5.0), 2.0, np.full(3, 2.0, np.float32))
    found = feedback.confidences(
        np.arange(3), np.array([5.0, 4.0, 2.0]), np.array([2.0, 2.0, 900.0])
    )
    assert found.tolist() == [1, 0.5625, 0]
