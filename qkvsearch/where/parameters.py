"""Values for the `?` and `:name` of a condition, as SQLite takes them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from numbers import Integral, Real
from typing import Any, TypeAlias

from qkvsearch._utils.folding import composed
from qkvsearch._utils.validation import displayed
from qkvsearch.errors import QkvError

SqlParameters: TypeAlias = Sequence[Any] | Mapping[str, Any]


def bound(parameters: SqlParameters) -> dict[str, Any]:
    """Return the values of placeholders by name; unnamed ones are "_1", "_2", …. Raises `QkvError`
    for a value that no cell can be compared with.

    >>> bound([80, date(2024, 3, 1)])
    {'_1': 80, '_2': datetime.date(2024, 3, 1)}
    """
    if isinstance(parameters, Mapping):
        named = {str(name): value for name, value in parameters.items()}
    elif isinstance(parameters, Sequence) and not isinstance(parameters, (str, bytes)):
        named = {f"_{number}": value for number, value in enumerate(parameters, 1)}
    else:
        raise QkvError(
            "its values are a list, such as [80], or a dictionary, such as {'most': 80}, not "
            f"{type(parameters).__name__}"
        )
    return {name: _plain(name, value) for name, value in named.items()}


def for_sqlite(value: Any) -> Any:
    """Return a value as cells are stored: dates as text, times of day in UTC.

    >>> for_sqlite(datetime(2024, 3, 1, 10, 30))
    '2024-03-01 10:30:00'
    """
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(UTC)
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return value.isoformat() if isinstance(value, date) else value


def _plain(name: str, value: Any) -> Any:
    """Return a number, a text, a date or None; convert NumPy's numbers to Python's. Texts are in
    the Unicode form of the cells.
    """
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, str):
        return composed(value)
    if value is None or isinstance(value, (bool, date)):
        return value
    if isinstance(value, Integral) and -(2**63) <= int(value) < 2**63:
        return int(value)
    with suppress(OverflowError):  # a whole number too large for a float
        if isinstance(value, Real) and math.isfinite(value):
            return float(value)
    raise QkvError(
        f"value {name.removeprefix('_')} is {displayed(value)}, and cells are compared with finite "
        "numbers, texts, dates, True, False and None"
    )
