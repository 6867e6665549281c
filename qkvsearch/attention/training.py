"""Training: losses and their gradients, the Adam optimizer, and shuffled minibatches.

Losses are computed in float32 or better; their gradient has the output's dtype, float64 for whole
numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.array_api import answer_dtype, cast, working_dtype
from qkvsearch.attention.layers.basic import Array
from qkvsearch.attention.weights import softmax


def cross_entropy(logits: Array, targets: npt.ArrayLike) -> tuple[float, Array]:
    """Compute the mean of −log softmax(logits)[target], and its gradient (softmax − one-hot) / n.

    logits (..., C), targets (...), whole numbers -> loss, (..., C). Raises TypeError where targets
    are not whole numbers, ValueError where their shape does not fit or one lies outside 0 … C − 1.
    Goodfellow et al. 2016, section 6.2.2.3.

    >>> loss, gradient = cross_entropy(np.array([[0.0, 0.0]]), [1])
    >>> round(loss, 4), gradient
    (0.6931, array([[ 0.5, -0.5]]))
    """
    labels = np.asarray(targets)
    _check_targets(logits, labels)
    dtype = answer_dtype(np, logits)
    rows = cast(logits, working_dtype(np, dtype)).reshape(-1, logits.shape[-1])
    # Sums along rows of another layout would have other last bits.
    rows, chosen = np.ascontiguousarray(rows), labels.ravel()
    n, positions = max(1, len(rows)), np.arange(len(rows))
    peak = rows.max(axis=-1, keepdims=True)
    log_total = np.log(np.exp(rows - peak).sum(axis=-1)) + peak[..., 0]
    loss = float((log_total - rows[positions, chosen]).sum() / n)

    by_rows = softmax(rows)
    by_rows[positions, chosen] -= 1
    by_rows /= n
    return loss, cast(by_rows, dtype).reshape(logits.shape)


def mean_squared_error(output: Array, targets: npt.ArrayLike) -> tuple[float, Array]:
    """Compute the mean of (output − target)², and its gradient 2 (output − target) / n.

    output, targets of one shape -> loss, that shape. Raises ValueError where shapes differ.

    >>> mean_squared_error(np.array([1.0, 2.0]), [1.0, 4.0])
    (2.0, array([ 0., -2.]))
    """
    dtype = answer_dtype(np, output)
    prediction = cast(output, working_dtype(np, dtype))
    expected = np.asarray(targets, prediction.dtype)
    if expected.shape != output.shape:
        raise ValueError(f"targets must have output's shape {output.shape}, got {expected.shape}")
    error = prediction - expected
    n = max(1, error.size)
    return float(np.square(error).sum() / n), cast(2 * error / n, dtype)


def _check_targets(logits: Array, labels: Array) -> None:
    """Refuse targets that name no class of the logits."""
    if labels.dtype.kind not in "iu":
        raise TypeError(f"targets must be whole numbers, got {labels.dtype}")
    if labels.shape != logits.shape[:-1]:
        raise ValueError(f"logits (..., C) {logits.shape} do not fit targets (...) {labels.shape}")
    n_classes = logits.shape[-1]
    outside = labels[(labels < 0) | (labels >= n_classes)]
    if outside.size:
        raise ValueError(f"targets must lie in 0 … {n_classes - 1}, got {outside[0]}")


# --- steps ---


@dataclass(eq=False)
class Adam:
    """The Adam optimizer: each weight's step is larger where its gradients agree with one another.

    learning_rate (may be changed between steps); beta_1 and beta_2, how much of the past the
    averages of gradients and of their squares keep; epsilon. Use one optimizer for one model: it
    keeps two averages and a step count for each weight.
    Kingma & Ba 2015, algorithm 1.

    >>> weights = {"weight": np.array([1.0, 1.0])}
    >>> Adam(learning_rate=0.1).step(weights, {"weight": np.array([5.0, -0.01])})
    >>> weights["weight"].round(3)
    array([0.9, 1.1])
    """

    learning_rate: float = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    _averages: dict[str, tuple[Array, Array, int]] = field(default_factory=dict, repr=False)

    def step(
        self,
        weights: Mapping[str, Array],
        gradients: Mapping[str, Array],
        rows: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Change the weights in place; those without a gradient stay.

        weights: `state(layer)`, whose arrays are the layer's own; gradients: arrays of the same
        shapes under the same names. rows: (n,), the rows that the gradients, (n, …), are of; the
        others stay with their averages, as in PyTorch's `SparseAdam`, so that a step costs as much
        as it has rows. Raises ValueError, before any change, for a gradient without a weight or of
        another shape, and for a weight that is read-only; TypeError for whole numbers.
        """
        for name, gradient in gradients.items():
            _check_step(name, weights.get(name), gradient, rows)
        for name, gradient in gradients.items():
            if name not in self._averages:
                # In half precision, the squares of small gradients and epsilon would be 0.
                weight = weights[name]
                wide = working_dtype(np, weight.dtype)
                averages = np.zeros_like(weight, wide), np.zeros_like(weight, wide)
                self._averages[name] = *averages, 0
            mean, square, n = self._averages[name]
            self._averages[name] = mean, square, n + 1
            if rows is None:
                self._move(weights[name], gradient, mean, square, n + 1)
            else:
                arrays = weights[name], mean, square
                moved = [array[rows] for array in arrays]
                self._move(moved[0], gradient, moved[1], moved[2], n + 1)
                for array, values in zip(arrays, moved, strict=True):
                    array[rows] = values

    def _move(self, weight: Array, gradient: Array, mean: Array, square: Array, n: int) -> None:
        """Update a weight's averages, then move it; in place, as allocating memory is slower."""
        change = np.asarray(cast(gradient, mean.dtype) - mean)
        change *= 1 - self.beta_1
        mean += change
        np.square(gradient, out=change, dtype=change.dtype)
        change -= square
        change *= 1 - self.beta_2
        square += change
        # The averages start at 0, which makes them too small by the factor 1 − βⁿ.
        np.divide(square, 1 - self.beta_2**n, out=change)
        np.sqrt(change, out=change)
        change += self.epsilon
        np.divide(mean, change, out=change)
        change *= self.learning_rate / (1 - self.beta_1**n)
        weight -= change


def _check_step(
    name: str, weight: Array | None, gradient: Array, rows: npt.NDArray[np.int64] | None
) -> None:
    """Refuse a gradient that fits no weight, and a weight that cannot change."""
    n = () if rows is None else (len(rows),)
    if weight is None or (*n, *weight.shape[len(n) :]) != gradient.shape:
        shape = "none of that name" if weight is None else weight.shape
        raise ValueError(f"gradient {name} {gradient.shape} fits no weight: {shape}")
    if weight.dtype.kind in "iub":
        raise TypeError(f"weight {name} must be floats to take a step, got {weight.dtype}")
    if not weight.flags.writeable:
        raise ValueError(
            f"weight {name} is read-only: train a copy of the layer, such as copy.deepcopy makes"
        )


def minibatches(n: int, size: int, rng: np.random.Generator) -> list[npt.NDArray[np.int64]]:
    """Return the numbers 0 … n − 1 in a random order, in batches; the last one may be smaller.

    >>> [len(batch) for batch in minibatches(5, size=2, rng=np.random.default_rng(0))]
    [2, 2, 1]
    """
    order = rng.permutation(n)
    return [order[start : start + size] for start in range(0, n, size)]
