"""Drawings: parts of a step that are pictures of what was computed.

A drawing holds arrays, unrounded, and no place on paper: the page draws it as SVG and makes it
answer, the terminal draws it in letters. `told` says in words what it shows, and `tables` hold its
numbers for those who do not see it.
"""

from qkvsearch.lessons.drawings.arrows import Arrows
from qkvsearch.lessons.drawings.attention_lines import AttendedText, Heads
from qkvsearch.lessons.drawings.drawing import Drawing
from qkvsearch.lessons.drawings.flow import Asker, Flow, Replacement
from qkvsearch.lessons.drawings.total import Total
from qkvsearch.lessons.drawings.turning import Turning

__all__ = [
    "Arrows",
    "Asker",
    "AttendedText",
    "Drawing",
    "Flow",
    "Heads",
    "Replacement",
    "Total",
    "Turning",
]
