"""Encoder and decoder: attention and feed forward, each with a residual and a norm, in a stack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.layers.basic import FeedForward, LayerNorm
from qkvsearch.attention.layers.initializers import Array, Rng
from qkvsearch.attention.layers.multi_head import MultiHeadAttention
from qkvsearch.attention.scores import AdditiveScore

Layer = TypeVar("Layer", bound=Callable[..., Any])
# Options of a layer that its attention knows nothing of.
NOT_OF_ATTENTION = {"activation", "norm_first", "epsilon"}


class LayerOutput(NamedTuple):
    """What one layer gave: hidden states (..., L, d), attention weights (..., n_heads, L, S)."""

    hidden: Array
    weights: Array
    memory_weights: Array | None = None


def residual(
    x: Array, sublayer: Callable[[Array], Any], norm: LayerNorm, norm_first: bool
) -> tuple[Array, Any]:
    """x and what a sublayer adds to it, normed after the sum or, `norm_first`, before the sublayer.

    x (..., d) -> (..., d), and the sublayer's attention weights if it gave any, else None.
    After: Vaswani et al. 2017, section 3.1; before: Xiong et al. 2020, section 3.2.

    >>> residual(np.array([1.0, 3.0]), np.negative, LayerNorm.create(2), norm_first=True)[0].round()
    array([2., 2.])
    """
    added = sublayer(norm(x) if norm_first else x)
    added, weights = added if isinstance(added, tuple) else (added, None)
    return (x + added if norm_first else norm(x + added)), weights


@dataclass(eq=False)
class EncoderLayer:
    """Self-attention, then feed forward: every token in the light of the others.

    Normed after each residual sum, or before each sublayer with `norm_first`.
    Vaswani et al. 2017, section 3.1; `norm_first`: Xiong et al. 2020, section 3.2.

    >>> EncoderLayer.create(8, n_heads=2, d_feedforward=16, rng=0)(np.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    attention: MultiHeadAttention
    attention_norm: LayerNorm
    feed_forward: FeedForward
    feed_forward_norm: LayerNorm
    norm_first: bool = False

    @classmethod
    def create(
        cls,
        d_model: int,
        n_heads: int,
        d_feedforward: int,
        rng: Rng,
        *,
        activation: str = "relu",
        norm_first: bool = False,
        epsilon: float = 1e-5,
        dtype: npt.DTypeLike = np.float32,
        n_key_heads: int | None = None,
        score: str | AdditiveScore = "dot",
        **linear: Any,
    ) -> EncoderLayer:
        """Random weights; `linear` (initializer, bias) goes to `Linear.create`.

        n_key_heads, score: as for `MultiHeadAttention.create`.
        """
        rng, linear = np.random.default_rng(rng), {"dtype": dtype, **linear}
        heads: dict[str, Any] = {"n_key_heads": n_key_heads, "score": score}
        return cls(
            MultiHeadAttention.create(d_model, n_heads, rng, **heads, **linear),
            LayerNorm.create(d_model, epsilon=epsilon, dtype=dtype),
            FeedForward.create(d_model, d_feedforward, rng, activation=activation, **linear),
            LayerNorm.create(d_model, epsilon=epsilon, dtype=dtype),
            norm_first,
        )

    def __call__(self, x: Array, *, return_weights: bool = False, **options: Any) -> Any:
        """x (..., L, d) -> (..., L, d), or (output, weights (..., n_heads, L, L)) on request.

        `options` (mask, is_causal, window, ...) go to the attention.
        """
        attend = partial(self.attention, return_weights=return_weights, **options)
        x, weights = residual(x, attend, self.attention_norm, self.norm_first)
        x, _ = residual(x, self.feed_forward, self.feed_forward_norm, self.norm_first)
        return (x, weights) if return_weights else x


@dataclass(eq=False)
class DecoderLayer:
    """Self-attention without looking ahead, attention to a memory, then feed forward.

    Normed after each residual sum, or before each sublayer with `norm_first`.
    Vaswani et al. 2017, section 3.1; `norm_first`: Xiong et al. 2020, section 3.2.

    >>> layer = DecoderLayer.create(8, n_heads=2, d_feedforward=16, rng=0)
    >>> layer(np.ones((3, 5, 8)), np.ones((3, 7, 8))).shape
    (3, 5, 8)
    """

    attention: MultiHeadAttention
    attention_norm: LayerNorm
    memory_attention: MultiHeadAttention
    memory_norm: LayerNorm
    feed_forward: FeedForward
    feed_forward_norm: LayerNorm
    norm_first: bool = False

    @classmethod
    def create(
        cls, d_model: int, n_heads: int, d_feedforward: int, rng: Rng, **layer: Any
    ) -> DecoderLayer:
        """Random weights; `layer` (activation, norm_first, epsilon and, for both attentions,
        n_key_heads, score, dtype, initializer, bias) as for `EncoderLayer.create`.

        >>> layer = DecoderLayer.create(8, n_heads=4, d_feedforward=16, rng=0, n_key_heads=2)
        >>> layer.memory_attention.n_key_heads
        2
        """
        rng = np.random.default_rng(rng)
        own = EncoderLayer.create(d_model, n_heads, d_feedforward, rng, **layer)
        attention = {name: layer[name] for name in layer.keys() - NOT_OF_ATTENTION}
        recall = MultiHeadAttention.create(d_model, n_heads, rng, **attention)
        to_memory = (recall, _norm_like(own.attention_norm))
        forward = (own.feed_forward, own.feed_forward_norm)
        return cls(own.attention, own.attention_norm, *to_memory, *forward, own.norm_first)

    def __call__(
        self,
        x: Array,
        memory: Array,
        *,
        mask: npt.ArrayLike | None = None,
        memory_mask: npt.ArrayLike | None = None,
        is_causal: bool = True,
        return_weights: bool = False,
        **options: Any,
    ) -> Any:
        """x (..., L, d), memory (..., S, d) -> (..., L, d), or on request a `LayerOutput`.

        mask hides tokens of x, broadcast to (..., L, L), in addition to what comes later, which
        only is_causal=False shows; memory_mask hides tokens of the memory, broadcast to
        (..., L, S). `options` (window, ...) go to the self-attention.
        """
        options |= {"mask": mask, "is_causal": is_causal, "return_weights": return_weights}
        recalled: dict[str, Any] = {"mask": memory_mask, "return_weights": return_weights}
        attend = partial(self.attention, **options)
        recall = partial(self.memory_attention, memory=memory, **recalled)
        x, weights = residual(x, attend, self.attention_norm, self.norm_first)
        x, memory_weights = residual(x, recall, self.memory_norm, self.norm_first)
        x, _ = residual(x, self.feed_forward, self.feed_forward_norm, self.norm_first)
        return LayerOutput(x, weights, memory_weights) if return_weights else x


@dataclass(eq=False)
class Stack(Generic[Layer]):
    """Layers one after the other, then a norm if there is one."""

    layers: list[Layer]
    norm: LayerNorm | None = None
    layer_type: ClassVar[Any]

    @classmethod
    def create(
        cls, n_layers: int, d_model: int, n_heads: int, d_feedforward: int, rng: Rng, **layer: Any
    ) -> Self:
        """Random weights; `layer` as for the layers' own `create`. `norm_first` ends in a norm."""
        rng = np.random.default_rng(rng)
        sizes = (d_model, n_heads, d_feedforward)
        layers = [cls.layer_type.create(*sizes, rng, **layer) for _ in range(n_layers)]
        # With `norm_first` nothing has normed the last sum.
        is_open = n_layers > 0 and layers[-1].norm_first
        return cls(layers, _norm_like(layers[-1].feed_forward_norm) if is_open else None)

    def __call__(
        self, x: Array, *memory: Array, return_layers: bool = False, **options: Any
    ) -> Any:
        """x (..., L, d), and for a decoder memory (..., S, d) -> (..., L, d), or on request
        (output, a `LayerOutput` per layer). `options` (mask, is_causal, ...) as for the layers.
        """
        outputs = []
        for layer in self.layers:
            if return_layers:
                outputs.append(LayerOutput(*layer(x, *memory, return_weights=True, **options)))
                x = outputs[-1].hidden
            else:
                x = layer(x, *memory, **options)
        x = x if self.norm is None else self.norm(x)
        return (x, outputs) if return_layers else x


class Encoder(Stack[EncoderLayer]):
    """Encoder layers one after the other, then a norm if there is one.

    Vaswani et al. 2017, section 3.1.

    >>> encoder = Encoder.create(2, d_model=8, n_heads=2, d_feedforward=16, rng=0)
    >>> output, layers = encoder(np.ones((5, 8)), return_layers=True)
    >>> [layer.weights.shape for layer in layers]
    [(2, 5, 5), (2, 5, 5)]
    """

    layer_type = EncoderLayer


class Decoder(Stack[DecoderLayer]):
    """Decoder layers one after the other, all with the same memory, then a norm if there is one.

    Vaswani et al. 2017, section 3.1.

    >>> decoder = Decoder.create(2, d_model=8, n_heads=2, d_feedforward=16, rng=0)
    >>> decoder(np.ones((5, 8)), np.ones((7, 8))).shape
    (5, 8)
    """

    layer_type = DecoderLayer


def _norm_like(norm: LayerNorm) -> LayerNorm:
    """A new norm, of the same width, epsilon and dtype."""
    return LayerNorm.create(len(norm.weight), epsilon=norm.epsilon, dtype=norm.weight.dtype)
