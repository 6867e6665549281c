"""Plain text to a document."""

from __future__ import annotations

from collections import Counter

from qkvsearch.tables.documents.document import Document, DocumentFormat, clean, settled
from qkvsearch.tables.documents.front_matter import without_front_matter


def read_plain_text(text: str) -> Document:
    """Read a text as it is; a line between blank ones stays a paragraph of its own."""
    notes: Counter[str] = Counter()
    doubts: list[str] = []
    columns, text = without_front_matter(text, notes, doubts)
    return Document(settled(clean(text)), columns=columns, notes=notes, doubts=doubts)


PLAIN_TEXT = DocumentFormat(
    name="plain text",
    suffixes=(".txt",),
    notes="a file that is named itself is a table if its header has a usual name of a column, or a "
    "delimiter without a blank behind it that most lines below have as well, unless it ends as a "
    "sentence; or if an option names a column or a delimiter; several in a folder are tables if "
    "they begin with the same line and have a delimiter in it",
    read=read_plain_text,
)
