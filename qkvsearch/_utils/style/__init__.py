"""The colours, type and space that all pages share: those of the server, the course and reports."""

from functools import cache
from pathlib import Path

FILES = Path(__file__).parent
TOKENS = "tokens.css"


@cache
def tokens() -> str:
    """Return the style that every page begins with.

    >>> "--unit: 0.25rem" in tokens()
    True
    """
    return (FILES / TOKENS).read_text(encoding="utf-8")
