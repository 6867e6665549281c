"""HTML pages to a document: what a reader reads, without scripts, styles and navigation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from qkvsearch.errors import DataError, need
from qkvsearch.tables.columns.html import BLOCKS
from qkvsearch.tables.documents.document import (
    LINE_BREAK,
    PARAGRAPH_BREAK,
    Document,
    DocumentFormat,
    joined,
    settled,
)
from qkvsearch.tables.documents.front_matter import without_front_matter

# What is no text of the page.
UNREAD = (
    "head, script, style, noscript, template, svg, canvas, iframe, object, nav, menu, select, "
    "button, [hidden], [role=navigation], [role=menu], [role=menubar], [role=search], "
    "[aria-hidden=true]"
)
# Words among the classes or the id of an element with navigation, where there is no <nav>.
NAVIGATION = frozenset(
    "nav navbar navigation menu breadcrumb breadcrumbs mainmenu sitenav topnav".split()
)
# Blocks that a blank line divides from others; the other blocks of HTML have a line of their own.
PARAGRAPHS = frozenset(
    "p h1 h2 h3 h4 h5 h6 blockquote pre div section article table ul ol dl hr figure main".split()
)


def read_page(text: str) -> Document:
    """Read a page. Its <title> is the title, else its first heading."""
    notes: Counter[str] = Counter()
    columns, text = without_front_matter(text, notes)
    library = need("selectolax.lexbor", "html", "reading HTML", error=DataError)
    page = library.LexborHTMLParser(text)
    title = _text_of(page.css_first("head title")) or _text_of(page.css_first("h1, h2, h3"))
    for node in [*page.css(UNREAD), *filter(_is_navigation, page.css("[class], [id]"))]:
        node.decompose()
    mains = page.css("main, [role=main]")
    root = mains[0] if len(mains) == 1 and _text_of(mains[0]) else page.body
    read = "" if root is None else joined(_pieces(root))
    return Document(settled(read), title, columns=columns, notes=notes)


def _text_of(node: Any) -> str:
    """Return the text of an element in one line."""
    return "" if node is None else " ".join(joined(_pieces(node)).split())


def _is_navigation(node: Any) -> bool:
    attributes = node.attributes
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower().split()
    return not NAVIGATION.isdisjoint(names) and node.tag not in ("html", "body", "main", "article")


def _pieces(root: Any) -> Iterator[str]:
    """Yield the text of an element and the breaks between its blocks, without recursion."""
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield node
        elif node.tag == "-text":
            yield " ".join(node.text_content.split("\n"))
        else:
            around = _break(node.tag)
            waiting.append(around)
            waiting.extend(reversed(list(node.iter(include_text=True))))
            yield around


def _break(tag: str | None) -> str:
    if tag in PARAGRAPHS:
        return PARAGRAPH_BREAK
    if tag in ("td", "th"):
        return " "
    return LINE_BREAK if tag in BLOCKS else ""


PAGES = DocumentFormat(
    name="HTML page",
    suffixes=(".html", ".htm", ".xhtml"),
    notes="the title is its `<title>`, else the first heading; scripts, styles and navigation are "
    "no text; needs `pip install 'qkvsearch[html]'`",
    read=read_page,
    extra="html",
    libraries=("selectolax.lexbor",),
)
