"""HTML pages to a document: their main text, without what surrounds it on every page of a site.

Scripts, styles, navigation, forms, page headers and footers, asides and cookie banners are no part
of it. The <header> of an <article> or of <main> is, since it has the heading. Where nothing else
has text, all but scripts and navigation is kept, and so is a form around most of a page, as ASP.NET
writes it. A form with much text that is left out is counted.
"""

from __future__ import annotations

import re
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

# What is no text of any page.
UNREAD = (
    "head, script, style, noscript, template, svg, canvas, iframe, object, nav, menu, select, "
    "button, [hidden], [role=navigation], [role=menu], [role=menubar], [role=search], "
    "[aria-hidden=true]"
)
# What is beside the main text, if there is one.
ASIDE = (
    "aside, footer, dialog, [role=banner], [role=contentinfo], [role=complementary], "
    "[role=dialog], [role=alertdialog]"
)
MAIN_TEXT = ("article", "main")
# Words among the classes or the id of such an element, where it is a <div>.
NAMES_OF_ASIDES = frozenset(
    "nav navbar navigation menu breadcrumb breadcrumbs mainmenu sitenav topnav "
    "footer site-footer page-footer sidebar cookie cookies".split()
)
IS_COOKIE_BANNER = re.compile(
    r"(?:cookie|consent|gdpr).*(?:banner|bar|box|consent|dialog|law|message|modal|notice|overlay|popup)"
    r"|(?:banner|notice|popup).*(?:cookie|consent|gdpr)|onetrust|cookiebot"
).search
# A form with more than this share of the text of a page is not beside the text, but around it.
SHARE_OF_A_FORM = 0.8
# A form with more than this share of it may have been meant to be read.
MUCH_OF_A_PAGE = 0.2
FORM_WITH_TEXT = "forms with more than a fifth of a page's text left out"
# Blocks that a blank line divides from others; the other blocks of HTML have a line of their own.
PARAGRAPHS = frozenset(
    "p h1 h2 h3 h4 h5 h6 blockquote pre div section article table ul ol dl hr figure main".split()
)


def read_page(text: str) -> Document:
    """Read a page. Its <title> is the title, else its first heading."""
    notes: Counter[str] = Counter()
    doubts: list[str] = []
    columns, text = without_front_matter(text, notes, doubts)
    library = need("selectolax.lexbor", "html", "reading HTML", error=DataError)
    page = library.LexborHTMLParser(text)
    title = _text_of(page.css_first("head title")) or _text_of(page.css_first("h1, h2, h3"))
    for node in page.css(UNREAD):
        node.decompose()
    mains = page.css("main, [role=main]")
    root = mains[0] if len(mains) == 1 and _text_of(mains[0]) else page.body
    read = "" if root is None else _main_text(root, notes)
    return Document(settled(read), title, columns=columns, notes=notes, doubts=doubts)


def _main_text(root: Any, notes: Counter[str]) -> str:
    """Return the text of an element without what is beside the main text.

    Where there is no main text, it is all of it. notes: counts forms with much text, which are
    left out as well.
    """
    everything = joined(_pieces(root))
    for node in [*root.css(ASIDE), *filter(_is_aside, root.css("header, [class], [id]"))]:
        node.decompose()
    n_letters = len(_text_of(root))
    for form in root.css("form"):
        share = len(_text_of(form)) / max(n_letters, 1)
        if share <= SHARE_OF_A_FORM:
            form.decompose()
            if share > MUCH_OF_A_PAGE:
                notes[FORM_WITH_TEXT] += 1
    return joined(_pieces(root)) if _text_of(root) else everything


def _text_of(node: Any) -> str:
    """Return the text of an element in one line."""
    return "" if node is None else " ".join(joined(_pieces(node)).split())


def _is_aside(node: Any) -> bool:
    """Return whether an element is a header of the page, or is beside its text by its name."""
    if node.tag == "header":
        return not _is_in_main_text(node)
    if node.tag in ("html", "body", *MAIN_TEXT):
        return False
    attributes = node.attributes
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower().split()
    return not NAMES_OF_ASIDES.isdisjoint(names) or any(map(IS_COOKIE_BANNER, names))


def _is_in_main_text(node: Any) -> bool:
    while (node := node.parent) is not None:
        if node.tag in MAIN_TEXT or node.attributes.get("role") == "main":
            return True
    return False


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
    notes="the title is its `<title>`, else the first heading; only the main text is "
    "searched: scripts, navigation, forms, `<aside>`, `<footer>`, cookie banners, and a `<header>` "
    "outside `<article>` and `<main>` are no text; needs `pip install 'qkvsearch[html]'`",
    read=read_page,
    extra="html",
    libraries=("selectolax.lexbor",),
)
