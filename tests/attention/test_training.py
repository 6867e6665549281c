"""Training: Adam's steps, shuffled batches, and a small encoder that learns a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from qkvsearch.attention.gradients import vjp
from qkvsearch.attention.layers.basic import Embedding, LearnedPositions, Linear
from qkvsearch.attention.layers.state_dict import prefixed, state
from qkvsearch.attention.layers.transformer import Encoder
from qkvsearch.attention.training import Adam, Minibatches, cross_entropy, fit


@dataclass(eq=False)
class Labeller:
    """A label for every token, in the light of the others."""

    words: Embedding
    positions: LearnedPositions
    encoder: Encoder
    labels: Linear

    @classmethod
    def create(cls, n_words: int, n_labels: int, rng: Any) -> Labeller:
        rng = np.random.default_rng(rng)
        return cls(
            Embedding.create(n_words, 16, rng),
            LearnedPositions.create(8, 16, rng),
            Encoder.create(1, 16, 2, 32, rng),
            Linear.create(16, n_labels, rng),
        )

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        return self.labels(self.encoder(self.positions(self.words(ids))))


@vjp.register
def labeller_vjp(model: Labeller, ids: np.ndarray) -> Any:
    x: Any = ids
    pulls = []
    for name in ("words", "positions", "encoder", "labels"):
        x, pull = vjp(getattr(model, name), x)
        pulls.append((name, pull))

    def back(gradient: np.ndarray) -> Any:
        inputs, weights = (gradient,), {}
        for name, pull in reversed(pulls):
            inputs, of_part = pull(*inputs)
            weights |= prefixed(name, of_part)
        return inputs, weights

    return x, back


# Is each word the same as the first? Only attention to the first token can tell.
IDS = np.random.default_rng(0).integers(0, 4, size=(200, 6))
SAME = (IDS[:, :1] == IDS).astype(int)


def loss_and_gradients(model: Labeller, batch: np.ndarray) -> Any:
    logits, pull = vjp(model, IDS[batch])
    loss, gradient = cross_entropy(logits, SAME[batch])
    return loss, pull(gradient)[1]


def trained(epochs: int = 25, **options: Any) -> tuple[Labeller, list[float]]:
    model, batches = Labeller.create(4, 2, rng=0), Minibatches(150, size=30, rng=1)
    losses = fit(model, loss_and_gradients, batches, optimizer=Adam(0.01), epochs=epochs, **options)
    return model, losses


def test_an_encoder_learns_to_compare_words_and_keeps_it_for_texts_not_seen() -> None:
    model, losses = trained()
    assert len(losses) == 25 * 5
    assert np.mean(losses[-5:]) < 0.1 * losses[0]
    assert (model(IDS[150:]).argmax(-1) == SAME[150:]).mean() > 0.97


def test_training_again_gives_the_same_weights() -> None:
    (one, losses), (two, again) = trained(2), trained(2)
    assert losses == again
    np.testing.assert_equal(state(one), state(two))


def test_progress_is_told_of_every_step() -> None:
    told: list[Any] = []
    _, losses = trained(2, progress=lambda *step: told.append(step))
    assert told == [(i // 5, i, loss) for i, loss in enumerate(losses)]


def test_a_loss_that_is_no_number_stops_before_it_spoils_the_weights() -> None:
    layer = Linear(np.ones((1, 1)))
    with pytest.raises(FloatingPointError, match="nan in epoch 0, step 0"):
        fit(layer, lambda *_: (np.nan, {"weight": layer.weight}), [0], optimizer=Adam(), epochs=1)
    assert layer.weight == 1


def test_an_iterator_of_batches_is_refused() -> None:
    with pytest.raises(TypeError, match="an iterator serves one epoch only"):
        fit(Linear(np.ones((1, 1))), lambda *_: (0.0, {}), iter([0]), optimizer=Adam(), epochs=2)


def test_minibatches_hold_everything_once_in_a_new_order_each_time() -> None:
    batches = Minibatches(10, size=4, rng=0)
    first, second = (np.concatenate(list(batches)) for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(10))
    assert first.tolist() != second.tolist()


def test_batches_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="1 or more, got 0"):
        Minibatches(10, size=0, rng=0)


# --- Adam ---


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_the_first_step_has_the_learning_rates_length(size: float) -> None:
    weights = {"w": np.zeros(2)}
    Adam(learning_rate=0.1, epsilon=0).step(weights, {"w": size * np.array([1.0, -2.0])})
    np.testing.assert_allclose(weights["w"], [-0.1, 0.1])


def test_a_single_number_takes_a_step_too() -> None:
    weights = {"w": np.zeros(())}
    Adam(learning_rate=0.1, epsilon=0).step(weights, {"w": np.array(5.0)})
    assert weights["w"] == pytest.approx(-0.1)


def test_a_weight_without_a_gradient_stays() -> None:
    weights = {"w": np.ones(2), "frozen": np.ones(2)}
    Adam().step(weights, {"w": np.ones(2)})
    assert (weights["w"] < 1).all()
    assert weights["frozen"].tolist() == [1, 1]


@pytest.mark.parametrize("gradients", [{"v": np.ones(2)}, {"w": np.ones(2), "x": np.ones(3)}])
def test_a_gradient_that_fits_no_weight_is_refused_before_any_change(gradients: Any) -> None:
    weights = {"w": np.zeros(2), "x": np.zeros(2)}
    with pytest.raises(ValueError, match="fits no weight"):
        Adam().step(weights, gradients)
    assert not weights["w"].any()


def test_steps_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(3, 2))}
    tensor = torch.tensor(weights["w"].copy(), requires_grad=True)
    how: dict[str, Any] = {"eps": 1e-3, "betas": (0.8, 0.95)}
    theirs = torch.optim.Adam([tensor], lr=0.05, **how)
    ours = Adam(0.05, beta_1=0.8, beta_2=0.95, epsilon=1e-3)
    for _ in range(20):
        gradient = rng.normal(size=(3, 2))
        ours.step(weights, {"w": gradient})
        tensor.grad = torch.tensor(gradient)
        theirs.step()
        np.testing.assert_allclose(weights["w"], tensor.detach().numpy(), rtol=1e-10)
