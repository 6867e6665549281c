"""Check the arguments of the engine's methods against their annotations.

What needs more than its type, such as a number with limits, an id or a condition, is checked where
it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from numbers import Real
from typing import Any, ParamSpec, TypeVar

from qkvsearch._utils.validation import (
    check_flag,
    check_path,
    check_text,
    displayed,
    require,
)
from qkvsearch.errors import DataError

P = ParamSpec("P")
T = TypeVar("T")


def _check_number(name: str, value: Any) -> None:
    # Limits, which no infinite number and no NaN keeps, are named where the number is used.
    require(isinstance(value, Real) and not isinstance(value, bool), name, value, "a number")


def _check_columns(name: str, value: Any) -> None:
    from qkvsearch.tables.columns import Columns

    require(isinstance(value, Columns), name, value, 'Columns, such as Columns(title="name")')


def _check_function(name: str, value: Any) -> None:
    if not callable(value):
        raise DataError(f"`{name}` must be a function, not {displayed(value)}")


# The check of each annotation. With "| None" after it, None is taken as well.
CHECKS: Mapping[str, Callable[[str, Any], object]] = {
    "bool": check_flag,
    "str": check_text,
    "str | Path": check_path,
    "float": _check_number,
    "Columns": _check_columns,
    "Progress": _check_function,
    "Callable[[str], None]": _check_function,
    "Callable[[list[Trial]], None]": _check_function,
}
OPTIONAL = " | None"


def checked_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that raises `DataError` for an argument of another type than its
    annotation, and names it.

    >>> @checked_arguments
    ... def greet(name: str) -> str:
    ...     return f"Hello, {name}"
    >>> greet("Ann")
    'Hello, Ann'
    >>> greet(5)
    Traceback (most recent call last):
    qkvsearch.errors.DataError: `name` must be a text, not 5
    """
    annotations = {
        # As written: modules here have their annotations as texts.
        name: getattr(parameter.annotation, "__name__", parameter.annotation)
        for name, parameter in signature(function).parameters.items()
    }
    parameters = list(annotations)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        # Too many arguments, or unknown ones, are errors of the call itself.
        for name, value in [*zip(parameters, args, strict=False), *kwargs.items()]:
            annotation = annotations.get(name, "")
            if value is None and annotation.endswith(OPTIONAL):
                continue
            check = CHECKS.get(annotation.removesuffix(OPTIONAL))
            if check is not None:
                check(name, value)
        return function(*args, **kwargs)

    return call
