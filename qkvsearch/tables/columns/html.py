"""Texts with HTML to plain text."""

from __future__ import annotations

import html
import json
import re
from html.entities import html5
from pathlib import Path

import pandas as pd

# The tags that divide a text, those that do not, and the attributes without a value.
BLOCKS, INLINE, FLAGS = map(
    frozenset, json.loads(Path(__file__).with_name("html_tags.json").read_text("utf-8")).values()
)
TAGS = BLOCKS | INLINE
MAY_BE_HTML = r"<[A-Za-z/!?]|&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);"
ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|([A-Za-z][A-Za-z0-9]*));")
CLOSING = re.compile(rf"</(?:{'|'.join(sorted(TAGS))})\s*>|<br\s*/?>", re.IGNORECASE)
MAX_PASSES = 3  # some texts were escaped twice
# Comments, sections, scripts, declarations and tags. None contains its own beginning, and no
# repetition gives back what it took (`+` after it): the time is linear in any text.
REST = r"""(?:[^<>"']++|"[^"<]*+"|'[^'<]*+'|["'])*+"""
MARKUP = re.compile(
    r"<!--(?:(?!<!--|-->).)*+-->"
    r"|<!\[CDATA\[(?P<section>(?:(?!<!\[CDATA\[|\]\]>).)*+)\]\]>"
    rf"|<(?P<unseen>script|style)\b{REST}>(?:(?!</?(?P=unseen)).)*+</(?P=unseen)\s*+>"
    r"|<[!?][^<>]*+>"
    rf"""|<(?P<close>/?)(?P<name>[a-z][^\s/<>"']*+)(?P<attributes>{REST})>""",
    re.IGNORECASE | re.DOTALL,
)
ATTRIBUTE = re.compile(r"""([^\s=/"']++)(\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"']*+))?""")


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
    bare = MARKUP.sub(_without_markup, text)
    has_tags = bare != text
    bare = ENTITY.sub(_unescaped, bare).replace("\xa0", " ")
    return " ".join(bare.split()) if has_tags else bare.strip()


def _unescaped(match: re.Match[str]) -> str:
    return html.unescape(match[0]) if _is_entity(match) else match[0]


def _without_markup(match: re.Match[str]) -> str:
    """Return what remains of markup: nothing, a space for a block, or an unknown tag as it is."""
    if match["section"] is not None:
        return str(match["section"])
    name = (match["unseen"] or match["name"] or "").lower()
    if match["name"]:
        attributes = () if match["close"] else ATTRIBUTE.findall(match["attributes"])
        is_text = any(not value and name.lower() not in FLAGS for name, value in attributes)
        if name not in TAGS or is_text:
            return match[0]
    return " " if name in BLOCKS else ""
