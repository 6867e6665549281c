"""Refunds: what they take back, against one unit after another."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.data.interactions import what_is_left


def left(pairs, weights):
    found, unmatched = what_is_left(np.array(pairs), np.array(weights, dtype=float))
    return found.tolist(), unmatched


def test_a_refund_takes_back_the_latest_purchase_before_it():
    assert left([0, 0, 0, 0], [1, 1, -1, 1]) == ([1, 0, 0, 1], 0)


def test_a_refund_of_more_than_the_latest_takes_from_the_one_before():
    assert left([0, 0, 0], [2, 1, -2]) == ([1, 0, 0], 0)


def test_a_refund_without_a_purchase_counts_nothing():
    assert left([0, 1, 0], [-1, 1, 1]) == ([0, 1, 1], 1)


def test_a_refund_of_more_than_there_was_leaves_nothing():
    assert left([0, 0], [1, -3]) == ([0, 0], 1)


def test_a_refund_is_of_its_own_user_and_item():
    assert left([0, 1, 1], [1, 1, -1]) == ([1, 0, 0], 0)


def test_decimal_fractions_leave_nothing_behind():
    assert left([0, 0, 0], [0.1, 0.2, -0.3]) == ([0, 0, 0], 0)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3)), max_size=30))
def test_it_is_a_stack_of_units(rows):
    stacks, lost = {}, 0
    for row, (pair, weight) in enumerate(rows):
        stack = stacks.setdefault(pair, [])
        stack += [row] * max(weight, 0)
        lost += -weight > len(stack)
        del stack[len(stack) - min(-weight, len(stack)) if weight < 0 else len(stack) :]
    expected = [sum(stack.count(row) for stack in stacks.values()) for row in range(len(rows))]
    pairs, weights = zip(*rows, strict=True) if rows else ([], [])
    assert left(pairs, weights) == (expected, lost)
