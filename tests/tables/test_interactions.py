"""Interactions: distinct pairs and what refunds leave of them, against slow twins."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.errors import DataError
from qkvsearch.tables.ids import Ids
from qkvsearch.tables.interactions import Interactions, MergeCounts, MergedRows, apply_refunds
from qkvsearch.tables.report import ReadReport

people = st.sampled_from(["ann", "bob", "cat", None])
things = st.sampled_from([10, 9, 100, None])
rows = st.lists(st.tuples(people, things, st.integers(1, 5), st.integers(-3, 3)), max_size=20)


def test_of_many_equal_times_the_last_row_stays():
    log = Interactions.from_columns(["a"] * 999, [1] * 999, ratings=range(999), times=[7] * 999)
    assert log.ratings.tolist() == [998]


def test_a_later_row_without_a_rating_brings_its_time_and_leaves_the_rating():
    log = Interactions.from_columns(
        ["a", "b", "a", "a"], [1, 1, 1, 1], ratings=[5, 3, None, 2], times=[7, 8, 9, 6]
    )
    assert (log.ratings.tolist(), log.times.tolist()) == ([5, 3], [9, 8])


def test_items_outside_the_given_ids_are_left_out_and_theirs_is_the_numbering():
    log = Interactions.from_columns(["a", "a", "b"], [30, 7, 4], item_ids=Ids(["4", "5", "30"]))
    assert log.items.tolist() == [2, 0]
    assert log.matrix().shape == (2, 3)


def test_pairs_stay_apart_where_users_times_items_is_beyond_32_bits():
    """65,537 users of 65,536 items: counted in 32 bits, the last pair would be the first."""
    n = 2**16
    items = Ids([f"{number:05}" for number in range(n)])
    users = [f"{number:05}" for number in range(n + 1)]
    log = Interactions.from_columns(users, [items[0]] * (n + 1), item_ids=items)
    assert len(log) == n + 1
    np.testing.assert_array_equal(log.users, np.arange(n + 1))
    assert not log.items.any()


@given(rows, st.booleans(), st.booleans())
def test_from_columns_is_its_dict_twin(rows, timed, given_ids):
    item_ids = Ids(["100", "9"]) if given_ids else None
    users, items, ratings, times = zip(*rows, strict=True) if rows else ([], [], [], [])
    log = Interactions.from_columns(
        list(users), list(items), ratings, times if timed else None, item_ids=item_ids
    )

    ordered = sorted(rows, key=lambda row: row[3]) if timed else rows
    twin = {
        (user, item): (rating, time)
        for user, item, rating, time in ordered
        if user is not None and item is not None and (not given_ids or item != 10)
    }
    pairs = [
        (log.user_ids[user], log.item_ids[item])
        for user, item in zip(log.users, log.items, strict=True)
    ]
    assert dict(zip(pairs, log.ratings.tolist(), strict=True)) == {
        pair: rating for pair, (rating, _) in twin.items()
    }
    assert len(pairs) == len(twin)
    if timed:
        assert log.times.tolist() == [twin[pair][1] for pair in pairs]
    keys = list(zip(log.users, log.items, strict=True))
    assert keys == sorted(keys)


@given(rows)
def test_matrix_has_each_rating_at_its_place_and_zero_elsewhere(rows):
    users, items, ratings, _ = zip(*rows, strict=True) if rows else ([], [], [], [])
    log = Interactions.from_columns(list(users), list(items), ratings)
    expected = np.zeros((len(log.user_ids), len(log.item_ids)), np.float32)
    for user, item, rating in zip(log.users, log.items, log.ratings, strict=True):
        expected[user, item] = rating
    np.testing.assert_array_equal(log.matrix(log.ratings).toarray(), expected)
    assert log.matrix().dtype == np.float32
    assert log.matrix().sum() == len(log)


amounts = st.sampled_from([1.0, 2.0, 5.0, -1.0, -4.0, np.nan])
bought = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), amounts, st.integers(0, 9)))


@given(bought)
def test_users_merged_one_by_one_give_the_pairs_and_counts_of_all_at_once(rows):
    table = np.array(rows or np.empty((0, 4)))
    users, items = table[:, 0].astype(np.int32), table[:, 1].astype(np.int32)
    given_columns = {"weights": table[:, 2], "times": table[:, 3].astype(np.int64)}
    report = ReadReport("log")
    log = Interactions.from_numbers(
        users.copy(), items, Ids(map(str, range(4))), Ids("012"), **given_columns, report=report
    )
    positive = table[table[:, 2] > 0, 2]
    usual = float(np.median(positive)) if len(positive) else 1.0
    alone, counts = [], MergeCounts()
    for user in range(4):
        own = np.flatnonzero(users == user)
        merged = MergedRows(3, usual=usual, **{k: v[own] for k, v in given_columns.items()})
        merged.add(users[own], items[own], np.arange(len(own)))
        alone.append(merged.whole())
        counts += merged.counts
    for name in ("users", "items", "weights", "times"):
        together = np.concatenate([columns[name] for columns in alone])
        np.testing.assert_array_equal(together, getattr(log, name))
    said = ReadReport("log")
    counts.add_to(said)
    assert (said.merged, said.notes) == (report.merged, report.notes)
    assert counts.merged == len(rows) - len(log)
    assert counts.missing == np.isnan(table[:, 2]).sum()
    assert counts.refunds == (table[:, 2] < 0).sum()


# --- refunds ---


def left(pairs, weights):
    amounts, unmatched = apply_refunds(np.array(pairs), np.array(weights, dtype=float))
    return amounts.tolist(), unmatched


@pytest.mark.parametrize(
    ("pairs", "weights", "expected"),
    [
        ([0, 0, 0, 0], [1, 1, -1, 1], ([1, 0, 0, 1], 0)),  # the latest purchase before it
        ([0, 0, 0], [2, 1, -2], ([1, 0, 0], 0)),  # more than the latest: then the one before
        ([0, 1, 0], [-1, 1, 1], ([0, 1, 1], 1)),  # no purchase before it
        ([0, 0], [1, -3], ([0, 0], 1)),  # more than there was
        ([0, 1, 1], [1, 1, -1], ([1, 0, 0], 0)),  # of its own user and item
        ([0, 0, 0], [0.1, 0.2, -0.3], ([0, 0, 0], 0)),  # decimal fractions
    ],
)
def test_a_refund_takes_back_earlier_purchases(pairs, weights, expected):
    assert left(pairs, weights) == expected


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3)), max_size=30))
def test_refunds_are_a_stack_of_units(rows):
    stacks, lost = {}, 0
    for row, (pair, weight) in enumerate(rows):
        stack = stacks.setdefault(pair, [])
        stack += [row] * max(weight, 0)
        lost += -weight > len(stack)
        del stack[len(stack) - min(-weight, len(stack)) if weight < 0 else len(stack) :]
    expected = [sum(stack.count(row) for stack in stacks.values()) for row in range(len(rows))]
    pairs, weights = zip(*rows, strict=True) if rows else ([], [])
    assert left(pairs, weights) == (expected, lost)


@pytest.mark.parametrize(
    ("times", "wrong"),
    [
        ([pd.Timestamp(0), "x"], "row 1 has 'x'"),
        ([1, 2, "x"], "row 2 has 'x'"),
        ([pd.Timestamp(0), 3, "x"], "row 2 has 'x'"),
        ([3, pd.Timestamp(0)], "row 1 has"),
    ],
)
def test_the_row_with_a_wrong_time_is_named(times, wrong):
    n = len(times)
    with pytest.raises(DataError, match=wrong):
        Interactions.from_columns(range(n), range(n), times=times)


def test_rows_that_are_not_there_are_refused():
    log = Interactions.from_columns(list("ab"), [1, 2])
    for rows in ([7], [-3], [0.5], ["x"], [2**64]):
        with pytest.raises(DataError, match="from 0 to below 2"):
            log.take(rows)
    assert [len(log.take(rows)) for rows in ([], [1], [0, 1], [True, False])] == [0, 1, 2, 1]
