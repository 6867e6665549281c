"""Text that is safe for a terminal: control and invisible characters are escaped."""

import re
from collections.abc import Sequence
from typing import Any

# Control characters, direction marks, Unicode line separators, invisible characters and lone
# surrogates. Allowed are U+200C and U+200D, which Persian and emoji need, and U+200B after letters
# of Thai, Lao, Burmese and Khmer, where it separates words.
SOUTHEAST_ASIA = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
INVISIBLE = (
    "\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
UNSAFE = re.compile(f"[{INVISIBLE}]|(?<![{SOUTHEAST_ASIA}])\u200b")


def printable(text: str) -> str:
    """Escape unsafe characters as in JSON, so that JSON text stays the same data; keep newlines.

    >>> printable("red\\x1b[2J apple \\u202egpj.exe\\n")
    'red\\\\u001b[2J apple \\\\u202egpj.exe\\n'
    """
    return UNSAFE.sub(_escaped, text)


def in_one_line(text: str) -> str:
    """Escape unsafe characters and newlines, so that one message cannot look like two.

    >>> in_one_line("apple\\nError: none")
    'apple\\\\nError: none'
    """
    return printable(text).replace("\n", "\\n")


def shorten(text: str, length: int = 80) -> str:
    """Cut a text to at most `length` characters; an ellipsis marks the cut.

    >>> shorten("kettle", 6), shorten("a red kettle", 6)
    ('kettle', 'a red…')
    """
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _escaped(match: re.Match[str]) -> str:
    import json

    return json.dumps(match[0])[1:-1]


def html_table(
    caption: str, names: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str]
) -> str:
    """Return a table with notes below it, as a notebook displays it; None is an empty cell."""
    from html import escape

    def cells(tag: str, values: Sequence[Any]) -> str:
        texts = ("" if value is None else escape(in_one_line(str(value))) for value in values)
        return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>"

    body = "".join(cells("td", row) for row in rows)
    below = "".join(f"<p>{escape(in_one_line(note))}</p>" for note in notes)
    head = f"<table><caption>{caption}</caption><thead>{cells('th', names)}</thead>"
    return f"{head}<tbody>{body}</tbody></table>{below}"
