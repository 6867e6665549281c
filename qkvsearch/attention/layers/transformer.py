"""Transformer layers: multi-head attention, encoder and decoder layers, and stacks of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.functional import attention
from qkvsearch.attention.layers.basic import Array, FeedForward, LayerNorm, Linear, Rng


@dataclass(eq=False)
class MultiHeadAttention:
    """Attention in several heads at once, each with its own projections of query, key and value.

    query, key, value, output: Linear; a key with fewer outputs than the query has fewer heads,
    each shared by n_heads / n_key_heads query heads.
    Vaswani et al. 2017, section 3.2.2; shared key heads: Ainslie et al. 2023, section 2.2.

    >>> layer = MultiHeadAttention.create(8, n_heads=2, rng=0)
    >>> output, weights = layer(np.ones((3, 5, 8)), is_causal=True, return_weights=True)
    >>> output.shape, weights.shape
    ((3, 5, 8), (3, 2, 5, 5))
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    n_heads: int

    def __post_init__(self) -> None:
        d_query, *widths = (len(x.weight) for x in (self.query, self.key, self.value))
        if self.n_heads < 1 or d_query % self.n_heads or not self._heads_fit(*widths):
            raise ValueError(
                f"a query, key and value of widths {(d_query, *widths)} do not divide into "
                f"{self.n_heads} heads"
            )

    def _heads_fit(self, d_key: int, d_value: int) -> bool:
        """Return whether key heads are as wide as query heads and serve equally many of them."""
        n = self.n_key_heads
        d_head = len(self.query.weight) // self.n_heads
        return n > 0 and d_key == n * d_head and self.n_heads % n == 0 and d_value % n == 0

    @property
    def n_key_heads(self) -> int:
        """The number of heads of key and value.

        >>> MultiHeadAttention.create(8, n_heads=4, rng=0, n_key_heads=2).n_key_heads
        2
        """
        return len(self.key.weight) * self.n_heads // len(self.query.weight)

    @classmethod
    def create(
        cls,
        d_model: int,
        n_heads: int,
        rng: Rng,
        *,
        n_key_heads: int | None = None,
        **linear: Any,
    ) -> MultiHeadAttention:
        """Create random projections; `linear` (initializer, bias, dtype) is for `Linear.create`."""
        rng = np.random.default_rng(rng)
        d_key = d_model if n_key_heads is None else d_model * n_key_heads // max(n_heads, 1)
        return cls(
            query=Linear.create(d_model, d_model, rng, **linear),
            key=Linear.create(d_model, d_key, rng, **linear),
            value=Linear.create(d_model, d_key, rng, **linear),
            output=Linear.create(d_model, d_model, rng, **linear),
            n_heads=n_heads,
        )

    def __call__(
        self, x: Array, memory: Array | None = None, *, return_weights: bool = False, **options: Any
    ) -> Any:
        """Attend from x (..., L, d) to itself or to a memory (..., S, d) -> (..., L, d).

        With `return_weights`, (output, weights (..., n_heads, L, S)). The options and errors are
        those of `attention` (mask, bias, is_causal, window, ...). mask and bias broadcast to
        (..., L, S) for all heads; one with an axis more than x does to (..., n_heads, L, S).

        So a mask of two axes is one matrix (L, S) for all texts. A row for each text, such as a
        `padding_mask` (n, S), must be passed as mask[:, None, :]; otherwise it would be taken for
        that matrix.

        >>> layer, x = MultiHeadAttention.create(8, n_heads=2, rng=0), np.ones((2, 3, 8))
        >>> kept = np.array([[True, True, False], [True, True, True]])
        >>> layer(x, mask=kept[:, None, :], return_weights=True)[1][:, 0, 0].round(2)
        array([[0.5 , 0.5 , 0.  ],
               [0.33, 0.33, 0.33]])
        """
        heads = self.heads(x, x if memory is None else memory)
        mixed = attention(
            *heads, return_weights=return_weights, **self.attention_options(heads, **options)
        )
        if not return_weights:
            return self.output(join_heads(mixed))
        return self.output(join_heads(mixed[0])), mixed[1]

    def heads(self, x: Array, memory: Array) -> tuple[Array, Array, Array]:
        """Return query heads of x (..., n_heads, L, d_head), key and value heads of the memory.

        >>> layer = MultiHeadAttention.create(8, n_heads=4, rng=0, n_key_heads=2)
        >>> [head.shape for head in layer.heads(np.ones((5, 8)), np.ones((7, 8)))]
        [(4, 5, 2), (2, 7, 2), (2, 7, 2)]
        """
        return (
            split_heads(self.query(x), self.n_heads),
            split_heads(self.key(memory), self.n_key_heads),
            split_heads(self.value(memory), self.n_key_heads),
        )

    def attention_options(self, heads: tuple[Array, ...], **options: Any) -> dict[str, Any]:
        """Return the options of `attention`: mask and bias with an axis for heads."""
        n_axes = max(head.ndim for head in heads)
        masks = {name: over_heads(options.get(name), n_axes) for name in ("mask", "bias")}
        return options | masks


def split_heads(x: Array, n_heads: int) -> Array:
    """Split vectors into heads, without a copy: (..., L, h · d_head) -> (..., h, L, d_head).

    >>> split_heads(np.ones((7, 5, 8)), n_heads=2).shape
    (7, 2, 5, 4)
    """
    return x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads).swapaxes(-3, -2)


def join_heads(x: Array) -> Array:
    """Join heads to vectors: (..., n_heads, L, d_head) -> (..., L, n_heads · d_head).

    >>> join_heads(np.ones((7, 2, 5, 4))).shape
    (7, 5, 8)
    """
    x = x.swapaxes(-3, -2)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def over_heads(mask: npt.ArrayLike | None, n_axes: int) -> Array | None:
    """Give a mask or bias an axis for heads: (n, L, S) becomes (n, 1, L, S), if n_axes is 4.

    One of n_axes axes has its heads already; a row or a matrix serves all heads as it is.

    >>> over_heads(np.ones((7, 1, 5), dtype=bool), n_axes=4).shape
    (7, 1, 1, 5)
    """
    array = None if mask is None else np.asarray(mask)
    return array[..., None, :, :] if array is not None and 2 < array.ndim < n_axes else array


Layer = TypeVar("Layer", bound=Callable[..., Any])
# Options of a layer that are not options of its attention.
NOT_OF_ATTENTION = {"activation", "norm_first", "epsilon"}


class LayerOutput(NamedTuple):
    """The results of one layer: hidden states (..., L, d), weights (..., n_heads, L, S)."""

    hidden: Array
    weights: Array
    memory_weights: Array | None = None


def residual(
    x: Array, sublayer: Callable[[Array], Any], norm: LayerNorm, norm_first: bool
) -> tuple[Array, Any]:
    """Add a sublayer to x, with the norm after the sum or, `norm_first`, before the sublayer.

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
    """An encoder layer: self-attention, then feed forward.

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
        **linear: Any,
    ) -> EncoderLayer:
        """Create random weights; `linear` (initializer, bias) is for `Linear.create`.

        n_key_heads: as for `MultiHeadAttention.create`.
        """
        rng, linear = np.random.default_rng(rng), {"dtype": dtype, **linear}
        return cls(
            MultiHeadAttention.create(d_model, n_heads, rng, n_key_heads=n_key_heads, **linear),
            LayerNorm.create(d_model, epsilon=epsilon, dtype=dtype),
            FeedForward.create(d_model, d_feedforward, rng, activation=activation, **linear),
            LayerNorm.create(d_model, epsilon=epsilon, dtype=dtype),
            norm_first,
        )

    def __call__(self, x: Array, *, return_weights: bool = False, **options: Any) -> Any:
        """Encode x (..., L, d) -> (..., L, d); on request, also weights (..., n_heads, L, L).

        `options` (mask, is_causal, window, ...) go to the attention.
        """
        attend = partial(self.attention, return_weights=return_weights, **options)
        x, weights = residual(x, attend, self.attention_norm, self.norm_first)
        x, _ = residual(x, self.feed_forward, self.feed_forward_norm, self.norm_first)
        return (x, weights) if return_weights else x


@dataclass(eq=False)
class DecoderLayer:
    """A decoder layer: causal self-attention, attention to a memory, then feed forward.

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
        """Create random weights; `layer` (activation, norm_first, epsilon and, for both attentions,
        n_key_heads, dtype, initializer, bias) as for `EncoderLayer.create`.

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
        """Decode x (..., L, d) with memory (..., S, d) -> (..., L, d), or a `LayerOutput`.

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
    """A stack of layers, with an optional norm at the end."""

    layers: list[Layer]
    norm: LayerNorm | None = None
    layer_type: ClassVar[Any]

    @classmethod
    def create(
        cls, n_layers: int, d_model: int, n_heads: int, d_feedforward: int, rng: Rng, **layer: Any
    ) -> Self:
        """Create random weights; `layer` as for a layer's `create`. `norm_first` ends in a norm."""
        rng = np.random.default_rng(rng)
        sizes = (d_model, n_heads, d_feedforward)
        layers = [cls.layer_type.create(*sizes, rng, **layer) for _ in range(n_layers)]
        # With `norm_first` nothing has normed the last sum.
        is_open = n_layers > 0 and layers[-1].norm_first
        return cls(layers, _norm_like(layers[-1].feed_forward_norm) if is_open else None)

    def __call__(
        self, x: Array, *memory: Array, return_layers: bool = False, **options: Any
    ) -> Any:
        """Apply all layers to x (..., L, d), in a decoder with a memory (..., S, d) -> (..., L, d).

        On request, return (output, a `LayerOutput` for each layer). `options` (mask, is_causal,
        ...) as for the layers.
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
    """A stack of encoder layers, with an optional norm at the end.

    Vaswani et al. 2017, section 3.1.

    >>> encoder = Encoder.create(2, d_model=8, n_heads=2, d_feedforward=16, rng=0)
    >>> output, layers = encoder(np.ones((5, 8)), return_layers=True)
    >>> [layer.weights.shape for layer in layers]
    [(2, 5, 5), (2, 5, 5)]
    """

    layer_type = EncoderLayer


class Decoder(Stack[DecoderLayer]):
    """A stack of decoder layers with the same memory, and an optional norm at the end.

    Vaswani et al. 2017, section 3.1.

    >>> decoder = Decoder.create(2, d_model=8, n_heads=2, d_feedforward=16, rng=0)
    >>> decoder(np.ones((5, 8)), np.ones((7, 8))).shape
    (5, 8)
    """

    layer_type = DecoderLayer


def _norm_like(norm: LayerNorm) -> LayerNorm:
    """Create a norm of the same width, epsilon and dtype."""
    return LayerNorm.create(len(norm.weight), epsilon=norm.epsilon, dtype=norm.weight.dtype)
