"""Limits of a question that somebody else asks: over HTTP, or an agent."""

from math import isfinite
from typing import Any

from qkvsearch.tables.ids import id_text

# Characters of a text, and of a condition; how far a listing goes.
MAX_LENGTH, MAX_OFFSET = 2000, 2**31 - 1
# Items that one question names, and hits that it may ask for.
MAX_NAMES, MAX_HITS = 1000, 100
# The last rank whose hit is explained: all hits before it are ranked.
MAX_RANK = 100_000


def sent_id(value: Any) -> Any:
    """Return the id that a number of JSON is, as in tables: 7.0 is 7, and 7.5 is a text. All else
    stays as it is.

    >>> sent_id(7.0), sent_id(7.5), sent_id("7.0")
    (7, '7.5', '7.0')
    """
    if type(value) is float and isfinite(value):
        return int(value) if value.is_integer() else id_text(value)
    return value
