"""A layer's weights by name: out of it, into it, "layers.0.attention.query.weight" as in files.

A layer is any dataclass: its arrays are its weights, dataclasses and lists of them are the layers
inside it, anything else is a setting. So a layer needs no code of its own to be saved or trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.layers.initializers import Array

Layer = TypeVar("Layer")


def state(layer: Any) -> dict[str, Array]:
    """The weights of a layer and of the layers inside it, under dotted names.

    They are the layer's own arrays, not copies: to write into them is to change the layer.
    `safetensors.numpy.save_file(state(layer), path)` saves them.

    >>> from qkvsearch.attention.layers.basic import FeedForward
    >>> {name: array.shape for name, array in state(FeedForward.create(2, 8, rng=0)).items()}
    {'hidden.weight': (8, 2), 'hidden.bias': (8,), 'output.weight': (2, 8), 'output.bias': (2,)}
    """
    weights: dict[str, Array] = {}
    for name, part in _parts(layer):
        weights |= {name: part} if isinstance(part, np.ndarray) else prefixed(name, state(part))
    return weights


def load(layer: Layer, weights: Mapping[str, npt.ArrayLike]) -> Layer:
    """A layer with these weights and the same settings; the layer given stays as it is.

    weights: dotted name -> array, exactly the names and shapes of `state(layer)`. The arrays are
    kept as they are, dtype included, and not copied. Raises ValueError that lists the names that
    are missing, unknown or of another shape.

    >>> from qkvsearch.attention.layers.basic import Linear
    >>> doubler = load(Linear.create(1, 1, rng=0), {"weight": [[2.0]], "bias": [0.0]})
    >>> doubler(np.array([4.0]))
    array([8.])
    """
    found = {name: np.asarray(array) for name, array in weights.items()}
    _check(state(layer), found)
    return _filled(layer, found, "")


def prefixed(name: str, weights: Mapping[str, Array]) -> dict[str, Array]:
    """The weights of a part, under the names that they have in the whole.

    >>> list(prefixed("query", {"weight": np.eye(2), "bias": np.ones(2)}))
    ['query.weight', 'query.bias']
    """
    return {f"{name}.{inner}": array for inner, array in weights.items()}


def _parts(layer: Any) -> Iterator[tuple[str, Any]]:
    """The arrays and layers directly inside a layer, with their names."""
    for field in fields(layer):
        part = getattr(layer, field.name)
        if isinstance(part, list):
            named = [(f"{field.name}.{i}", item) for i, item in enumerate(part)]
        else:
            named = [(field.name, part)]
        yield from (pair for pair in named if _has_weights(pair[1]))


def _has_weights(part: Any) -> bool:
    return isinstance(part, np.ndarray) or (is_dataclass(part) and not isinstance(part, type))


def _check(expected: Mapping[str, Array], found: Mapping[str, Array]) -> None:
    """Refuse weights that are not those of the layer, saying which."""
    problems = {
        "missing": [name for name in expected if name not in found],
        "unknown": [name for name in found if name not in expected],
        "of another shape": [
            f"{name} {found[name].shape}, not {array.shape}"
            for name, array in expected.items()
            if name in found and found[name].shape != array.shape
        ],
    }
    if any(problems.values()):
        said = "; ".join(f"{what}: {', '.join(names)}" for what, names in problems.items() if names)
        raise ValueError(f"these are not the layer's weights: {said}")


def _filled(part: Any, weights: Mapping[str, Array], name: str) -> Any:
    """The part of that name with its weights replaced, all the way down."""
    if isinstance(part, np.ndarray):
        return weights[name]
    if isinstance(part, list):
        return [_filled(item, weights, f"{name}.{i}") for i, item in enumerate(part)]
    if not _has_weights(part):
        return part
    prefix = f"{name}." if name else ""
    inside = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
    return replace(part, **{key: _filled(x, weights, prefix + key) for key, x in inside.items()})
