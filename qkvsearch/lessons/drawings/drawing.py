"""What all drawings have: a name, a caption, what is told of them, and their numbers."""

from abc import ABC, abstractmethod
from typing import Any

# Headings, and rows of words and numbers.
NumberTable = tuple[list[str], list[list[str | float]]]


class Drawing(ABC):
    """A picture of what was computed.

    name: one word, unique in its lesson. caption: what it shows, and what one can do with it.
    """

    name: str
    caption: str

    @property
    @abstractmethod
    def told(self) -> str:
        """What is to be seen, in a sentence or two, with its numbers."""

    @property
    @abstractmethod
    def tables(self) -> list[NumberTable]:
        """All that is drawn, in full precision."""

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """What the page's script computes from, by the names it knows."""
