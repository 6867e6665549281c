"""The course as one page: a file that needs no network, readable without its script.

Everything that is shown is HTML; the script makes workbenches editable and judges quizzes. Its
`attention.js` is the only other implementation of attention than the engine's.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from string import Template

from qkvsearch._utils.spoken import LANGUAGES
from qkvsearch._utils.style import tokens
from qkvsearch.lessons.exports.document import COURSE
from qkvsearch.lessons.exports.page.article import article, contents, script_words, welcome
from qkvsearch.lessons.markup import joined
from qkvsearch.lessons.messages import digits, say, spoken
from qkvsearch.lessons.parts import Lesson

FILES = Path(__file__).parent
# What the page is made of, in this order, behind the tokens of all pages. The server's pages of the
# course load the same files.
STYLES = (
    "colours.css",
    "page.css",
    "matrices.css",
    "drawings.css",
    "figure.css",
    "switch.css",
    "print.css",
)
DRAWINGS = (
    "player.js",
    "arrows.js",
    "segments.js",
    "mix.js",
    "own_mixes.js",
    "flow.js",
    "heads.js",
    "turning.js",
)
SCRIPTS = ("attention.js", "numbers.js", "entry.js", "bench.js", "switch.js", *DRAWINGS, "page.js")
# Of the page alone; the server keeps progress by a script of its own.
OWN_SCRIPTS = ("keep.js",)


def to_page(lessons: Sequence[Lesson], quizzes: bool = True) -> str:
    """Write a whole page of HTML, in the current language.

    Style and script are in it, each allowed by its hash; nothing else may be loaded or run.
    """
    course = say(COURSE)
    title = course if len(lessons) != 1 else f"{lessons[0].title} · {course}"
    content = Template((FILES / "page.html").read_text(encoding="utf-8")).substitute(
        skip=joined([say("Skip to the lessons")]),
        course=joined([course]),
        welcome=welcome(),
        contents_title=joined([say("Contents")]),
        contents=contents(lessons, quizzes),
        lessons=joined([article(lesson, quizzes) for lesson in lessons], "\n"),
    )
    return whole_page(title, content.rstrip("\n"), STYLES, (*SCRIPTS, *OWN_SCRIPTS))


def whole_page(
    title: str, content: str, styles: Sequence[str], scripts: Sequence[str], kind: str = ""
) -> str:
    """Write HTML that holds its styles and scripts, in the current language.

    content: the HTML of its body. styles and scripts: files of this folder. kind: its class.
    """
    style = inlined_styles(styles)
    script = inlined(scripts)
    return Template((FILES / "document.html").read_text(encoding="utf-8")).substitute(
        language=LANGUAGES[spoken()].tag,
        digits=digits(),
        title=joined([title]),
        policy=policy(style, script),
        style=style,
        script=script,
        # No text can end the element that holds it.
        words=json.dumps(script_words(), ensure_ascii=False).replace("<", "\\u003c"),
        kind=f' class="{kind}"' if kind else "",
        content=content,
    )


def inlined_styles(names: Sequence[str]) -> str:
    """Return the text of styles that a page holds itself, behind the tokens of all pages."""
    return f"\n{tokens()}{inlined(names)}"


def inlined(names: Sequence[str]) -> str:
    """Return the text of scripts or styles that a page holds itself."""
    return "\n" + "".join((FILES / name).read_text(encoding="utf-8") for name in names)


def policy(style: str, script: str) -> str:
    """Return the policy of a page in which this style and script are all that is allowed."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
