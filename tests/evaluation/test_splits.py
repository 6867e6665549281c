"""Protocols: what is held out, how much, and that it is always the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.errors import DataError, QkvError
from qkvsearch.evaluation.splits import split
from qkvsearch.tables.interactions import Interactions
from tests.evaluation.parts import pairs, protocols

logs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=1, max_size=60)


def sizes(log):
    return np.bincount(log.users, minlength=len(log.user_ids))


@protocols
def test_parts_do_not_overlap_and_keep_every_row_number(log, protocol):
    parts = split(log, protocol)
    assert not pairs(parts.train) & pairs(parts.test)
    assert not pairs(parts.history) & pairs(parts.test)
    assert pairs(parts.train) | pairs(parts.history) | pairs(parts.test) <= pairs(log)
    for part in (parts.train, parts.history, parts.test):
        assert part.item_ids is log.item_ids
        assert part.user_ids is log.user_ids
        assert len(part.ratings) == len(part.times) == len(part)


@protocols
def test_the_same_seed_gives_the_same_parts(log, protocol):
    first, second = split(log, protocol, 3), split(log, protocol, 3)
    assert pairs(first.test) == pairs(second.test)
    assert pairs(first.train) == pairs(second.train)


@pytest.mark.parametrize("protocol", ["random", "strong"])
def test_another_seed_gives_other_parts(log, protocol):
    assert pairs(split(log, protocol, 0).test) != pairs(split(log, protocol, 1).test)


@protocols
@given(rows=logs, times=st.randoms(use_true_random=False))
def test_any_log_is_split_cleanly_or_refused(protocol, rows, times):
    users, items = zip(*rows, strict=True)
    log = Interactions.from_columns(users, items, times=[times.randrange(9) for _ in rows])
    try:
        parts = split(log, protocol)
    except DataError:
        return
    assert not (pairs(parts.train) | pairs(parts.history)) & pairs(parts.test)
    assert set(parts.test.users) <= set(parts.history.users)
    assert len(parts.train) > 0
    assert len(parts.test) > 0


# --- one by one ---


def test_random_holds_out_a_fifth_of_every_user(log):
    parts = split(log, "random")
    n, held_out = sizes(log), sizes(parts.test)
    assert np.array_equal(held_out[n > 2], np.floor(0.2 * n[n > 2] + 0.5))
    assert held_out[n == 1].sum() == 0
    assert len(parts.train) + len(parts.test) == len(log)


def test_who_met_two_items_keeps_one():
    log = Interactions.from_columns(["a", "a", "b"], [1, 2, 1])
    parts = split(log, "random")
    assert sizes(parts.train).tolist() == [1, 1]
    assert sizes(parts.test).tolist() == [1, 0]


def test_leave_last_out_holds_out_the_latest_of_everyone_who_has_two(log):
    parts = split(log, "leave-last-out")
    assert sizes(parts.test).tolist() == (sizes(log) > 1).astype(int).tolist()
    latest_known = np.zeros(len(log.user_ids))
    np.maximum.at(latest_known, parts.train.users, parts.train.times)
    assert (parts.test.times > latest_known[parts.test.users]).all()


def test_ranks_within_users_are_enough_to_leave_the_last_out(log):
    ranked = replace(log, times_comparable=False)
    parts = split(ranked, "leave-last-out")
    assert pairs(parts.test) == pairs(split(log, "leave-last-out").test)


def test_of_equally_late_ones_the_choice_does_not_follow_the_order_of_items():
    users = np.repeat(np.arange(200), 2)
    log = Interactions.from_columns(users, np.tile([1, 2], 200), times=np.zeros(400, int))
    held_out = split(log, "leave-last-out").test.items
    assert 60 < held_out.sum() < 140


def test_time_holds_out_what_came_last(log):
    parts = split(log, "time")
    assert parts.train.times.max() < parts.test.times.min()
    assert len(parts.train) == int(0.8 * len(log))


def test_time_leaves_out_and_counts_who_came_later():
    log = Interactions.from_columns(
        list("aaaaaaaabc"), [1, 2, 3, 4, 5, 6, 7, 8, 1, 1], times=[1, 2, 3, 4, 5, 6, 7, 9, 9, 9]
    )
    parts = split(log, "time")
    assert pairs(parts.test) == {(0, 7)}
    assert parts.newcomers == 2


def test_time_never_parts_what_happened_at_once():
    log = Interactions.from_columns([1] * 5 + [2] * 5, [*range(5)] * 2, times=[0, *[1] * 4] * 2)
    parts = split(log, "time")
    assert set(parts.train.times) == {0}
    assert set(parts.test.times) == {1}


def test_strong_keeps_a_fifth_of_the_users_from_training(log):
    parts = split(log, "strong")
    unseen = set(parts.test.users)
    assert len(unseen) == np.ceil((sizes(log) > 1).sum() / 5)
    assert not unseen & set(parts.train.users)
    assert unseen == set(parts.history.users)
    n, held_out = sizes(log), sizes(parts.test)
    assert all(held_out[user] == max(1, np.floor(0.2 * n[user] + 0.5)) for user in unseen)
    assert len(parts.train) + len(parts.history) + len(parts.test) == len(log)


# --- what cannot be done ---


def test_protocols_that_need_times_say_so(log):
    without = replace(log, times=None)
    with pytest.raises(DataError, match="`protocol` leave-last-out needs to know what came last"):
        split(without, "leave-last-out")
    with pytest.raises(DataError, match=r"`protocol` time needs timestamps.*this log has no times"):
        split(without, "time")
    with pytest.raises(DataError, match="only ranks times within each user"):
        split(replace(log, times_comparable=False), "time")


@protocols
def test_one_interaction_each_is_too_little(protocol):
    log = Interactions.from_columns([1, 2, 3], [1, 2, 3], times=[5, 6, 7])
    with pytest.raises(DataError, match=f"`protocol` {protocol}: too few interactions"):
        split(log, protocol)


@pytest.mark.parametrize("early", [0, 1])
def test_times_that_are_nearly_all_one_do_not_tell_early_from_late(early):
    times = [3] * early + [5] * (10 - early)
    log = Interactions.from_columns([1] * 5 + [2] * 5, [*range(5)] * 2, times=times)
    with pytest.raises(DataError, match=rf"time: {10 - early} of 10 interactions have the same"):
        split(log, "time")


def test_an_unknown_protocol_is_told_with_near_matches(log):
    with pytest.raises(QkvError, match=r"no protocol 'randm'; did you mean random"):
        split(log, "randm")
