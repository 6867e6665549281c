"""Marks of emphasis in the texts of lessons, as styles of the terminal."""

import re

from rich.text import Text

from qkvsearch.terminal import printable

# No paragraph is wider, however wide the terminal.
MAX_COLUMNS = 80
MARKED = re.compile(r"\*(?P<emphasis>\S(?:[^*\n]*\S)?)\*|`(?P<code>[^`\n]+)`")
STYLES = {"emphasis": "italic", "code": "bold"}


def marked(text: str) -> Text:
    """Return *emphasis* in italics and `code` in bold, without their marks."""
    text = printable(text)
    styled = Text()
    end = 0
    for match in MARKED.finditer(text):
        name = match.lastgroup
        assert name is not None
        styled.append(text[end : match.start()])
        styled.append(match[name], style=STYLES[name])
        end = match.end()
    styled.append(text[end:])
    return styled
