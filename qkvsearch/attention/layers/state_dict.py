"""Weights of a layer by name, such as "layers.0.attention.query.weight": get and set them.

A layer is any dataclass. Its arrays are its weights; dataclasses, and lists of them, are the layers
inside it. Everything else, and any field that its `__init__` does not take, is a setting. So a
layer needs no further code to be saved or trained.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.layers.basic import Array

Layer = TypeVar("Layer")


def state(layer: Any) -> dict[str, Array]:
    """Return the weights of a layer and of the layers inside it, under dotted names.

    They are the arrays of the layer, not copies: writing into them changes the layer.
    `safetensors.numpy.save_file(state(layer), path)` saves them. Raises TypeError unless the layer
    is a dataclass.

    >>> from qkvsearch.attention.layers.basic import FeedForward
    >>> {name: array.shape for name, array in state(FeedForward.create(2, 8, rng=0)).items()}
    {'hidden.weight': (8, 2), 'hidden.bias': (8,), 'output.weight': (2, 8), 'output.bias': (2,)}
    """
    if not _is_layer(layer):
        raise TypeError(f"a layer is an instance of a dataclass, got {layer!r}")
    return dict(_weights("", layer))


def load(layer: Layer, weights: Mapping[str, npt.ArrayLike]) -> Layer:
    """Return a layer with these weights and the same settings; the original does not change.

    weights: dotted name -> array, exactly the names and shapes of `state(layer)`. Arrays keep their
    dtype and are not copied: a pretrained model is in memory once, and training changes them, or is
    refused if they are read-only. Raises ValueError that lists the names that are missing, unknown
    or of another shape.

    >>> from qkvsearch.attention.layers.basic import Linear
    >>> doubler = load(Linear.create(1, 1, rng=0), {"weight": [[2.0]], "bias": [0.0]})
    >>> doubler(np.array([4.0]))
    array([8.])
    """
    arrays = {name: np.asarray(array) for name, array in weights.items()}
    _check(state(layer), arrays)
    return _filled("", layer, arrays)


def _dotted(name: str, inner: Any) -> str:
    return f"{name}.{inner}" if name else str(inner)


def _is_layer(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _inside(value: Any) -> dict[Any, Any]:
    """Return what a layer or a list contains, by field or index."""
    if isinstance(value, list):
        return dict(enumerate(value))
    if _is_layer(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return {}


def _weights(name: str, value: Any) -> Iterator[tuple[str, Array]]:
    """Yield all arrays inside a value of that name."""
    if isinstance(value, np.ndarray):
        yield name, value
    for key, inner in _inside(value).items():
        yield from _weights(_dotted(name, key), inner)


def _filled(name: str, value: Any, weights: Mapping[str, Array]) -> Any:
    """Return the value of that name with all weights inside it replaced."""
    if isinstance(value, np.ndarray):
        return weights[name]
    if next(_weights(name, value), None) is None:
        return value
    inside = {key: _filled(_dotted(name, key), x, weights) for key, x in _inside(value).items()}
    return list(inside.values()) if isinstance(value, list) else replace(value, **inside)


def _check(expected: Mapping[str, Array], arrays: Mapping[str, Array]) -> None:
    """Raise ValueError for weights that are not those of the layer."""
    problems = {
        "missing": [name for name in expected if name not in arrays],
        "unknown": [name for name in arrays if name not in expected],
        "of another shape": [
            f"{name} {arrays[name].shape}, not {array.shape}"
            for name, array in expected.items()
            if name in arrays and arrays[name].shape != array.shape
        ],
    }
    if any(problems.values()):
        message = "; ".join(
            f"{what}: {', '.join(names)}" for what, names in problems.items() if names
        )
        raise ValueError(f"these are not the layer's weights: {message}")
