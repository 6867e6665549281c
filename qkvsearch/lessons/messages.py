"""What a lesson says, in the reader's language, with numbers that were just computed.

The English texts are the keys of the catalogue (gettext); `locale/zh` holds the Chinese ones.
"""

from __future__ import annotations

import gettext
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

LOCALE = Path(__file__).with_name("locale")
DOMAIN = "lessons"
LANGUAGES = ("en", "zh")
# Decimals of a number in a sentence or a matrix; all of them are in JSON.
DECIMALS = 4

_current: ContextVar[gettext.NullTranslations] = ContextVar("_current")


@contextmanager
def language(name: str) -> Iterator[None]:
    """All that is said within is said in this language: "en" or "zh".

    >>> with language("zh"):
    ...     say("weights")
    '权重'
    """
    there = [] if name == "en" else [name]
    token = _current.set(
        gettext.translation(DOMAIN, LOCALE, there) if there else gettext.NullTranslations()
    )
    try:
        yield
    finally:
        _current.reset(token)


def say(message: str, **live: Any) -> str:
    """A message in the language that is spoken, its {names} filled in; numbers are shortened.

    >>> say("weights"), say("The score is {score}.", score=2 / 3)
    ('weights', 'The score is 0.6667.')
    """
    text = _current.get(gettext.NullTranslations()).gettext(message)
    return text.format(**{name: shown(value) for name, value in live.items()}) if live else text


def mark(message: str) -> str:
    """A message that is said later: `say(TITLE)`. The catalogue finds it by this name."""
    return message


def shown(value: Any) -> str:
    """A number as a person reads it, a list of them in brackets, a word as it is.

    >>> shown(2.0), shown(1 / 3), shown(-np.inf), shown([1.5, 2]), shown(6e-06), shown("a")
    ('2', '0.3333', '−∞', '[1.5, 2]', '6.0e-06', 'a')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | np.ndarray):
        return f"[{', '.join(shown(entry) for entry in value)}]"
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if 0 < abs(number) < 10**-DECIMALS / 2:
        return f"{number:.1e}".replace("-", "−", 1) if number < 0 else f"{number:.1e}"
    text = f"{number:.{DECIMALS}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "0") else text.replace("-", "−")
