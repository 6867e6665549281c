"""Text as it may go to a terminal: what would steer it, or hide in it, is shown by its number."""

from __future__ import annotations

import re

# Controls; marks that turn the direction of what follows; ends of lines that are none to us; what
# has no width; halves of a pair. U+200C and U+200D stay, with which Persian and emoji are written,
# and U+200B after letters of Thai, Lao, Burmese and Khmer, which it divides into words.
SOUTHEAST_ASIA = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
UNSEEN = (
    "\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
UNSAFE = re.compile(f"[{UNSEEN}]|(?<![{SOUTHEAST_ASIA}])\u200b")


def printable(text: str) -> str:
    """The text with each such character as JSON writes it; JSON that goes through it is the same
    data. Ends of lines stay.

    >>> printable("red\\x1b[2J apple \\u202egpj.exe\\n")
    'red\\\\u001b[2J apple \\\\u202egpj.exe\\n'
    """
    return UNSAFE.sub(_escaped, text)


def in_one_line(text: str) -> str:
    """`printable`, with ends of lines by their number as well: no text can pass for two.

    >>> in_one_line("apple\\nError: none")
    'apple\\\\nError: none'
    """
    return printable(text).replace("\n", "\\n")


def shorten(text: str, length: int) -> str:
    """Cut a text to at most `length` characters; an ellipsis marks the cut.

    >>> shorten("kettle", 6), shorten("a red kettle", 6)
    ('kettle', 'a red…')
    """
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _escaped(found: re.Match[str]) -> str:
    import json

    return json.dumps(found[0])[1:-1]
