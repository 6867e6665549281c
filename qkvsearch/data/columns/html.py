"""Texts with HTML to plain text."""

from __future__ import annotations

import html
import json
import re
from html.entities import html5
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd

# The tags that divide a text, those that do not, and the attributes without a value.
BLOCKS, INLINE, FLAGS = map(
    frozenset, json.loads(Path(__file__).with_name("html_tags.json").read_text("utf-8")).values()
)
TAGS = BLOCKS | INLINE
UNSEEN = "script", "style"
MAY_BE_HTML = r"<[A-Za-z/!?]|&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);"
ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|([A-Za-z][A-Za-z0-9]*));")
CLOSING = re.compile(rf"</(?:{'|'.join(sorted(TAGS))})\s*>|<br\s*/?>", re.IGNORECASE)
MAX_PASSES = 3  # some texts were escaped twice


def without_html(texts: pd.Series) -> pd.Series:
    """Return texts without HTML. Most have none and are looked at only once."""
    may_be = texts.str.contains(MAY_BE_HTML, regex=True).to_numpy(bool)
    if not may_be.any():
        return texts
    return texts.where(~may_be, texts[may_be].map(plain_text))


def plain_text(text: str) -> str:
    """Return a text without tags and entities; what only looks like them stays.

    >>> plain_text("<p>Rock&nbsp;&amp; roll</p><ul><li>AT&T</li></ul>")
    'Rock & roll AT&T'
    >>> plain_text("C++ <vector>, a < b and <3")
    'C++ <vector>, a < b and <3'
    """
    for _ in range(MAX_PASSES):
        text = _without_tags(text)
        if not CLOSING.search(text) and not any(map(_is_entity, ENTITY.finditer(text))):
            break
    return text


def _is_entity(match: re.Match[str]) -> bool:
    return match[1] is None or f"{match[1]};" in html5


def _without_tags(text: str) -> str:
    # The parser also knows entities without a semicolon, and finds them in &copy=1 of an address.
    escaped = _escape_others(text)
    reader = _Reader(escaped)
    reader.feed(escaped)
    reader.close()
    read = "".join(reader.parts).replace("\xa0", " ")
    if reader.has_tags:
        return " ".join(read.split())
    return read.strip()


def _escape_others(text: str) -> str:
    pieces, end = [], 0
    for match in filter(_is_entity, ENTITY.finditer(text)):
        pieces += [text[end : match.start()].replace("&", "&amp;"), match[0]]
        end = match.end()
    return "".join([*pieces, text[end:].replace("&", "&amp;")])


class _Reader(HTMLParser):
    """A parser that collects the text between known tags; unknown tags are text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.has_tags = False
        self._unseen = ""
        self._closed = {tag for tag in UNSEEN if f"</{tag}" in text.lower()}

    def set_cdata_mode(self, elem: str, **options: Any) -> None:
        if elem in self._closed:  # the parser would take all that follows for a script
            super().set_cdata_mode(elem, **options)

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:  # some versions say so that it is no section
            self.handle_data("<![")
            return i + 3

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS or any(value is None and name not in FLAGS for name, value in attrs):
            self._text(html.unescape(self.get_starttag_text() or ""))
            return
        self._tag(tag)
        if tag in self._closed:
            self._unseen = tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag not in TAGS:
            self._text(f"</{tag}>")
            return
        if tag == self._unseen:
            self._unseen = ""
        self._tag(tag)

    def handle_data(self, data: str) -> None:
        self._text(data)

    def handle_comment(self, data: str) -> None:
        self.has_tags = True

    def handle_decl(self, decl: str) -> None:
        self.has_tags = True

    def handle_pi(self, data: str) -> None:
        self.has_tags = True

    def unknown_decl(self, data: str) -> None:
        self.has_tags = True
        self._text(data.removeprefix("CDATA["))

    def _tag(self, tag: str) -> None:
        self.has_tags = True
        if tag in BLOCKS:
            self.parts.append(" ")

    def _text(self, text: str) -> None:
        if not self._unseen:
            self.parts.append(text)
