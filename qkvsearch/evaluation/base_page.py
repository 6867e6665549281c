"""The style that all pages in one file share: colours of a light and a dark screen, and fonts."""

from __future__ import annotations

from pathlib import Path

BASE = Path(__file__).with_suffix(".css")


def with_base(style: str) -> str:
    """Return the style of a page behind what it shares with others."""
    return BASE.read_text(encoding="utf-8") + style
