"""Arguments of the public methods: what their annotations say, or an error that names them.

Whoever calls from Python has no compiler between; a wrong type should be told as what it is, and
not as what fails somewhere below.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from numbers import Integral, Real
from os import PathLike
from typing import Any, ParamSpec, TypeVar

import numpy as np

from qkvsearch._utils.limits import QUERY
from qkvsearch.errors import QkvError
from qkvsearch.terminal import shorten

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)
# As much of a value is shown.
SHOWN = 60
ONE = "an id or a title: a text, or a number"


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which raises `QkvError` for an argument that is none of what its annotation
    says. None is what a parameter may be whose default it is.

    >>> @checked
    ... def search(query: "str", seen: "bool" = False): ...
    >>> search(3.5)
    Traceback (most recent call last):
    qkvsearch.errors.QkvError: `query` is a text, not 3.5
    """
    signature = inspect.signature(function)
    takes = {name: _kind(parameter) for name, parameter in signature.parameters.items()}

    names = list(takes)
    may_be_none = {name for name, it in signature.parameters.items() if it.default is None}

    def taken(name: str, value: Any) -> Any:
        take = takes.get(name)
        return (
            value if take is None or (value is None and name in may_be_none) else take(name, value)
        )

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        # Arguments that do not fit the signature are for Python to refuse.
        given: Any = [*map(taken, names, args), *args[len(names) :]]
        named: Any = {name: taken(name, value) for name, value in kwargs.items()}
        return function(*given, **named)

    return call


def checked_methods(cls: C) -> C:
    """A class, all of whose public methods are `checked`, and how it is made."""
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, checked(method))
    return cls


def shown(value: Any) -> str:
    """A value as a message shows it, be it long, or one that cannot show itself.

    >>> shown("ann"), len(shown("a" * 1000)), shown(10**5000)
    ("'ann'", 60, 'a value of type int')
    """
    try:
        text = repr(value)
    except Exception:  # a stranger's class, or more digits than Python writes
        return f"a value of type {type(value).__name__}"
    return shorten(text, SHOWN)


def text_of(name: str, value: Any) -> str:
    """A text of a length that can be read. Raises `QkvError`."""
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    QUERY.check(len(value), f"`{name}`", QkvError)
    return value


def id_of(name: str, value: Any) -> Any:
    """An id or title. Raises `QkvError`, also for a half of a pair of surrogates, which cannot be
    stored.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not isinstance(value, str) and not (is_number and math.isfinite(_as_float(value))):
        raise _wrong(name, value, ONE)
    if isinstance(value, str):
        try:
            text_of(name, value).encode()
        except UnicodeEncodeError:
            raise _wrong(name, value, "text that can be stored in UTF-8") from None
    return value


def ids_of(name: str, value: Any) -> list[Any]:
    """One id or title, or any number of them."""
    if isinstance(value, str) or not _is_many(value):
        return [id_of(name, value)]
    return [id_of(name, one) for one in value]


def _words(name: str, value: Any) -> str | list[str]:
    if isinstance(value, str) or not _is_many(value):
        return text_of(name, value)
    return [text_of(name, one) for one in value]


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise _wrong(name, value, "True or False")
    return bool(value)


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise _wrong(name, value, "a whole number")
    return int(value)


def _number(name: str, value: Any) -> float:
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not is_number or math.isnan(_as_float(value)):
        raise _wrong(name, value, "a number")
    return _as_float(value)


def _path(name: str, value: Any) -> Any:
    if not _is_path(value) or not str(value):
        raise _wrong(name, value, "a path")
    return value


def _source(name: str, value: Any) -> Any:
    import pandas as pd

    frame = value[0] if isinstance(value, tuple) and len(value) == 2 else value
    if not isinstance(frame, pd.DataFrame) and not _is_path(value):
        raise _wrong(name, value, "a file, or a pandas frame")
    return value


def _is_path(value: Any) -> bool:
    """Whether a system may have a file of that name; bytes that are no text can be in it."""
    if not isinstance(value, str | PathLike):
        return False
    with suppress(UnicodeEncodeError):
        return b"\0" not in os.fsencode(value)
    return False


def _queries(name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _path(name, value)
    return {id_of(name, key): text_of(name, text) for key, text in value.items()}


def _ratings(name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong(name, value, "of each item, by id or title, the rating")
    return {id_of(name, item): _number(name, rating) for item, rating in value.items()}


def _judgements(name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _path(name, value)
    if not all(isinstance(judged, Mapping) for judged in value.values()):
        raise _wrong(name, value, "a file, or of each query the items with their grades")
    return {
        id_of(name, query): {id_of(name, item): _whole(name, grade) for item, grade in one.items()}
        for query, one in value.items()
    }


def _synonyms(name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _path(name, value)
    return {text_of(name, text): _words(name, others) for text, others in value.items()}


def _condition(name: str, value: Any) -> Any:
    if not isinstance(value, str | tuple):
        raise _wrong(name, value, "a condition: 'price < 80', or ('price < ?', [80])")
    return value


def _callable(name: str, value: Any) -> Any:
    if not callable(value):
        raise _wrong(name, value, "a function")
    return value


def _columns(name: str, value: Any) -> Any:
    if type(value).__name__ != "Columns":
        raise _wrong(name, value, "qkvsearch.Columns(…)")
    return value


# By what stands in an annotation before "| None".
KINDS: Mapping[str, Callable[[str, Any], Any]] = {
    "str": text_of,
    "str | Iterable[str]": _words,
    "Id": id_of,
    "Iterable[Id]": ids_of,
    "Id | Iterable[Id]": ids_of,
    "Mapping[Id, float]": _ratings,
    "bool": _flag,
    "int": _whole,
    "float": _number,
    "str | Path": _path,
    "Source": _source,
    "str | Path | Queries": _queries,
    "str | Path | Judgements": _judgements,
    "str | Path | Synonyms": _synonyms,
    "Where": _condition,
    "Progress": _callable,
    "Columns": _columns,
}
# Numbers of questions are checked there, with what they mean.
OF_QUESTIONS = (
    "k", "offset", "min_weight", "temperature", "damping", "diversity", "recent", "trials",
    "minutes", "random_state",
)  # fmt: skip


def _kind(parameter: inspect.Parameter) -> Callable[[str, Any], Any] | None:
    """How an argument is checked; None where it is not."""
    annotation = str(parameter.annotation).removesuffix(" | None").strip("'")
    if parameter.name in ("user", "item"):
        return id_of
    is_object = parameter.name in ("self", "build", "engine") and annotation not in KINDS
    if is_object or parameter.name in OF_QUESTIONS:
        return None
    return _callable if annotation.startswith("Callable[") else KINDS[annotation]


def _is_many(value: Any) -> bool:
    return (
        isinstance(value, Iterable)
        and getattr(value, "ndim", 1) != 0
        and not isinstance(value, bytes | bytearray | Mapping)
    )


def _as_float(value: Any) -> float:
    """Infinite where it is too large for one; so is a whole number that Python cannot write."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _wrong(name: str, value: Any, wanted: str) -> QkvError:
    return QkvError(f"`{name}` is {wanted}, not {shown(value)}")
