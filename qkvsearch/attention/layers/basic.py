"""Layers: linear, layer norm, feed forward, embedding, positions; activations and initializers.

A layer is its weights and a `__call__`, for inputs (..., L, d) of any leading axes. The result has
the dtype of weights and input: all float32 stays float32. `create` makes one with random weights,
`state` and `load` (in `state_dict.py`) take weights out and in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.array_api import answer_dtype, cast, working_dtype
from qkvsearch.attention.masks import whole_numbers
from qkvsearch.attention.weights import named
from qkvsearch.imports import leaving_no_trace

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Rng = np.random.Generator | int
Initializer = Callable[[Shape, Rng], Array]


# --- initializers: weights to start from, at a size that keeps signals alive in many layers.
# They take the shape (d_out, d_in) of a `Linear`'s weight: fan_in is d_in, fan_out is d_out. ---


def gaussian(shape: Shape, rng: Rng, deviation: float = 0.02) -> Array:
    """Draw normal weights with a deviation that does not depend on the shape.

    Any shape. 0.02 as in Radford et al. 2018 (GPT), section 4.1.

    >>> gaussian((2, 3), rng=0).round(3)
    array([[ 0.003, -0.003,  0.013],
           [ 0.002, -0.011,  0.007]])
    """
    return np.random.default_rng(rng).normal(0, deviation, shape)


def xavier_normal(shape: Shape, rng: Rng) -> Array:
    """Draw normal weights of variance 2 / (fan_in + fan_out), for tanh or no activation.

    (d_out, d_in). Raises ValueError for another number of axes.
    Glorot & Bengio 2010, section 4.2.1, equation 12.

    >>> round(float(xavier_normal((300, 400), rng=0).var()), 4), round(2 / 700, 4)
    (0.0029, 0.0029)
    """
    fan_in, fan_out = fans(shape)
    return gaussian(shape, rng, np.sqrt(2 / (fan_in + fan_out)))


def xavier_uniform(shape: Shape, rng: Rng) -> Array:
    """Draw uniform weights of variance 2 / (fan_in + fan_out), up to ±√(6 / (fan_in + fan_out)).

    (d_out, d_in). Raises ValueError for another number of axes.
    Glorot & Bengio 2010, section 4.2.1, equation 16.

    >>> round(float(xavier_uniform((300, 300), rng=0).max()), 3)
    0.1
    """
    fan_in, fan_out = fans(shape)
    bound = np.sqrt(6 / (fan_in + fan_out))
    return np.random.default_rng(rng).uniform(-bound, bound, shape)


def kaiming_normal(shape: Shape, rng: Rng) -> Array:
    """Draw normal weights of variance 2 / fan_in, for layers before a ReLU, which halves it.

    (d_out, d_in). Raises ValueError for another number of axes.
    He et al. 2015, section 2.2, equation 10.

    >>> round(float(kaiming_normal((300, 400), rng=0).var()), 4), 2 / 400
    (0.005, 0.005)
    """
    fan_in, _ = fans(shape)
    return gaussian(shape, rng, np.sqrt(2 / fan_in))


def fans(shape: Shape) -> tuple[int, int]:
    """Return the number of inputs of an output, and the number of outputs of an input.

    (d_out, d_in) -> (fan_in, fan_out). Raises ValueError for another number of axes, or none.

    >>> fans((3, 4))
    (4, 3)
    """
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"fans are those of a weight (d_out, d_in), got shape {shape}")
    d_out, d_in = shape
    return d_in, d_out


# --- activations ---


def relu(x: Array) -> Array:
    """Compute max(0, x). Any shape -> the same shape.   Nair & Hinton 2010, section 2.

    >>> relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return np.maximum(x, 0)


def gelu(x: Array) -> Array:
    """Compute x · Φ(x), with Φ(x) = ½ (1 + erf(x / √2)). Any shape -> the same shape and dtype.

    Hendrycks & Gimpel 2016, section 2.

    >>> gelu(np.array([-1.0, 0.0, 1.0])).round(4)
    array([-0.1587,  0.    ,  0.8413])
    """
    # It takes a third of a second to import, and a search may not need it.
    with leaving_no_trace("scipy.special"):
        from scipy.special import ndtr

    dtype = answer_dtype(np, x)
    x = cast(x, working_dtype(np, dtype))
    return cast(x * ndtr(x), dtype)


def gelu_tanh(x: Array) -> Array:
    """Compute GELU with Φ approximated by a tanh. Any shape -> the same shape and dtype.

    ½ x (1 + tanh(√(2/π) (x + 0.044715 x³))).   Hendrycks & Gimpel 2016, section 2.

    >>> gelu_tanh(np.array([-1.0, 0.0, 1.0])).round(4)
    array([-0.1588,  0.    ,  0.8412])
    """
    dtype = answer_dtype(np, x)
    x = cast(x, working_dtype(np, dtype))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return cast(0.5 * x * (1 + np.tanh(inner)), dtype)


ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
}


# --- GELU for answers, where importing SciPy or a compiler takes longer than encoding a text ---

SQRT_HALF = np.float32(math.sqrt(0.5))
# erf(x) ≈ x · P(x²) / Q(x²) for |x| ≤ 4, to 3e-7: the coefficients of Eigen's `perf`, lowest first.
ERF_LIMIT = np.float32(4)
ERF_NUMERATOR = np.array(
    [
        -1.60960333262415e-02,
        -2.95459980854025e-03,
        -7.34990630326855e-04,
        -5.69250639462346e-05,
        -2.10102402082508e-06,
        2.77068142495902e-08,
        -2.72614225801306e-10,
    ],
    np.float32,
)
ERF_DENOMINATOR = np.array(
    [
        -1.42647390514189e-02,
        -7.37332916720468e-03,
        -1.68282697438203e-03,
        -2.13374055278905e-04,
        -1.45660718464996e-05,
    ],
    np.float32,
)


def gelu_in_place(x: Array) -> None:
    """Compute ½x (1 + erf(x / √2)) in place, float32 of any shape, to 3e-7 · max(1, |x|).

    >>> x = np.array([-1.0, 0.0, 1.0], np.float32)
    >>> gelu_in_place(x)
    >>> x.round(4)
    array([-0.1587,  0.    ,  0.8413], dtype=float32)
    """
    t = np.clip(x * SQRT_HALF, -ERF_LIMIT, ERF_LIMIT)
    s = t * t
    t *= _polynomial(ERF_NUMERATOR, s)
    t /= _polynomial(ERF_DENOMINATOR, s)
    t += np.float32(1)
    t *= np.float32(0.5)
    x *= t


def _polynomial(coefficients: Array, s: Array) -> Array:
    """Evaluate a polynomial by Horner's rule, lowest coefficient first."""
    value = s * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= s
    value += coefficients[0]
    return value


# --- layers ---


@dataclass(eq=False)
class Linear:
    """A linear layer, x·Wᵀ + b: each output is a weighted sum of the inputs.

    weight (d_out, d_in), bias (d_out,) or None; x (..., d_in) -> (..., d_out). Raises ValueError
    where the width of x is not d_in, or that of the bias not d_out.

    >>> Linear(weight=np.array([[1.0, 2.0]]), bias=np.array([10.0]))(np.array([3.0, 4.0]))
    array([21.])
    """

    weight: Array
    bias: Array | None = None

    def __post_init__(self) -> None:
        _check_bias(self.weight, self.bias, "(d_out, d_in)")

    @classmethod
    def create(
        cls,
        d_in: int,
        d_out: int,
        rng: Rng,
        *,
        initializer: Initializer = xavier_uniform,
        bias: bool = True,
        dtype: npt.DTypeLike = np.float32,
    ) -> Linear:
        """Create a random weight, and a bias of zeros.

        >>> Linear.create(2, 3, rng=0).weight.shape
        (3, 2)
        """
        weight = initializer((d_out, d_in), rng).astype(dtype, copy=False)
        return cls(weight, np.zeros(d_out, dtype) if bias else None)

    def __call__(self, x: Array) -> Array:
        d_out, d_in = self.weight.shape
        if x.shape[-1] != d_in:
            raise ValueError(f"a weight (d_out, d_in) = {(d_out, d_in)} does not fit x {x.shape}")
        # One product of matrices; NumPy would take the leading axes one by one, ten times slower.
        y = (as_rows(x) @ self.weight.T).reshape(*x.shape[:-1], d_out)
        if self.bias is None:
            return y
        # In place, unless whole numbers would cut the bias's fractions off.
        return np.add(y, self.bias, out=None if y.dtype.kind in "iub" else y)


def _check_bias(weight: Array, bias: Array | None, axes: str) -> None:
    """Raise ValueError unless a bias has one number for each output of a weight."""
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"a bias {bias.shape} does not fit a weight {axes} = {weight.shape}")


def as_rows(x: Array) -> Array:
    """Reshape vectors with any leading axes to one matrix: (..., d) -> (n, d).

    >>> as_rows(np.ones((0, 5, 8))).shape
    (0, 8)
    """
    # Not −1: the number of rows of an array without entries would be unknown.
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@dataclass(eq=False)
class LayerNorm:
    """Layer norm: each vector at mean 0 and variance 1, then scaled and shifted.

    weight (d,), bias (d,); x (..., d) -> (..., d). Raises ValueError where the width of x or of the
    bias is not d.   Ba et al. 2016, section 3.

    >>> LayerNorm.create(2)(np.array([10.0, 30.0])).round(3)
    array([-1.,  1.])
    """

    weight: Array
    bias: Array
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        _check_bias(self.weight, self.bias, "(d,)")

    @classmethod
    def create(
        cls, d: int, *, epsilon: float = 1e-5, dtype: npt.DTypeLike = np.float32
    ) -> LayerNorm:
        """Create a weight of ones and a bias of zeros."""
        return cls(np.ones(d, dtype), np.zeros(d, dtype), epsilon)

    def __call__(self, x: Array) -> Array:
        dtype = answer_dtype(np, x, self.weight)
        return cast(self.stretch(standardize(x, self.epsilon)[0]), dtype)

    def stretch(self, standardized: Array) -> Array:
        """Scale and shift standardized vectors (..., d) by the weight and the bias.

        >>> LayerNorm(weight=np.array([2.0, 2.0]), bias=np.ones(2)).stretch(np.array([-1.0, 1.0]))
        array([-1.,  3.])
        """
        if standardized.shape[-1:] != self.weight.shape:
            raise ValueError(
                f"a weight (d,) = {self.weight.shape} does not fit x {standardized.shape}"
            )
        y = standardized * self.weight
        y += self.bias
        return y


def standardize(x: Array, epsilon: float) -> tuple[Array, Array]:
    """Bring each vector to mean 0 and variance 1, and return the deviation that it had, too.

    x (..., d) -> (..., d), (..., 1), in float32 or better, since a variance in float16 would
    overflow. `epsilon` is added to the variance: a constant vector gives 0.
    Ba et al. 2016, section 3.

    >>> standardize(np.array([10.0, 30.0]), epsilon=0.0)
    (array([-1.,  1.]), array([10.]))
    """
    x = cast(x, working_dtype(np, answer_dtype(np, x)))
    with np.errstate(over="ignore"):
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + epsilon)
    # The squares of 1e20 are too large for float32.
    if x.dtype == np.float32 and not np.isfinite(deviation).all():
        exact, deviation = standardize(x.astype(np.float64), epsilon)
        return exact.astype(np.float32), deviation.astype(np.float32)
    too_large = ~np.isfinite(deviation)
    if too_large.any():
        return _standardize_large(x, epsilon, too_large)
    centred /= deviation
    return centred, deviation


def _standardize_large(x: Array, epsilon: float, too_large: Array) -> tuple[Array, Array]:
    """Standardize float64 vectors (..., d) of which some, bool (..., 1), have too large squares.

    These are divided by their largest number first. Beside them, `epsilon` is nothing.
    """
    with np.errstate(invalid="ignore"):  # infinite numbers stay without a result
        scale = np.where(too_large, np.abs(x).max(axis=-1, keepdims=True), 1.0)
        scaled = x / scale
        scaled -= scaled.mean(axis=-1, keepdims=True)
        variance = np.square(scaled).mean(axis=-1, keepdims=True)
        deviation = np.sqrt(variance + np.where(too_large, 0.0, epsilon))
        # A constant vector gives 0.
        scaled /= np.where(deviation == 0, 1.0, deviation)
    with np.errstate(over="ignore"):
        return scaled, deviation * scale


@dataclass(eq=False)
class FeedForward:
    """Two linear layers with an activation between them, for each token by itself.

    hidden (d, d_feedforward), activation "relu", "gelu" or "gelu_tanh", output (d_feedforward, d);
    x (..., d) -> (..., d). Raises ValueError for another activation.
    Vaswani et al. 2017, section 3.3.

    >>> FeedForward.create(4, 16, rng=0)(np.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    hidden: Linear
    output: Linear
    activation: str = "relu"

    def __post_init__(self) -> None:
        named("activation", self.activation, ACTIVATIONS)

    @classmethod
    def create(
        cls, d_model: int, d_feedforward: int, rng: Rng, *, activation: str = "relu", **linear: Any
    ) -> FeedForward:
        """Create two random layers; `linear` (initializer, bias, dtype) is for `Linear.create`."""
        rng = np.random.default_rng(rng)
        hidden = Linear.create(d_model, d_feedforward, rng, **linear)
        return cls(hidden, Linear.create(d_feedforward, d_model, rng, **linear), activation)

    def __call__(self, x: Array) -> Array:
        return self.output(ACTIVATIONS[self.activation](self.hidden(x)))


@dataclass(eq=False)
class RowTable:
    """A table of vectors, one in each row: weight (n, d)."""

    weight: Array

    @classmethod
    def create(
        cls,
        n: int,
        d: int,
        rng: Rng,
        *,
        initializer: Initializer = gaussian,
        dtype: npt.DTypeLike = np.float32,
    ) -> Self:
        """Create a random table.

        >>> Embedding.create(10, 4, rng=0)([[1, 2, 3]]).shape
        (1, 3, 4)
        """
        return cls(initializer((n, d), rng).astype(dtype, copy=False))


class Embedding(RowTable):
    """A table of vectors, looked up by number.

    weight (n, d); ids (...), whole numbers or none at all -> (..., d). Raises TypeError where ids
    are not whole numbers, ValueError where one lies outside 0 … n − 1.

    >>> Embedding(np.array([[0.0, 0.0], [1.0, 2.0]]))([1, 0])
    array([[1., 2.],
           [0., 0.]])
    """

    def __call__(self, ids: npt.ArrayLike) -> Array:
        return self.weight[self.rows(ids)]

    def rows(self, ids: npt.ArrayLike) -> npt.NDArray[np.integer]:
        """Return the ids as an array, after checking them."""
        rows, n = whole_numbers("ids", ids), len(self.weight)
        if rows.size and not 0 <= rows.min() <= rows.max() < n:
            raise ValueError(f"ids must lie in 0 … {n - 1}, got {rows.min()} to {rows.max()}")
        return rows


# --- positions: vectors that are added to those of the tokens ---


def sinusoidal_positions(n: int, d: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """Compute sines (even columns) and cosines (odd ones) of the positions, in ever slower pairs.

    -> (n, d): sin(i / 10000^(2j/d)) in column 2j, the cosine in column 2j + 1; an odd d ends in a
    sine. Vaswani et al. 2017, section 3.5.

    >>> sinusoidal_positions(2, 4).round(2)
    array([[0.  , 1.  , 0.  , 1.  ],
           [0.84, 0.54, 0.01, 1.  ]], dtype=float32)
    """
    angles = np.arange(n)[:, None] / 10000.0 ** (np.arange(0, d, 2) / max(d, 1))
    positions = np.empty((n, d), dtype)
    positions[:, 0::2] = np.sin(angles)
    positions[:, 1::2] = np.cos(angles[:, : d // 2])
    return positions


class LearnedPositions(RowTable):
    """A learned vector for each position, added to the token there.

    weight (n, d); x (..., L, d) -> (..., L, d). positions: int (L,), of the tokens, by default
    0 … L − 1. Raises ValueError where L is above n, or the width of x is not d.
    Gehring et al. 2017, section 3.1; Devlin et al. 2019 (BERT), section 3.

    >>> LearnedPositions(np.array([[0.5], [0.0]]))(np.ones((2, 1)))
    array([[1.5],
           [1. ]])
    """

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        (n, d), length = self.weight.shape, x.shape[-2]
        if x.shape[-1] != d:
            raise ValueError(f"a weight (n, d) = {(n, d)} does not fit x {x.shape}")
        if positions is not None:
            return x + self.weight[positions]
        if length > n:
            raise ValueError(f"a text of {length} tokens is longer than the {n} positions learned")
        return x + self.weight[:length]
