"""Lines that fit into the terminal: broken between words, or between Chinese characters but never
before a comma.

Texts are strings, or texts of Rich where they have styles. Rich is a slow import, so that strings
of ASCII do without it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.text import Text

# A text with styles or without.
AnyText = TypeVar("AnyText", "str", "Text", "str | Text")

# The longest lines of sentences.
TEXT_WIDTH = 80
# Characters that take two columns and may stand alone on a line.
WIDE = "\u1100-\u115f\u2e80-\u2fff\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\U0001f300-\U0003fffd"
OPENING, CLOSING = "（「『《〈【〔“‘", "，。、；：！？）」』》〉】〕”’…％"
# What is never broken, unless it is wider than a line. It takes milliseconds to compile, which `re`
# does when the first line is wrapped, and once.
ATOM = (
    rf"\n|[^\S\n]+|[{OPENING}]*(?:[{WIDE}]|[^\s{WIDE}{OPENING}{CLOSING}]+)[{CLOSING}]*"
    rf"|[{OPENING}{CLOSING}]+"
)


def filled(sentence: str) -> str:
    """Wrap a sentence in lines that people can read and the window has room for."""
    return wrapped(sentence, min(TEXT_WIDTH, terminal_width()))


def terminal_width() -> int:
    """Return the columns of the terminal that stdout is, or 80."""
    return shutil.get_terminal_size((80, 24)).columns


def cell_width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut_to(text: str, width: int) -> str:
    """Cut a text that takes more columns; an ellipsis marks the cut.

    >>> cut_to("kettle", 6), cut_to("a red kettle", 6), cut_to("注意力机制", 6)
    ('kettle', 'a red…', '注意…')
    """
    if cell_width(text) <= width:
        return text
    from rich.cells import set_cell_size

    return f"{set_cell_size(text, width - 1).rstrip()}…"


def wrapped(text: AnyText, width: int, indent: int = 0) -> AnyText:
    """Wrap the text in lines of `width` columns at most, those after the first indented.

    >>> wrapped("a query, 一个查询，一个键", 12, indent=2).split(chr(10))
    ['a query, 一', '  个查询，一', '  个键']
    """
    separator = "\n" + " " * indent
    if isinstance(text, str):
        return separator.join(wrapped_lines(text, width, indent))
    from rich.text import Text

    return Text(separator).join(wrapped_lines(text, width, indent))


def wrapped_lines(text: AnyText, width: int, indent: int = 0) -> list[AnyText]:
    """Return the lines of `wrapped`, without the indent."""
    plain = text if isinstance(text, str) else text.plain
    return [text[start:end] for start, end in _lines(plain, width, indent)]


def unbroken(text: str) -> list[str]:
    """Return the words, the Chinese characters and the spaces that stay on one line each."""
    return re.findall(ATOM, text)


def _lines(plain: str, width: int, indent: int) -> Iterator[tuple[int, int]]:
    """Yield where each line begins and ends, without the spaces at its end."""
    if "\n" not in plain and cell_width(plain) <= width:
        yield _without_spaces(plain, 0, len(plain))
        return
    start = 0  # of the line
    room = width
    for begin, end in _atoms(plain, max(width - indent, 2)):
        atom = plain[begin:end]
        if atom == "\n":
            yield _without_spaces(plain, start, begin)
            start, room = end, width - indent
        elif atom.isspace():
            room -= end - begin
        else:
            needed = cell_width(atom)
            if needed > room and plain[start:begin].strip():
                yield _without_spaces(plain, start, begin)
                start, room = begin, width - indent
            room -= needed
    yield _without_spaces(plain, start, len(plain))


def _without_spaces(plain: str, start: int, end: int) -> tuple[int, int]:
    return start, start + len(plain[start:end].rstrip())


def _atoms(plain: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield what stays on one line; cut what is wider than a line."""
    for match in re.finditer(ATOM, plain):
        begin = match.start()
        for piece in _chopped(match[0], width):
            yield begin, begin + len(piece)
            begin += len(piece)


def _chopped(atom: str, width: int) -> list[str]:
    if cell_width(atom) <= width:
        return [atom]
    from rich.cells import chop_cells

    return chop_cells(atom, width)
