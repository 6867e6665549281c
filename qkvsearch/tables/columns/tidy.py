"""Cells of text in one form: without spaces around them, composed, with one kind of space."""

from __future__ import annotations

import pandas as pd

from qkvsearch._utils.folding import composed
from qkvsearch.tables.ids import BLANK

# Spaces at which a line does not break look like any other.
NO_BREAK = "\u00a0\u2007\u202f"


def tidy(text: str) -> str:
    """Return a text without what no reader sees, by which equal cells would differ.

    >>> tidy(" dark\u00a0red "), tidy("gru\u0308n") == "gr\u00fcn"
    ('dark red', True)
    """
    if text.isascii():
        return text.strip()
    for space in NO_BREAK:  # `str.translate` takes ten times as long
        text = text.replace(space, " ")
    return composed(text.strip(BLANK))


def tidied(texts: pd.Series) -> pd.Series:
    """Return texts tidied; the same object where none changes."""
    tidy_texts = [tidy(text) for text in texts]
    if tidy_texts == texts.tolist():
        return texts
    return pd.Series(tidy_texts, index=texts.index, dtype=object)
