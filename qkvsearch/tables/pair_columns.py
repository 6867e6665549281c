"""The columns that `Interactions.from_columns` takes, checked: ids, numbers and times.

Every error is a `DataError` that names the column.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from qkvsearch._utils.validation import FLOAT32_MAX, displayed
from qkvsearch.errors import DataError
from qkvsearch.tables.times import UNKNOWN_TIME

DATES = ("date", "datetime", "datetime64")


def check_lengths(columns: Mapping[str, pd.Series]) -> None:
    """Raise `DataError` unless all columns have the same length."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise DataError(f"every column must have a value for each row, got lengths: {listed}")


def as_column(name: str, values: Any) -> pd.Series:
    """Return values as a column with one value for each row. Raises `DataError`."""
    if isinstance(values, str | bytes | dict) or not hasattr(values, "__iter__"):
        raise DataError(f"`{name}` must be a column of values, not {displayed(values)}")
    n_axes = getattr(values, "ndim", 1)
    if n_axes != 1:
        raise DataError(f"`{name}` must be one column of values, and has {n_axes} axes")
    if hasattr(values, "__array__") and not _keeps_gaps(values):
        values = _with_gaps(values)
    try:
        # A list with a gap would turn into floats, which merge long numbers.
        dtype = None if hasattr(values, "dtype") else object
        column = pd.Series(values, dtype=dtype).reset_index(drop=True)
        if isinstance(column.dtype, np.dtype) and not column.dtype.isnative:
            # pandas cannot look numbers up whose bytes are in the order of another machine.
            column = column.astype(column.dtype.newbyteorder("="))
        return column
    except (TypeError, ValueError) as error:
        raise DataError(f"`{name}` must be a column of values: {error}") from None


def _keeps_gaps(values: Any) -> bool:
    """Return whether a kind of array says where values are missing, which NumPy would forget."""
    pandas_kinds = (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)
    return isinstance(values, (*pandas_kinds, np.ma.MaskedArray))


def _with_gaps(values: Any) -> Any:
    """Return an array of any library as one of NumPy, or as a list where values are missing.

    With a gap, whole numbers of Arrow and Polars would turn into floats, which merge long numbers.
    """
    array = np.asarray(values)
    for as_list in ("to_pylist", "to_list"):
        if array.dtype.kind == "f" and np.isnan(array).any() and hasattr(values, as_list):
            return getattr(values, as_list)()
    return array


def as_numbers(name: str, column: pd.Series) -> np.ndarray:
    """Return a column as float64, NaN where a value is missing. Raises `DataError` for what is no
    number, and for one that is infinite in float32, in which the models compute.
    """
    try:
        if column.dtype.kind in "cmM":  # complex numbers, and dates
            raise TypeError
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"`{name}` must be numbers: {_first_text(column)}") from None
    too_large = np.abs(numbers) > FLOAT32_MAX
    if too_large.any():
        row = int(np.flatnonzero(too_large)[0])
        raise DataError(f"`{name}` must be finite numbers, and row {row} has {numbers[row]}")
    return numbers


def as_times(name: str, column: pd.Series) -> np.ndarray:
    """Return times as int64: whole numbers as they are, dates as microseconds since 1970 in UTC,
    `UNKNOWN_TIME` where a time is missing. Raises `DataError` for anything else.

    >>> as_times("times", pd.Series([3.0, None]))[0]
    np.int64(3)
    """
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in DATES:
        try:
            column = pd.to_datetime(column, utc=True)
        except (TypeError, ValueError) as error:
            raise DataError(f"`{name}` must be dates or whole numbers: {error}") from None
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if column.dtype.kind == "M":
        return column.to_numpy(dtype="datetime64[us]").astype(np.int64)  # NaT is the lowest number
    if column.dtype.kind in "iu":
        return _whole_numbers(name, column)
    try:
        with np.errstate(invalid="ignore"):  # too large a number is refused below
            exact = column.astype("Int64")
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"`{name}` must be whole numbers or dates: {_first_text(column, whole=True)}; "
            "pandas.to_datetime(times) reads dates"
        ) from None
    return _whole_numbers(name, exact)


def _whole_numbers(name: str, column: pd.Series) -> np.ndarray:
    if len(column) and column.max() is not pd.NA and column.max() > np.iinfo(np.int64).max:
        raise DataError(f"`{name}` must be whole numbers of 64 bits, and one is {column.max()}")
    return column.to_numpy(dtype=np.int64, na_value=UNKNOWN_TIME)


def _first_text(column: pd.Series, whole: bool = False) -> str:
    """Return which row has a value that is no number, or no whole one."""
    try:
        numbers = pd.to_numeric(column, errors="coerce")
    except OverflowError:
        return "one has more digits than a number of 64 bits"
    if numbers.dtype.kind not in "biuf":
        return f"they are {column.dtype}"
    is_wrong = numbers.isna() & column.notna()
    if whole:
        is_wrong |= (numbers % 1 != 0) & column.notna()
        # A date is only wrong among numbers: another value is named first.
        is_date = column.map(lambda value: isinstance(value, date | np.datetime64))
        is_neither = is_wrong & ~is_date.astype(bool)
        if is_neither.any():
            is_wrong = is_neither
    rows = np.flatnonzero(is_wrong.to_numpy(dtype=bool, na_value=False))
    if not len(rows):
        return f"they are {column.dtype}"
    return f"row {rows[0]} has {displayed(column.iloc[int(rows[0])])}"
