"""What all drawings have: a name, a caption, what is told of them, and their numbers."""

from abc import ABC, abstractmethod
from typing import Any

from qkvsearch.lessons.markup import Html

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
        """Return what the page's script computes from, by name."""

    @abstractmethod
    def pictures(self, place: str) -> list[Html]:
        """Return its SVGs, each with its text. place: a part of their ids, unique in the page."""
