"""Attention recorded step by step: every array from the inputs to the output, with labels.

`trace` and `attention` both run `functional.attend`, so they always agree.
Each step is also written in symbols, such as a_Q·b_K for a score; `symbols.py` makes them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qkvsearch._utils.caching import cached_property
from qkvsearch.attention.arguments import AttentionOptions, checked, named
from qkvsearch.attention.array_api import Array, answer_dtype, cast
from qkvsearch.attention.functional import attend
from qkvsearch.attention.symbols import (
    distinct,
    filled,
    formulas,
    matrix_symbols,
    numbered,
    renamed,
    scaled_symbols,
    score_symbols,
    symbols,
    weight_symbols,
)
from qkvsearch.attention.weights import mix

Labels = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TraceStep:
    """One array of the computation, with a label for each row and column.

    name, formula, array (rows, columns), or (rows, columns, dv) for the weighted values.
    """

    name: str
    formula: str
    array: Array
    rows: Labels
    columns: Labels
    write: Callable[[], Array] = field(repr=False)

    @cached_property
    def symbols(self) -> Array:
        """The step written in the symbols of the step before: `Expression`s, in an array.

        (rows, columns); for the outputs (rows,), as each is a sum of vectors. Made when asked for:
        n tokens write n³ terms.
        """
        return filled(np.shape(written := self.write()), list(written.flat))

    def evaluated(self) -> Array:
        """Compute the array from the symbols. It is equal up to rounding, unless exp of a score
        overflows (`attention` prevents that, the textbook formula does not).
        """
        width = self.array.shape[self.symbols.ndim :]
        values = [np.broadcast_to(entry.value, width) for entry in self.symbols.flat]
        return np.array(values, self.array.dtype).reshape(self.array.shape)


@dataclass(frozen=True, eq=False)
class Trace:
    """Steps in order; `trace["scores"]` is one of them. Raises ValueError for an unknown name."""

    steps: tuple[TraceStep, ...]

    def __getitem__(self, name: str) -> TraceStep:
        return named("a step", name, {step.name: step for step in self.steps})

    def __iter__(self) -> Iterator[TraceStep]:
        return iter(self.steps)


def trace(
    query: npt.ArrayLike,
    key: npt.ArrayLike,
    value: npt.ArrayLike,
    *,
    query_labels: Iterable[str] | None = None,
    key_labels: Iterable[str] | None = None,
    **options: Any,
) -> Trace:
    """Record `attention`: queries, keys, values, scores, scaled, masked, weights, weighted and
    outputs; with a softcap, capped comes before masked.

    query (L, d), key (S, d), value (S, dv): one sentence and one head. query_labels (L,),
    key_labels (S,): a, b, c, ... unless given; keys take the queries' where there are as many.
    Options and errors as for `attention`, without return_weights and block_size. Raises ValueError,
    too, for arrays that are not 2-D, and where the labels are not one for each token.
    Vaswani et al. 2017, section 3.2.1.

    >>> steps = trace([[2.0], [0.0]], [[1.0], [1.0]], [[3.0], [5.0]], is_causal=True)
    >>> steps["masked"].array
    array([[  2., -inf],
           [  0.,   0.]])
    >>> print(steps["weights"].symbols[1, 0])
    exp((b_Q·a_K)/√1)/(exp((b_Q·a_K)/√1) + exp((b_Q·b_K)/√1))
    >>> print(steps["outputs"].symbols, steps["outputs"].array.T)
    [a_V S_ba·a_V + S_bb·b_V] [[3. 4.]]
    """
    q, k, v = _matrices(query=query, key=key, value=value)
    rows = _labels("query_labels", query_labels, len(q))
    if key_labels is None and len(k) == len(q):
        key_labels = rows
    columns = _labels("key_labels", key_labels, len(k))
    inputs = (
        _input_step("queries", "Q", q, rows, _entries(rows, "Q")),
        _input_step("keys", "K", k, columns, _entries(columns, "K")),
        _input_step("values", "V", v, columns, _entries(columns, "V")),
    )
    return Trace((*inputs, *_attention_steps(*inputs, **options)))


def trace_self_attention(
    x: npt.ArrayLike,
    w_query: npt.ArrayLike,
    w_key: npt.ArrayLike,
    w_value: npt.ArrayLike,
    *,
    tokens: Iterable[str] | None = None,
    **options: Any,
) -> Trace:
    """Record self-attention as `trace` does, with the inputs, w_query, w_key and w_value before it.

    x (n, d_in), w_query (d_in, d), w_key (d_in, d), w_value (d_in, dv). tokens (n,): the labels of
    x. Options and errors as for `trace`; raises ValueError, too, for weights that do not fit.
    Vaswani et al. 2017, section 3.2.3.

    >>> steps = trace_self_attention([[1, 2]], [[1], [1]], [[0], [1]], [[2], [0]], tokens="a")
    >>> print(steps["queries"].symbols, steps["queries"].array)
    [[a1·q11 + a2·q21]] [[3.]]
    """
    inputs, *weights = _matrices(x=x, w_query=w_query, w_key=w_key, w_value=w_value)
    labels = _labels("tokens", tokens, len(inputs))
    source = _input_step("inputs", "X", inputs, labels, distinct(labels))
    names = ("query", "key", "value")
    steps = [_weight_step(f"w_{name}", w, source) for name, w in zip(names, weights, strict=True)]
    projected = [_projection_step(source, step) for step in steps]
    return Trace((source, *steps, *projected, *_attention_steps(*projected, **options)))


# --- what is given, and its projections ---


def _input_step(name: str, formula: str, array: Array, rows: Labels, names: Labels) -> TraceStep:
    """Return an input, whose symbols are its rows' names, numbered by column."""
    columns = numbered(array.shape[1])
    return TraceStep(name, formula, array, rows, columns, lambda: matrix_symbols(names, array))


def _weight_step(name: str, weight: Array, inputs: TraceStep) -> TraceStep:
    d_in = len(weight)
    if d_in != len(inputs.columns):
        raise ValueError(
            f"{name} needs {len(inputs.columns)} rows, one for each column of x, got shape "
            f"{weight.shape} for x {inputs.array.shape}"
        )
    rows = numbered(d_in)
    return _input_step(name, f"W_{name[2]}", weight, rows, tuple(name[2] + row for row in rows))


def _projection_step(inputs: TraceStep, weight: TraceStep) -> TraceStep:
    letter = weight.name[2].upper()
    name = {"Q": "queries", "K": "keys", "V": "values"}[letter]
    array, formula = inputs.array @ weight.array, f"{letter} = X·{weight.formula}"

    def write() -> Array:
        return inputs.symbols @ weight.symbols

    return TraceStep(name, formula, array, inputs.rows, weight.columns, write)


# --- attention ---


# As in `attention`, infinities are ordinary here.
@np.errstate(all="ignore")
def _attention_steps(
    queries: TraceStep,
    keys: TraceStep,
    values: TraceStep,
    *,
    mask: npt.ArrayLike | None = None,
    bias: npt.ArrayLike | None = None,
    **keywords: Any,
) -> tuple[TraceStep, ...]:
    """Return the scores without their scale, and the steps of `attend`."""
    inputs = checked(queries.array, keys.array, values.array, mask, bias)
    if len(inputs.shape) != 2:
        raise ValueError(f"a trace takes one mask and bias (L, S), got scores {inputs.shape}")
    options = AttentionOptions(inputs.mask, inputs.bias, **keywords)
    unscaled = replace(options, scale=1)
    query, key, value = inputs.ready()
    steps = attend(query, key, value, options)
    # A mix of one value at a time, so that here, too, a weight of 0 takes nothing.
    weighted_values = mix(steps.weights[:, :, None, None], value[:, None, :])[:, :, 0]

    Q, K, V = (
        symbols(_entries(step.rows, step.name[0].upper()), step.array)
        for step in (queries, keys, values)
    )
    how = formulas(options, query.shape[-1])

    def step(name: str, array: Array, write: Callable[[], Array], columns: Labels) -> TraceStep:
        return TraceStep(name, how[name], cast(array, inputs.dtype), queries.rows, columns, write)

    to_keys = partial(step, columns=keys.rows)
    scores = to_keys("scores", unscaled.scores(query, key), lambda: score_symbols(unscaled, Q, K))
    scaled = to_keys("scaled", steps.scores, lambda: scaled_symbols(options, scores.symbols, Q, K))
    capped = to_keys("capped", steps.capped, lambda: options.capped(scaled.symbols))
    masked = to_keys("masked", steps.masked, lambda: options.visible(capped.symbols))
    shares = partial(weight_symbols, options, numbers=steps.masked)
    weights = to_keys("weights", steps.weights, lambda: shares(masked.symbols))
    weighted = to_keys("weighted", weighted_values, lambda: _pairs(weights) * V)
    outputs = step("outputs", steps.output, lambda: _pairs(weights) @ V, values.columns)
    cap = (capped,) if options.softcap else ()
    return scores, scaled, *cap, masked, weights, weighted, outputs


def _entries(tokens: Labels, letter: str) -> Labels:
    """Name the queries, keys or values of tokens: a_Q, b_Q, ..."""
    return tuple(f"{token}_{letter}" for token in distinct(tokens))


def _pairs(weights: TraceStep) -> Array:
    """Return the weights by name, S_ab: how much query a takes of b."""
    rows, columns = distinct(weights.rows), distinct(weights.columns)
    names = [f"S_{a}{',' * (len(a + b) > 2)}{b}" for a in rows for b in columns]
    return renamed(names, weights.symbols, weights.array)


# --- labels and shapes ---


def _labels(name: str, labels: Iterable[str] | None, n: int) -> Labels:
    """Return n labels, after checking them; by default a, b, c, ..., or t1, t2, ... beyond z."""
    if labels is None:
        return tuple("abcdefghijklmnopqrstuvwxyz"[:n]) if n <= 26 else numbered(n, "t")
    texts = tuple(str(label) for label in labels)
    if len(texts) != n:
        raise ValueError(f"{name} must be {n}, one for each token, got {len(texts)}: {texts}")
    return texts


def _matrices(**inputs: npt.ArrayLike) -> list[Array]:
    """Return NumPy arrays of one dtype. Raise ValueError for arrays that are not 2-D."""
    arrays = [np.asarray(array) for array in inputs.values()]
    for name, array in zip(inputs, arrays, strict=True):
        if array.ndim != 2:
            raise ValueError(
                f"{name} must have axes (tokens or inputs, width), got shape {array.shape}: trace "
                "one sentence and one head at a time"
            )
    dtype = answer_dtype(np, *arrays)
    return [cast(array, dtype) for array in arrays]
