"""Checks of an estimator's parameters, and the generator for its `random_state`."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from qkvsearch.errors import DataError


def require(valid: bool, name: str, value: object, wanted: str) -> None:
    """Raise `DataError` unless `valid`."""
    if not valid:
        raise DataError(f"{name} must be {wanted}, got {value!r}")


def is_finite(value: object) -> bool:
    """True for a number that is finite in float32 too, in which the models compute."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    return abs(float(value)) <= float(np.finfo(np.float32).max)


def check_positive(name: str, value: Any, or_word: str = "") -> None:
    """Raise `DataError` unless `value` is a finite number above 0, or the word `or_word`."""
    if not (or_word and isinstance(value, str) and value == or_word):
        # In float32, a smaller number would be 0.
        valid = is_finite(value) and value >= float(np.finfo(np.float32).tiny)
        require(valid, name, value, f"{or_word!r} or " * bool(or_word) + "a finite number above 0")


def check_whole(name: str, value: Any) -> None:
    """Raise `DataError` unless `value` is a whole number from 1 up, which True is not."""
    valid = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
    require(valid, name, value, "a whole number, at least 1")


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's `NotFittedError` before `fit`."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)


def random_generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from what scikit-learn takes as `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, int):  # without scikit-learn, which is slow to import
        return np.random.default_rng(np.random.RandomState(random_state).randint(2**31 - 1))
    from sklearn.utils import check_random_state

    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
