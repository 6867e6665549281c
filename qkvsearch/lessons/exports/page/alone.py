"""A page of its own beside the course's: its parts answer in the same way, and it loads nothing."""

from collections.abc import Sequence

from qkvsearch.lessons.exports.page import SCRIPTS, STYLES, whole_page
from qkvsearch.lessons.markup import Html


def alone(
    kind: str, title: str, content: Html, styles: Sequence[str] = (), scripts: Sequence[str] = ()
) -> str:
    """Write a whole page of HTML, in the current language.

    kind: its class. styles and scripts: files of its own, after the course's.
    """
    return whole_page(title, content, (*STYLES, *styles), (*SCRIPTS, *scripts), kind)
