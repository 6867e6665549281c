"""What `NextItem` is trained on and by: windows of the histories, and the losses."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from qkvsearch.collaborative.next_item_training import (
    Proposal,
    Sequences,
    Windows,
    full_softmax,
    sampled_softmax,
)
from qkvsearch.data.interactions import Interactions


class TestWindows:
    @pytest.mark.parametrize("seed", range(30))
    def test_every_interaction_but_a_first_and_a_held_out_one_is_a_target_once(self, seed):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(0, 30, rng.integers(1, 9))
        items = rng.integers(0, 1000, lengths.sum())
        sequences = Sequences(items, np.cumsum(lengths) - lengths, lengths)
        held_out = np.flatnonzero((lengths >= 3) & (rng.random(len(lengths)) < 0.4))
        size = int(rng.integers(1, 8))
        read = []
        for batch in Windows(sequences, size, 3, held_out, rng):
            assert len(batch.items) <= 3
            assert batch.items.shape[1] <= size
            for row, targets, counts in zip(*batch, strict=True):
                assert np.array_equal(row[counts][1:], targets[counts][:-1])
                read += zip(row[counts], targets[counts], strict=True)
        expected = []
        for user in range(len(lengths)):
            history = sequences.histories([user], n_left_out=int(user in held_out))[0]
            expected += pairwise(history)
        assert sorted(read) == sorted(expected)

    def test_histories_are_cut_at_other_places_each_time(self):
        sequences = Sequences(np.arange(50), np.array([0]), np.array([50]))
        windows = Windows(sequences, 10, 1, np.array([], int), np.random.default_rng(0))
        cuts = [{int(batch.items[0, 0]) for batch in windows} for _ in range(5)]
        assert any(cut != cuts[0] for cut in cuts)

    def test_as_many_batches_on_average_as_said(self):
        lengths = np.random.default_rng(0).integers(2, 400, 200)
        sequences = Sequences(np.arange(lengths.sum()), np.cumsum(lengths) - lengths, lengths)
        windows = Windows(sequences, 50, 4, np.array([], int), np.random.default_rng(0))
        found = [len(list(windows)) for _ in range(20)]
        assert np.mean(found) == pytest.approx(len(windows), abs=1.5)

    def test_by_time_and_of_equally_late_ones_in_the_order_of_the_log(self):
        log = Interactions.from_columns(["a"] * 4, [40, 10, 30, 20], times=[1, 2, 1, 0])
        assert [log.item_ids[i] for i in Sequences.of(log).items] == [20, 30, 40, 10]


def test_items_are_sampled_as_often_as_expected():
    proposal = Proposal.of(np.repeat([0, 1, 3], [1, 4, 16]), 4, np.random.default_rng(0))
    found, expected = proposal.sample(70_000)
    assert np.bincount(found, minlength=4) / 70_000 == pytest.approx(
        [1 / 7, 2 / 7, 0, 4 / 7], abs=0.01
    )
    assert expected == pytest.approx(np.bincount(found)[found], rel=0.05)


class TestLosses:
    @pytest.fixture
    def torch(self) -> Any:
        return pytest.importorskip("torch", reason="compares with torch")

    @pytest.mark.parametrize("n", [1, 128, 300])
    def test_full_softmax_has_the_gradients_of_cross_entropy(self, torch, n):
        torch.manual_seed(0)
        states = torch.randn(n, 5, dtype=torch.float64, requires_grad=True)
        keys = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
        targets = torch.randint(9, (n,))
        torch.nn.functional.cross_entropy(states @ keys.T, targets).backward()
        by_states, by_keys = full_softmax(states.detach(), keys.detach(), targets)
        torch.testing.assert_close(by_states, states.grad)
        torch.testing.assert_close(by_keys, keys.grad)

    def test_the_sampled_denominator_is_right_on_average(self, torch):
        """exp(loss) is the estimated denominator over the target's own addend."""
        rng = np.random.default_rng(0)
        keys, state = (
            torch.from_numpy(rng.normal(size=(8, 5))),
            torch.from_numpy(rng.normal(size=(1, 5))),
        )
        proposal = Proposal(np.array([0.2, 0.05, 0.1, 0.15, 0.1, 0.1, 0.2, 0.1]), rng)
        target = torch.tensor([2])
        sampled = [
            sampled_softmax(state, keys, target, proposal, n=20).exp().item() for _ in range(3000)
        ]
        exact = torch.nn.functional.cross_entropy(state @ keys.T, target).exp().item()
        assert np.mean(sampled) == pytest.approx(exact, rel=0.03)


def test_a_last_batch_that_is_not_full_counts():
    sequences = Sequences(np.tile(np.arange(3), 3), np.array([0, 3, 6]), np.full(3, 3))
    windows = Windows(sequences, 10, 2, np.array([], int), np.random.default_rng(0))
    assert len(windows) == 2 == len(list(windows))
