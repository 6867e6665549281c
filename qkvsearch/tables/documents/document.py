"""What a document is: the text of one file, and how the files of a format are read."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from qkvsearch.errors import DataError, need
from qkvsearch.tables.columns.html import MAY_BE_HTML, plain_text
from qkvsearch.tables.ids import BLANK

# What becomes one space: several, other white space than a line break, and invisible marks.
OTHER_SPACES = re.escape(BLANK.replace("\n", "").replace(" ", ""))
SPACES = re.compile(f" *[{OTHER_SPACES}][{OTHER_SPACES} ]*|  +")
# What is neither text nor a line break.
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
MANY_BREAKS = re.compile(r"\n{3,}")
# What readers write between two lines, and between two paragraphs, for `joined`.
LINE_BREAK, PARAGRAPH_BREAK = "\x02", "\x03"
BREAKS = re.compile(rf"\s*[{LINE_BREAK}{PARAGRAPH_BREAK}][\s{LINE_BREAK}{PARAGRAPH_BREAK}]*")
# Where a tag or an entity may begin.
MARKUP = re.compile(r"<(?=[A-Za-z/!?])|&(?=[#A-Za-z])")


class Time(NamedTuple):
    """When a part of a text is said. offset: where it begins, in characters. Else in seconds."""

    offset: int
    start: float
    end: float


@dataclass(frozen=True)
class Document:
    """What is in one file.

    text: clean, so that storing it changes nothing. title: as the file names it, or "". times: when
    the parts of the text are said. columns: the values of the front matter by their keys. notes:
    what was left out or guessed, and how often. doubts: what to warn of, for the file's name.
    """

    text: str
    title: str = ""
    times: tuple[Time, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    doubts: Sequence[str] = ()


@dataclass(frozen=True)
class DocumentFormat:
    """A format of files with one text each.

    suffixes: of the files' names. notes: for the documentation. read: reads the text of a file;
    raises `DataError` without the name of the file. extra: the extra of this package that is
    needed, and its libraries.
    """

    name: str
    suffixes: tuple[str, ...]
    notes: str
    read: Callable[[str], Document]
    extra: str = ""
    libraries: tuple[str, ...] = ()

    @property
    def recognized_by(self) -> str:
        return ", ".join(f"`{suffix}`" for suffix in self.suffixes)

    def require_libraries(self, file: str) -> None:
        """Raise `DataError` that names the extra, where a library is missing."""
        for library in self.libraries:
            need(library, self.extra, f"{file}: reading {self.name}", error=DataError)


def clean(text: str) -> str:
    """Return a text in composed letters, with single spaces, and no more than one blank line.

    >>> clean("  Cafe\\u0301\\xa0 open \\r\\n\\n\\n\\n now ")
    'Café open\\n\\nnow'
    """
    lines = in_plain_signs(text).split("\n")
    return MANY_BREAKS.sub("\n\n", "\n".join(line.strip() for line in lines)).strip()


def in_plain_signs(text: str) -> str:
    """Return a text in composed letters, all white space as single spaces and line breaks."""
    text = CONTROLS.sub("", LINE_ENDS.sub("\n", text))
    return SPACES.sub(" ", unicodedata.normalize("NFC", text))


def joined(pieces: Iterable[str]) -> str:
    """Return a clean text of pieces, with one break where blocks within blocks end.

    >>> joined(["Tides", PARAGRAPH_BREAK, LINE_BREAK, "one", LINE_BREAK, LINE_BREAK, "two"])
    'Tides\\n\\none\\ntwo'
    """

    def broken(match: re.Match[str]) -> str:
        return "\n\n" if PARAGRAPH_BREAK in match[0] else "\n"

    return clean(BREAKS.sub(broken, "".join(pieces)))


def settled(text: str) -> str:
    """Return a clean text in which nothing is taken for HTML when it is stored.

    Tags and entities that are still in it are meant to be read, such as those of a lesson on HTML.

    >>> settled("A <b> is bold, and x < y")
    'A < b> is bold, and x < y'
    """
    if not re.search(MAY_BE_HTML, text) or plain_text(text) == text:
        return text
    return MARKUP.sub(r"\g<0> ", text)
