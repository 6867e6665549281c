"""A layer's weights by name: out of it, into it, "layers.0.attention.query.weight" as in files.

A layer is any dataclass: its arrays are its weights; dataclasses, and lists, tuples and dicts of
them, are the layers inside it; anything else, and any field that its `__init__` does not take, is
a setting. So a layer needs no code of its own to be saved or trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.layers.basic import Array

Layer = TypeVar("Layer")


def state(layer: Any) -> dict[str, Array]:
    """The weights of a layer and of the layers inside it, under dotted names.

    They are the layer's own arrays, not copies: to write into them is to change the layer.
    `safetensors.numpy.save_file(state(layer), path)` saves them. Raises TypeError for what is not
    a dataclass.

    >>> from qkvsearch.attention.layers.basic import FeedForward
    >>> {name: array.shape for name, array in state(FeedForward.create(2, 8, rng=0)).items()}
    {'hidden.weight': (8, 2), 'hidden.bias': (8,), 'output.weight': (2, 8), 'output.bias': (2,)}
    """
    if not _is_layer(layer):
        raise TypeError(f"a layer is an instance of a dataclass, got {layer!r}")
    return dict(_weights("", layer))


def load(layer: Layer, weights: Mapping[str, npt.ArrayLike]) -> Layer:
    """A layer with these weights and the same settings; the layer given stays as it is.

    weights: dotted name -> array, exactly the names and shapes of `state(layer)`. Arrays are kept
    as they are, dtype included, and not copied: a pretrained model costs no second memory, and
    training the layer changes them or, where they are read-only, is refused. Raises ValueError
    that lists the names that are missing, unknown or of another shape.

    >>> from qkvsearch.attention.layers.basic import Linear
    >>> doubler = load(Linear.create(1, 1, rng=0), {"weight": [[2.0]], "bias": [0.0]})
    >>> doubler(np.array([4.0]))
    array([8.])
    """
    found = {name: np.asarray(array) for name, array in weights.items()}
    _check(state(layer), found)
    return _filled("", layer, found)


def prefixed(name: str, weights: Mapping[str, Array]) -> dict[str, Array]:
    """The weights of a part, under the names that they have in the whole.

    >>> list(prefixed("query", {"weight": np.eye(2), "bias": np.ones(2)}))
    ['query.weight', 'query.bias']
    """
    return {_dotted(name, inner): array for inner, array in weights.items()}


def _dotted(name: str, inner: Any) -> str:
    return f"{name}.{inner}" if name else str(inner)


def _is_layer(part: Any) -> bool:
    return is_dataclass(part) and not isinstance(part, type)


def _inside(part: Any) -> dict[Any, Any]:
    """What a layer, list, tuple or dict holds, by field, place or key; a setting holds nothing."""
    if isinstance(part, list | tuple):
        return dict(enumerate(part))
    if isinstance(part, dict):
        return part
    if _is_layer(part):
        return {field.name: getattr(part, field.name) for field in fields(part) if field.init}
    return {}


def _weights(name: str, part: Any) -> Iterator[tuple[str, Array]]:
    """The arrays of the part of that name, all the way down."""
    if isinstance(part, np.ndarray):
        yield name, part
    for key, inner in _inside(part).items():
        yield from _weights(_dotted(name, key), inner)


def _filled(name: str, part: Any, weights: Mapping[str, Array]) -> Any:
    """The part of that name with its weights replaced, all the way down."""
    if isinstance(part, np.ndarray):
        return weights[name]
    if next(_weights(name, part), None) is None:
        return part
    inside = {key: _filled(_dotted(name, key), x, weights) for key, x in _inside(part).items()}
    if isinstance(part, list | tuple):
        return getattr(part, "_make", type(part))(inside.values())  # _make: a named tuple's
    if isinstance(part, dict):
        return inside
    return replace(part, **inside)


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
