"""What a lesson says, in the reader's language, with numbers that were just computed.

The English texts are the keys of the catalogs (gettext), one for each translation in `locale`.
"""

import gettext
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch._utils.spoken import ORIGINAL

LOCALE = Path(__file__).with_name("locale")
DOMAIN = "lessons"
# Decimals of a number in a sentence or a matrix unless asked for others; JSON has all of them.
DIGITS = 2
# A small number has as many digits that count, up to so many places further; then it is nearly 0.
FURTHER = 2
NEARLY_0 = "≈0"
# The digits of a power's exponent.
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
# Half a hundredth may come as a little less, from one sum, and as a little more from another: a
# number below `EXACT` is raised by this factor before it is rounded.
ROUNDING = 1 + 1e-12
EXACT = 1e6
# Of the last decimal, so much is the rounding of a computer's sums.
UNSEEN = 1e-4
# From here on a number is written with an exponent: 22 digits are no number to read.
LARGE = 1e21

_spoken: ContextVar[str] = ContextVar("_spoken", default=ORIGINAL)
_digits: ContextVar[int] = ContextVar("_digits", default=DIGITS)


@contextmanager
def language(name: str) -> Iterator[None]:
    """Use a language, one of `LANGUAGES`, for all messages in this context.

    >>> with language("zh"):
    ...     say("weights")
    '权重'
    """
    _translations(name)  # raises FileNotFoundError for a language without a catalog
    token = _spoken.set(name)
    try:
        yield
    finally:
        _spoken.reset(token)


def spoken() -> str:
    """Return the current language, one of `LANGUAGES`."""
    return _spoken.get()


@contextmanager
def decimals(n: int) -> Iterator[None]:
    """Write the numbers in this context with n decimals.

    >>> with decimals(4):
    ...     shown(1 / 3)
    '0.3333'
    """
    token = _digits.set(n)
    try:
        yield
    finally:
        _digits.reset(token)


def digits() -> int:
    """Return the current number of decimals."""
    return _digits.get()


@cache
def _translations(name: str) -> gettext.NullTranslations:
    if name == ORIGINAL:
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, LOCALE, [name])


def say(message: str, **live: Any) -> str:
    """Translate a message into the current language and fill its {names}; shorten numbers.

    >>> say("weights"), say("The score is {score}.", score=2 / 3)
    ('weights', 'The score is 0.67.')
    """
    text = _translations(spoken()).gettext(message)
    if not live:
        return text
    return text.format(**{name: shown(value) for name, value in live.items()})


def mark(message: str) -> str:
    """Mark a message that `say` translates later, so that the catalog includes it."""
    return message


def shown(value: Any) -> str:
    """Write a number as a person reads it, a list in brackets, a word as it is.

    What lies in the middle is rounded away from 0, as at school and in the page's script. A number
    below 1 has as many digits that count as others have decimals; one too small for that is ≈0.
    Zeros at the end are left out of what is not rounded: 4.00 says that there are more decimals.

    >>> shown(2.0), shown(1 / 3), shown(-np.inf), shown([1.5, 2]), shown(6e-06), shown("a")
    ('2', '0.33', '−∞', '[1.5, 2]', '≈0', 'a')
    >>> shown(3.998), shown(0.1003), shown(0.1), shown(0.1 + 0.2)
    ('4.00', '0.10', '0.1', '0.3')
    >>> shown(0.03125), shown(-0.03125), shown(0.00142), shown(-1e300)
    ('0.031', '−0.031', '0.0014', '−1e+300')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | np.ndarray):
        are_words = all(isinstance(entry, str) for entry in value)
        comma = say(", ") if are_words else ", "
        return f"[{comma.join(map(shown, value))}]"
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if abs(number) >= LARGE:
        return repr(number).replace("-", "−")
    if number == 0:
        return "0"
    # What lies in the middle but for a rounding of sums lies in the middle.
    exact = Decimal(number * ROUNDING if abs(number) < EXACT else number)
    # Where its first digit that counts stands; rounding does not move it for what is shown.
    first = -exact.adjusted()
    n = digits()
    places = min(max(n, n - 1 + first), n + FURTHER)
    rounded = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    if not rounded:
        return NEARLY_0
    text = f"{rounded:f}"
    is_rounded = abs(float(rounded) - number) > UNSEEN * 10.0**-places
    if "." in text and not is_rounded:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def decimals_of(array: np.ndarray) -> int:
    """Return how many decimals numbers of one kind are all written with: as many as the one among
    them that has most, at most `digits()`.

    >>> decimals_of(np.array([4.0, 5.9])), decimals_of(np.array([1, -np.inf]))
    (1, 0)
    """
    finite = array[np.isfinite(array)]
    n = digits()
    written = (with_decimals(float(entry), n).rstrip("0") for entry in finite)
    return max((len(text.partition(".")[2]) for text in written if "≈" not in text), default=0)


def are_exact(array: np.ndarray) -> bool:
    """Return whether `digits()` decimals round some of the numbers, and one more rounds none.

    >>> are_exact(np.array([0.5, 0.125])), are_exact(np.array([0.5])), are_exact(np.array([1 / 3]))
    (True, False, False)
    """
    n = digits()
    rounds, leaves = (
        not np.allclose(array, np.round(array, decimals), rtol=0, atol=UNSEEN * 10.0**-decimals)
        for decimals in (n, n + 1)
    )
    return rounds and not leaves


def with_decimals(number: float, decimals: int) -> str:
    """Write a number with so many decimals. One too small for that is ≈0, and 0 is nothing at all.

    >>> with_decimals(4.0, 2), with_decimals(0.004, 2), with_decimals(0.0, 2)
    ('4.00', '≈0', '0')
    """
    if number == 0 or not math.isfinite(number) or abs(number) >= EXACT:
        return shown(number)
    exact = Decimal(number * ROUNDING)
    rounded = exact.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    return f"{rounded:f}".replace("-", "−") if rounded else NEARLY_0


def shown_power(power: float, most: float) -> str:
    """Write a power of e among others: a whole number where the largest, `most`, has three digits,
    and from a million on with a power of 10. A computer holds none above 10³⁰⁸.

    >>> shown_power(7.389, 9), shown_power(13095.17, 20000), shown_power(2.5e10, 1e11)
    ('7.39', '13095', '2.50·10¹⁰')
    """
    if math.isinf(power):
        return ">10³⁰⁸"
    if power >= EXACT:
        size, exponent = f"{power:.2e}".split("e")
        return f"{size}·10{str(int(exponent)).translate(RAISED)}"
    return with_decimals(power, 0 if most >= 100 and power >= 1 else digits())


def plain(value: Any) -> Any:
    """Convert arrays, numbers and words, also in lists and mappings, to what JSON can hold.

    JSON has no infinity and no NaN; "inf", "-inf" and "nan" stand for them, and `float` reads them.

    >>> plain(np.array([1.0, -np.inf])), plain(np.int64(3)), plain("a")
    ([1.0, '-inf'], 3, 'a')
    """
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {name: plain(entry) for name, entry in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
