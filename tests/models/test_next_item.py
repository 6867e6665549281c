"""What `NextItem` and its model promise; the checks that estimators share are in tests/contract."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from qkvsearch.attention.layers import state
from qkvsearch.errors import DataError, QkvError, UnknownIdError
from qkvsearch.evaluation.splits import split
from qkvsearch.models.next_item import NextItem
from qkvsearch.models.next_item_model import NextItemModel
from qkvsearch.models.next_item_softmax import Proposal, full_softmax, sampled_softmax
from qkvsearch.models.next_item_windows import Sequences, Windows
from qkvsearch.tables.interactions import Interactions

N_ITEMS, N_POSITIONS, D = 30, 8, 12
HISTORY = np.array([3, 1, 4, 15, 9, 2, 6])
SMALL: dict[str, Any] = {
    "n_components": 16,
    "n_positions": 10,
    "batch_size": 8,
    "learning_rate": 0.01,
    "random_state": 0,
}


@pytest.fixture
def model() -> NextItemModel:
    """Random weights, none of them 0 or 1, so that each one shows; nobody met item 7."""
    model = NextItemModel.create(N_ITEMS, D, n_layers=3, n_heads=2, n_positions=N_POSITIONS, rng=0)
    for i, weight in enumerate(state(model).values()):
        weight += 0.3 * np.random.default_rng(i).normal(size=weight.shape).astype(np.float32)
    model.items.weight[7] = 0
    return model


def round_trips(n_users: int = 30, n_items: int = 12, length: int = 9) -> Interactions:
    """Each user starts somewhere on a circle of items, and goes round it."""
    users, days = np.divmod(np.arange(n_users * length), length)
    return Interactions.from_columns(users, (5 * users + days) % n_items, times=days)


# --- answering, for which nobody needs PyTorch ---


class TestModel:
    def test_later_items_change_no_earlier_state(self, model):
        states = model.states(HISTORY)
        assert states.shape == (len(HISTORY), D)
        for n in range(1, len(HISTORY)):
            np.testing.assert_allclose(model.states(HISTORY[:n]), states[:n], atol=1e-5)

    def test_the_order_counts(self, model):
        assert np.abs(model.fold_in(HISTORY) - model.fold_in(HISTORY[::-1])).max() > 0.01

    def test_only_the_last_positions_count(self, model):
        long = np.concatenate([[20, 21, 22], HISTORY, [10, 11]])
        assert len(model.states(long)) == N_POSITIONS
        assert np.array_equal(model.fold_in(long), model.fold_in(long[-N_POSITIONS:]))
        vectors = model.history_vectors(long)
        assert vectors.shape == (len(long) + 1, D)
        assert not vectors[: -N_POSITIONS - 1].any()
        assert vectors[-N_POSITIONS - 1 :].any(axis=1).all()

    def test_items_that_nobody_met_are_not_read(self, model):
        assert np.array_equal(model.fold_in([7, 3, 7, 1]), model.fold_in([3, 1]))
        assert np.flatnonzero(~model.known).tolist() == [7]
        assert not model.history_vectors([7, 3])[0].any()

    @pytest.mark.parametrize("history", [[], [7]])
    def test_a_history_of_nothing_gives_zeros(self, model, history):
        assert model.fold_in(history).shape == (D,)
        assert not model.fold_in(history).any()
        assert not model.history_vectors(history).any()

    @pytest.mark.parametrize("length", [1, 2, 7, 40])
    def test_parts_add_up_to_the_scores(self, model, assert_adds_up, length):
        history = np.random.default_rng(length).integers(0, N_ITEMS, length)
        scores = model.items.weight @ model.fold_in(history)
        parts = model.items.weight @ model.history_vectors(history).T
        assert parts.shape == (N_ITEMS, length + 1)
        for row, score in zip(parts, scores, strict=True):
            assert_adds_up(row.tolist(), float(score))

    def test_answering_imports_neither_torch_nor_scikit_learn(self):
        code = (
            "import sys; from qkvsearch.models.next_item_model import NextItemModel as M; "
            "M.create(9, 4, 1, 1, 5, 0).history_vectors([1, 2]); "
            "print(*{'torch', 'sklearn', 'pandas', 'numba'} & set(sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.stdout.strip(), done.returncode) == ("", 0), done.stderr


# --- what is refused ---


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (np.ones((2, 2)), "takes Interactions, not ndarray"),
        (Interactions.from_columns(["a", "a"], [1, 2]), "have no times"),
        (Interactions.from_columns(["a", "b"], [1, 2], times=[1, 2]), "no user has two"),
        (Interactions.from_columns([], [], times=[]), "no user has two"),
    ],
)
def test_what_cannot_be_fitted_says_why(log, message):
    with pytest.raises(DataError, match=message):
        NextItem(**SMALL).fit(log)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", 7),
        ("n_layers", 0),
        ("n_heads", 1.5),
        ("n_positions", 0),
        ("dropout", 1.0),
        ("learning_rate", 0.0),
        ("max_iter", 0),
        ("max_minutes", -1.0),
        ("batch_size", True),
    ],
)
def test_a_parameter_that_cannot_work_is_named(name, value):
    with pytest.raises(DataError, match=name):
        NextItem(**{**SMALL, name: value}).fit(round_trips())


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(QkvError, match=r"pip install -e '\.\[train\]'"):
        NextItem(**SMALL).fit(round_trips())


# --- training ---


class TestTraining:
    @pytest.fixture(autouse=True)
    def torch(self) -> Any:
        return pytest.importorskip("torch", reason="training needs torch")

    def test_what_follows_for_certain_is_foreseen(self):
        """Everyone goes round: the last trips of all, and one from each item, end where they do."""
        log = round_trips()
        parts = split(log, "leave-last-out")
        fitted = NextItem(**SMALL, max_iter=40).fit(parts.train)
        histories = Sequences.of(parts.train).histories(np.arange(len(log.user_ids)))
        for history, target in zip(histories, parts.test.items, strict=True):
            scores = fitted.model_.items.weight @ fitted.model_.fold_in(history)
            assert scores.argmax() == target
        for item in range(12):
            scores = fitted.item_embeddings_ @ fitted.fold_in([item])
            assert fitted.item_ids_[int(scores.argmax())] == (item + 1) % 12

    def test_above_so_many_items_those_sampled_do(self, monkeypatch):
        from qkvsearch.models import next_item_training

        monkeypatch.setattr(next_item_training, "FULL_SOFTMAX_ITEMS", 5)
        fitted = NextItem(**SMALL, max_iter=40).fit(round_trips())
        for item in range(12):
            assert (fitted.item_embeddings_ @ fitted.fold_in([item])).argmax() == (item + 1) % 12

    def test_what_is_held_out_never_reaches_it(self):
        """Whatever came last, and wherever that leads, the model is the same bit for bit."""
        users, days = np.divmod(np.arange(20 * 6), 6)
        arrays = []
        for last in (days, 11 - users % 5):
            items = np.where(days == 5, last, (users + days) % 5)
            ids = round_trips().item_ids
            log = Interactions.from_columns(users, items, times=days, item_ids=ids)
            parts = split(log, "leave-last-out")
            arrays.append(NextItem(**SMALL, max_iter=2).fit(parts.train).model_.state()[0])
        assert all(np.array_equal(arrays[0][name], arrays[1][name]) for name in arrays[0])

    def test_an_item_that_nobody_met_has_no_embedding(self):
        log = round_trips()
        fitted = NextItem(**SMALL, max_iter=1).fit(log.take(log.items != 4))
        assert np.flatnonzero(~fitted.model_.known).tolist() == [4]

    def test_pytorch_is_left_as_it_was(self, torch):
        torch.manual_seed(5)
        expected = torch.rand(3)
        torch.manual_seed(5)
        n_threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            NextItem(**SMALL, max_iter=1).fit(round_trips())
            assert torch.get_num_threads() == 1
            assert torch.equal(torch.rand(3), expected)
        finally:
            torch.set_num_threads(n_threads)

    def test_out_of_time_it_ends_and_answers(self):
        heard: list[tuple[int, int]] = []
        fitted = NextItem(
            **SMALL, max_iter=50, max_minutes=1e-6, callback=lambda *turn: heard.append(turn)
        ).fit(round_trips())
        assert heard == [(1, 50)]
        assert fitted.fold_in([3]).any()

    def test_callback_hears_of_every_epoch(self):
        heard: list[tuple[int, int]] = []
        NextItem(**SMALL, max_iter=3, callback=lambda *turn: heard.append(turn)).fit(round_trips())
        assert heard == [(1, 3), (2, 3), (3, 3)]

    def test_the_epoch_that_foresaw_best_is_kept(self, monkeypatch):
        from qkvsearch.models.next_item_training import _Training

        seen: list[np.ndarray] = []

        def quality(training: Any) -> float:
            seen.append(training.keys.detach().numpy().copy())
            return [0.1, 0.3, 0.2][len(seen) - 1]

        monkeypatch.setattr(_Training, "_quality", quality)
        fitted = NextItem(**SMALL, max_iter=3).fit(round_trips())
        assert np.array_equal(fitted.item_embeddings_, seen[1])
        assert not np.array_equal(seen[1], seen[2])

    @pytest.mark.parametrize("diverges", [1, 3])
    def test_what_is_no_number_foresees_nothing(self, monkeypatch, diverges):
        """Of epochs after which scores are no numbers none is kept, and none is begun."""
        from qkvsearch.models.next_item_training import _Training

        step, heard = _Training._step, []

        def diverging(training: Any, batch: Any) -> None:
            step(training, batch)
            if len(heard) == diverges - 1:
                training.keys.data[3] = float("nan")

        monkeypatch.setattr(_Training, "_step", diverging)
        model = NextItem(**SMALL, max_iter=9, callback=lambda *turn: heard.append(turn))
        if diverges == 1:
            with pytest.raises(DataError, match=r"diverged: lower learning_rate \(0.01\)"):
                model.fit(round_trips())
        else:
            assert np.isfinite(model.fit(round_trips()).item_embeddings_).all()
        assert len(heard) == diverges

    def test_a_rate_too_high_is_said_where_nobody_chooses_the_epoch(self):
        few = round_trips(n_users=5)  # no tenth of them to hold out
        model = NextItem(**SMALL | {"learning_rate": 1e30}, max_iter=3)
        with pytest.raises(DataError, match="lower learning_rate"):
            model.fit(few)

    def test_names_in_and_unknown_ones_refused(self):
        fitted = NextItem(**SMALL, max_iter=1).fit(round_trips())
        assert np.array_equal(fitted.fold_in([2, 3]), fitted.fold_in(["2", "3"]))
        assert not fitted.fold_in([]).any()
        with pytest.raises(UnknownIdError, match="no item '99'"):
            fitted.fold_in([1, 99])


class TestBesidePyTorch:
    @pytest.fixture(autouse=True)
    def torch(self) -> Any:
        return pytest.importorskip("torch", reason="compares with torch")

    def test_the_same_states(self, torch, model):
        from qkvsearch.models.next_item_training import states

        weights = {name: torch.from_numpy(array) for name, array in state(model).items()}
        histories = np.stack([HISTORY, HISTORY[::-1]])
        found = states(weights, torch.from_numpy(histories.copy()), n_heads=2).numpy()
        for row, history in zip(found, histories, strict=True):
            np.testing.assert_allclose(model.states(history), row, atol=1e-5)

    def test_dropout_is_for_training_alone(self, torch, model):
        from qkvsearch.models.next_item_training import states

        weights = {name: torch.from_numpy(array) for name, array in state(model).items()}
        items = torch.from_numpy(HISTORY[None])
        assert torch.equal(states(weights, items, 2), states(weights, items, 2))
        assert not torch.equal(states(weights, items, 2, 0.5), states(weights, items, 2, 0.5))


# --- training: windows of the histories, and the losses ---


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
