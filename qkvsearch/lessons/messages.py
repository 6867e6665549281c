"""What a lesson says, in the reader's language, with numbers that were just computed.

The English texts are the keys of the catalog (gettext); `locale/zh` holds the Chinese ones.
"""

import gettext
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

LOCALE = Path(__file__).with_name("locale")
DOMAIN = "lessons"
LANGUAGES = ("en", "zh")
# Decimals of a number in a sentence or a matrix; all of them are in JSON.
DECIMALS = 4
# From here on a number is written with an exponent: 22 digits are no number to read.
LARGE = 1e21

_spoken: ContextVar[str] = ContextVar("_spoken", default="en")


@contextmanager
def language(name: str) -> Iterator[None]:
    """All that is said within is said in this language: "en" or "zh".

    >>> with language("zh"):
    ...     say("weights")
    '权重'
    """
    _translations(name)  # raises for a language that there is not
    token = _spoken.set(name)
    try:
        yield
    finally:
        _spoken.reset(token)


def spoken() -> str:
    """The name of the language that is spoken."""
    return _spoken.get()


@cache
def _translations(name: str) -> gettext.NullTranslations:
    if name == "en":
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, LOCALE, [name])


def say(message: str, **live: Any) -> str:
    """A message in the language that is spoken, its {names} filled in; numbers are shortened.

    >>> say("weights"), say("The score is {score}.", score=2 / 3)
    ('weights', 'The score is 0.6667.')
    """
    text = _translations(spoken()).gettext(message)
    return text.format_map(_Shown(live)) if live else text


class _Shown(dict[str, Any]):
    """Values that a message may name, each written when it does."""

    def __getitem__(self, name: str) -> str:
        return shown(super().__getitem__(name))


def mark(message: str) -> str:
    """A message that is said later: `say(TITLE)`. The catalog finds it by this name."""
    return message


def marks(*messages: str) -> tuple[str, ...]:
    """Several that are said later: `said(NAMES)`."""
    return messages


def said(messages: Iterable[str]) -> list[str]:
    """Messages that were marked, in the language that is spoken."""
    return [say(message) for message in messages]


def shown(value: Any) -> str:
    """A number as a person reads it, a list of them in brackets, a word as it is.

    What lies in the middle is rounded away from 0, as at school and in the page's script.

    >>> shown(2.0), shown(1 / 3), shown(-np.inf), shown([1.5, 2]), shown(6e-06), shown("a")
    ('2', '0.3333', '−∞', '[1.5, 2]', '6.0e-06', 'a')
    >>> shown(0.03125), shown(-0.03125), shown(-1e300)
    ('0.0313', '−0.0313', '−1e+300')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | np.ndarray):
        are_words = all(isinstance(entry, str) for entry in value)
        return f"[{(say(', ') if are_words else ', ').join(map(shown, value))}]"
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if 0 < abs(number) < 10**-DECIMALS / 2:
        return f"{number:.1e}".replace("-", "−", 1) if number < 0 else f"{number:.1e}"
    if abs(number) >= LARGE:
        return repr(number).replace("-", "−")
    rounded = Decimal(number).quantize(Decimal(1).scaleb(-DECIMALS), ROUND_HALF_UP)
    text = f"{rounded:f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "0") else text.replace("-", "−")


def plain(value: Any) -> Any:
    """Numbers and words as JSON has them, arrays as lists of them, by name where they have some.

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
