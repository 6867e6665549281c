"""A page of its own beside the course's: its parts answer in the same way, and it loads nothing."""

import json
from collections.abc import Sequence
from string import Template

from qkvsearch._utils.spoken import LANGUAGES
from qkvsearch.lessons.exports.page import FILES, SCRIPTS, STYLES, inlined, inlined_styles, policy
from qkvsearch.lessons.exports.page.article import script_words
from qkvsearch.lessons.markup import Html, joined
from qkvsearch.lessons.messages import digits, spoken


def alone(
    kind: str, title: str, content: Html, styles: Sequence[str] = (), scripts: Sequence[str] = ()
) -> str:
    """Write a whole page of HTML, in the current language.

    kind: its class. styles and scripts: files of its own, after the course's.
    """
    style = inlined_styles((*STYLES, *styles))
    script = inlined((*SCRIPTS, *scripts))
    return Template((FILES / "alone.html").read_text(encoding="utf-8")).substitute(
        language=LANGUAGES[spoken()].tag,
        digits=digits(),
        title=joined([title]),
        policy=policy(style, script),
        style=style,
        script=script,
        # No text can end the element that holds it.
        words=json.dumps(script_words(), ensure_ascii=False).replace("<", "\\u003c"),
        kind=kind,
        content=content,
    )
