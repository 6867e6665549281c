"""Checks of argument values, and the generator for a `random_state`.

Each error names the parameter in backticks; the command line puts its own spelling there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from qkvsearch._utils.limits import QUERY
from qkvsearch.errors import DataError
from qkvsearch.imports import leaving_no_trace
from qkvsearch.terminal import shorten

# NumPy is imported where it is used: the command line reads the limits of options without it.
if TYPE_CHECKING:
    import numpy as np

# The largest number of float32, and the smallest above 0 of full precision.
FLOAT32_MAX, FLOAT32_TINY = 3.4028234663852886e38, 1.1754943508222875e-38
# NumPy's older generator, which the seeds go through, takes no larger seed.
LARGEST_OLD_SEED = 2**32 - 1
SEEDS = "a seed (a whole number, 0 or above), a generator of NumPy, or None"
# Characters of a value that a message shows.
DISPLAYED = 60


def require(valid: bool, name: str, value: object, expected: str) -> None:
    """Raise `DataError` unless `valid`.

    >>> require(False, "k", -1, "a whole number, at least 0")
    Traceback (most recent call last):
    qkvsearch.errors.DataError: `k` must be a whole number, at least 0, not -1
    """
    if not valid:
        raise DataError(f"`{name}` must be {expected}, not {displayed(value)}")


def displayed(value: object) -> str:
    """Return a value as a message shows it, even one that is long or whose `repr` fails.

    >>> displayed("ann"), len(displayed("a" * 1000)), displayed(10**5000)
    ("'ann'", 60, 'a value of type int')
    """
    try:
        text = repr(value)
    except Exception:  # somebody else's class, or more digits than Python writes
        return f"a value of type {type(value).__name__}"
    return shorten(text, DISPLAYED)


def is_number(value: object) -> bool:
    """Return True for a finite real number, False for a boolean."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number too large for a float
        return False


def is_whole(value: object) -> bool:
    """Return True for a whole number of any size, False for a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_finite(value: object) -> bool:
    """Return True for a number that is finite in float32 too, in which the models compute."""
    return is_number(value) and abs(float(value)) <= FLOAT32_MAX  # type: ignore[arg-type]


def check_positive(name: str, value: Any, or_word: str = "") -> None:
    """Raise `DataError` unless `value` is a finite number above 0, or the word `or_word`."""
    if not (or_word and isinstance(value, str) and value == or_word):
        # In float32, a smaller number would be 0.
        valid = is_finite(value) and value >= FLOAT32_TINY
        require(valid, name, value, f"{or_word!r} or " * bool(or_word) + "a finite number above 0")


def check_whole(name: str, value: Any, minimum: int = 1) -> None:
    """Raise `DataError` unless `value` is a whole number from `minimum` up."""
    valid = is_whole(value) and int(value) >= minimum
    require(valid, name, value, f"a whole number, at least {minimum}")


def check_text(name: str, value: Any) -> str:
    """Return a text. Raise `DataError` for anything else, and for one too long to be read."""
    require(isinstance(value, str), name, value, "a text")
    QUERY.check(len(value), f"`{name}`")
    return str(value)


def check_names(name: str, names: Any) -> list[str]:
    """Return names as a list; a text is one name. Raises `DataError` for what is neither a text nor
    texts, and for a name that is none. A mapping is refused: its values would be ignored.

    >>> check_names("fields", "year"), check_names("fields", ("year", "price"))
    (['year'], ['year', 'price'])
    >>> check_names("fields", None)
    Traceback (most recent call last):
    qkvsearch.errors.DataError: `fields` must be a text or a list of texts, not None
    """
    if isinstance(names, str):
        return [check_text(name, names)]
    is_list = isinstance(names, Iterable) and not isinstance(names, bytes | Mapping)
    require(is_list and getattr(names, "ndim", 1) == 1, name, names, "a text or a list of texts")
    return [check_text(name, each) for each in names]


def check_flag(name: str, value: Any) -> None:
    """Raise `DataError` unless `value` is True or False. A text such as "no" would be true."""
    # NumPy's booleans are no kind of Python's.
    is_flag = isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
    require(is_flag, name, value, "True or False")


def check_path(name: str, value: Any, expected: str = "the path of a file or folder") -> None:
    """Raise `DataError` unless `value` is a text or a `pathlib.Path` that can name a file."""
    require(isinstance(value, str | os.PathLike), name, value, expected)
    path = os.fspath(value)
    is_path = isinstance(path, str) and "\0" not in path
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        is_path = False
    require(is_path, name, value, expected)


def check_texts(name: str, texts: Any) -> list[str]:
    """Return texts as a list. Raises `DataError` for a single text, whose letters would be the
    texts, for a table, and for a value that is no text, such as a missing one.

    >>> check_texts("texts", ["deep sea", None])
    Traceback (most recent call last):
    qkvsearch.errors.DataError: `texts` must be texts, and number 1 is None: "" is an empty one
    """
    expected = 'a list of texts, such as ["deep sea", "red car"]'
    n_axes = getattr(texts, "ndim", 1)
    is_one_value = isinstance(texts, str | bytes | Mapping) or not hasattr(texts, "__iter__")
    require(not is_one_value and n_axes == 1, name, texts, expected)
    listed = list(texts)
    for number, text in enumerate(listed):
        if not isinstance(text, str):
            raise DataError(
                f"`{name}` must be texts, and number {number} is {displayed(text)}: "
                '"" is an empty one'
            )
    return listed


def check_id(name: str, value: Any) -> Any:
    """Return an id or a title: a text in UTF-8, or a finite number. Raises `DataError`."""
    if isinstance(value, str):
        check_text(name, value)
        is_id = not any("\ud800" <= letter <= "\udfff" for letter in value)
        require(is_id, name, value, "a text without lone surrogates")
    else:
        is_id = is_number(value)
        require(is_id, name, value, "an id or a title: a text or a number")
    return value


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's `NotFittedError` before `fit`."""
    with leaving_no_trace("sklearn.utils.validation"):
        from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)


def random_generator(random_state: Any) -> np.random.Generator:
    """Return a NumPy generator for what scikit-learn accepts as `random_state`, and for a generator
    or a seed of any size. Raises `DataError` for anything else.
    """
    import numpy as np

    check_random_state(random_state)
    if is_whole(random_state):
        return np.random.default_rng(int(random_state))
    if isinstance(random_state, np.random.Generator):
        return random_state
    with leaving_no_trace("sklearn.utils"):
        from sklearn.utils import check_random_state as old_generator

    return np.random.default_rng(old_generator(random_state).randint(2**31 - 1))


def model_generator(random_state: Any) -> np.random.Generator:
    """Return the generator that a collaborative model starts from: `random_generator`, but a seed
    of 32 bits seeds NumPy's older generator, whose first number seeds the new one.

    The models of stored builds and the figures of the documentation were learned with these seeds.
    """
    import numpy as np

    check_random_state(random_state)
    if is_whole(random_state) and random_state <= LARGEST_OLD_SEED:
        old = np.random.RandomState(int(random_state))
        return np.random.default_rng(old.randint(2**31 - 1))
    return random_generator(random_state)


def random_seed(random_state: Any) -> int:
    """Return a seed as it is, and draw one for anything else that `random_generator` takes.

    Several steps that start from one seed each need it, and a report names it.
    """
    check_random_state(random_state)
    if is_whole(random_state):
        return int(random_state)
    return int(random_generator(random_state).integers(2**31))


def check_random_state(random_state: Any) -> None:
    """Raise `DataError` unless this is a seed, a generator of NumPy, or None.

    >>> check_random_state(-1)
    Traceback (most recent call last):
    qkvsearch.errors.DataError: `random_state` must be a seed (a whole number, 0 or above), \
a generator of NumPy, or None, not -1
    """
    import numpy as np

    is_seed = is_whole(random_state) and random_state >= 0
    is_generator = isinstance(random_state, np.random.Generator | np.random.RandomState)
    # As in scikit-learn, None and the module are NumPy's global generator.
    is_global = random_state is None or random_state is np.random
    valid = is_seed or is_generator or is_global
    require(valid, "random_state", random_state, SEEDS)
