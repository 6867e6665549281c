"""Paragraphs for the terminal: marks of emphasis become styles, and lines break between words, or
between Chinese characters but never before a comma.
"""

import re
from collections.abc import Iterator

from rich.cells import cell_len, chop_cells
from rich.text import Text

from qkvsearch.terminal import printable

# No paragraph is wider, however wide the terminal.
MAX_COLUMNS = 80
MARKED = re.compile(r"\*(?P<emphasis>\S(?:[^*\n]*\S)?)\*|`(?P<code>[^`\n]+)`")
STYLES = {"emphasis": "italic", "code": "bold"}
# Characters that take two columns and may stand alone on a line.
WIDE = "\u1100-\u115f\u2e80-\u2fff\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\U0001f300-\U0003fffd"
OPENING, CLOSING = "（「『《〈【〔“‘", "，。、；：！？）」』》〉】〕”’…％"
ATOM = re.compile(
    rf"\n|[^\S\n]+|[{OPENING}]*(?:[{WIDE}]|[^\s{WIDE}{OPENING}{CLOSING}]+)[{CLOSING}]*"
    rf"|[{OPENING}{CLOSING}]+"
)


def marked(text: str) -> Text:
    """Return *emphasis* in italics and `code` in bold, without their marks."""
    text, styled, end = printable(text), Text(), 0
    for match in MARKED.finditer(text):
        name = match.lastgroup
        assert name is not None
        styled.append(text[end : match.start()])
        styled.append(match[name], style=STYLES[name])
        end = match.end()
    styled.append(text[end:])
    return styled


def wrapped(text: Text, width: int, indent: int = 0) -> Text:
    """Wrap the text in lines of `width` columns at most, those after the first indented.

    >>> from rich.text import Text
    >>> wrapped(Text("a query, 一个查询，一个键"), 12, indent=2).plain.split(chr(10))
    ['a query, 一', '  个查询，一', '  个键']
    """
    lines = [text[start:end] for start, end in _lines(text.plain, width, indent)]
    for line in lines:
        line.rstrip()
    return Text("\n" + " " * indent).join(lines)


def _lines(plain: str, width: int, indent: int) -> Iterator[tuple[int, int]]:
    """Yield where each line begins and ends."""
    start = 0  # of the line
    room = width
    for begin, end in _atoms(plain, max(width - indent, 2)):
        atom = plain[begin:end]
        if atom == "\n":
            yield start, begin
            start, room = end, width - indent
        elif atom.isspace():
            room -= end - begin
        else:
            needed = cell_len(atom)
            if needed > room and plain[start:begin].strip():
                yield start, begin
                start, room = begin, width - indent
            room -= needed
    yield start, len(plain)


def _atoms(plain: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield what stays on one line; cut what is wider than a line."""
    for match in ATOM.finditer(plain):
        begin = match.start()
        pieces = [match[0]] if cell_len(match[0]) <= width else chop_cells(match[0], width)
        for piece in pieces:
            yield begin, begin + len(piece)
            begin += len(piece)
