"""The table of word vectors that comes with an extra: a witness that has not seen the catalog."""

from __future__ import annotations

from functools import cache

from qkvsearch.text.encoders import installed
from qkvsearch.text.languages import ENGLISH
from qkvsearch.text.pretrained.static import StaticEncoder

# The languages in which its vectors say what texts are about.
LANGUAGES = frozenset([ENGLISH])


@cache
def static_table() -> StaticEncoder | None:
    """Return the table, with equal weights; None where it is not installed."""
    return StaticEncoder.from_package() if "static" in installed() else None
