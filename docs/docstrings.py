"""Reads the docstrings of this project for the site: parameters become lists, examples code.

A docstring here is plain text. A line such as `k, offset: the number of hits` says what parameters
are, and the lines below it that are indented belong to it. Examples begin with >>>.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

PARAMETER = re.compile(r"^(?P<names>[*\w]+(?:, [*\w]+)*): (?=\S)")
PARAGRAPHS = re.compile(r"\n\s*\n")


class PlainDocstrings(Extension):
    """Makes Markdown of each docstring, as soon as its object was read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(docstring: str) -> str:
    """Return a docstring as Markdown.

    >>> print(markdown("Rank items.\\n\\nk: how many.\\nwhere: a condition."))
    Rank items.
    <BLANKLINE>
    - `k`: how many.
    - `where`: a condition.
    """
    return "\n\n".join(_paragraph(one) for one in PARAGRAPHS.split(docstring.strip()))


def _paragraph(text: str) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    lines = text.splitlines()
    return "\n".join(_line(line) for line in lines)


def _line(line: str) -> str:
    match = PARAMETER.match(line)
    if match is None:
        return line
    names = ", ".join(f"`{name}`" for name in match["names"].split(", "))
    return f"- {names}: {line[match.end() :]}"
