"""The style that all pages in one file share."""

from __future__ import annotations

from pathlib import Path

from qkvsearch._utils.style import tokens

BASE = Path(__file__).with_suffix(".css")


def with_base(style: str) -> str:
    """Return the style of a page behind what it shares with others."""
    return tokens() + BASE.read_text(encoding="utf-8") + style
