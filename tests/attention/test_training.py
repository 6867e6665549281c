"""Training: Adam's steps, and shuffled batches."""

from typing import Any

import numpy as np
import pytest

from qkvsearch.attention.training import Adam, minibatches


def test_minibatches_hold_everything_once_in_a_new_order_each_time() -> None:
    rng = np.random.default_rng(0)
    first, second = (np.concatenate(minibatches(10, 4, rng)) for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(10))
    assert first.tolist() != second.tolist()


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


def test_weights_that_cannot_change_are_refused_before_any_change() -> None:
    weights = {"a": np.ones(1), "b": np.ones(1, int)}
    with pytest.raises(TypeError, match="b must be floats"):
        Adam().step(weights, {"a": np.ones(1), "b": np.ones(1)})
    weights["b"] = np.ones(1)
    weights["b"].flags.writeable = False
    with pytest.raises(ValueError, match=r"b is read-only: train a copy .* copy\.deepcopy"):
        Adam().step(weights, {"a": np.ones(1), "b": np.ones(1)})
    assert weights["a"] == 1
