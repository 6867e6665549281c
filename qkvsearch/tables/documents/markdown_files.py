"""Markdown to a document: its text as it is read, without addresses of links."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from qkvsearch.errors import DataError, need
from qkvsearch.tables.columns.html import plain_text
from qkvsearch.tables.documents.document import (
    LINE_BREAK,
    PARAGRAPH_BREAK,
    Document,
    DocumentFormat,
    joined,
    settled,
)
from qkvsearch.tables.documents.front_matter import without_front_matter

ADDRESS = re.compile(r"\bhttps?://[^\s<>()\[\]]+", re.IGNORECASE)
# Blocks with blank lines around them, unless they are in a list.
PARAGRAPHS = ("heading", "paragraph", "blockquote", "table", "bullet_list", "ordered_list")


def read_markdown(text: str) -> Document:
    """Read Markdown. The first heading is the title, unless the front matter has one."""
    notes: Counter[str] = Counter()
    doubts: list[str] = []
    columns, text = without_front_matter(text, notes, doubts)
    library = need("markdown_it", "markdown", "reading Markdown", error=DataError)
    parser = library.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(text)
    read = joined(_pieces(tokens))
    title = _first_heading(tokens)
    return Document(settled(read), title, columns=columns, notes=notes, doubts=doubts)


def _first_heading(tokens: Sequence[Any]) -> str:
    """Return the text of the first heading that has one, or ""."""
    for token, following in pairwise(tokens):
        if token.type == "heading_open" and (text := joined(_inline(following))):
            return " ".join(text.split())
    return ""


def _pieces(tokens: Sequence[Any]) -> Iterator[str]:
    """Yield the text of blocks, and the breaks between them. Lines of a list follow each other."""
    in_lists = 0
    for token in tokens:
        block, _, side = token.type.rpartition("_")
        if block in ("bullet_list", "ordered_list"):
            in_lists += 1 if side == "open" else -1
        if token.type == "inline":
            yield from _inline(token)
        elif token.type in ("fence", "code_block"):
            yield from (PARAGRAPH_BREAK, token.content, PARAGRAPH_BREAK)
        elif token.type == "html_block":
            yield from (PARAGRAPH_BREAK, plain_text(token.content), PARAGRAPH_BREAK)
        elif block in ("td", "th"):
            yield " "
        elif block in PARAGRAPHS and not in_lists:
            yield PARAGRAPH_BREAK
        else:
            yield LINE_BREAK


def _inline(token: Any) -> Iterator[str]:
    """Yield the text of a paragraph or heading."""
    for child in token.children or ():
        if child.type == "text":
            yield ADDRESS.sub("", child.content)
        elif child.type == "code_inline":
            yield child.content
        elif child.type == "softbreak":
            yield " "
        elif child.type == "hardbreak":
            yield LINE_BREAK
        elif child.type == "image":
            yield ADDRESS.sub("", child.content)
        elif child.type == "html_inline":
            yield LINE_BREAK if child.content.lower().startswith("<br") else ""


MARKDOWN = DocumentFormat(
    name="Markdown",
    suffixes=(".md", ".markdown"),
    notes="keys of the front matter (YAML) are columns; the title is its `title`, else the first "
    "heading; addresses of links are no text; needs `pip install 'qkvsearch[markdown]'`",
    read=read_markdown,
    extra="markdown",
    libraries=("markdown_it", "yaml"),
)
