"""The pages of a site: templates and scripts beside the data, and the course as one file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from qkvsearch.lessons import LESSONS, lesson
from qkvsearch.lessons.exports.page import FILES as LESSON_FILES
from qkvsearch.lessons.exports.page import to_page
from qkvsearch.lessons.messages import say, spoken

FILES = Path(__file__).with_name("files")
# What the pages of the server are made of as well.
SHARED = Path(__file__).parents[1] / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)


def site_pages(title: str) -> dict[str, bytes]:
    """Every page, script and style by its path in the site, in the language that is spoken."""
    return {
        "index.html": _page(title).encode(),
        "course.html": to_page([lesson(name) for name in LESSONS]).encode(),
        **dict(_copied()),
    }


def _copied() -> Iterator[tuple[str, bytes]]:
    """Files as they are."""
    yield "attention.js", (LESSON_FILES / "attention.js").read_bytes()
    for name in ("dom.js", "words.js", "shell.js", "base.css", "icon.svg"):
        yield name, (SHARED / name).read_bytes()
    for path in sorted(FILES.iterdir()):
        if path.suffix in (".js", ".css"):
            yield path.name, path.read_bytes()


def _page(title: str) -> str:
    told = {
        "skip": say("Skip to the content"),
        "search": say("Search"),
        "course": say("Learn"),
        "keys": say("Keys on this page"),
        "pages": say("Pages"),
        "label": say("What are you looking for?"),
        "script": say("This page needs JavaScript: it answers by itself, and asks no server."),
        "made": say(
            "Made by qkvsearch export site. Nothing that you type leaves this page: words and "
            "vectors are files, and the scores are computed here."
        ),
    }
    return Template((FILES / "index.html").read_text(encoding="utf-8")).substitute(
        {name: escape(text) for name, text in told.items()},
        language={"zh": "zh-Hans"}.get(spoken(), spoken()),
        title=escape(title),
        policy=escape(POLICY),
        words=_data(words()),
        facts=_data({"page": "search"}),
    )


def _data(found: Any) -> str:
    """JSON that cannot end the element that holds it."""
    return json.dumps(found, ensure_ascii=False).replace("<", "\\u003c")


def words() -> dict[str, str]:
    """What the script says, by the names that it knows; it fills in the {names} itself."""
    return {
        "help": say("Keys on this page"),
        "helpSearch": say("go to the box"),
        "helpMove": say("from one result to the next"),
        "helpMenu": say("to the page of this number"),
        "helpHelp": say("this list"),
        "helpEscape": say("close, or back to the box"),
        "close": say("Close"),
        "failed": say("That did not work: {detail}"),
        "catalog": say("{n} items. Some of them:"),
        "found": say("{n} of {total} items are above the mean by some head"),
        "nothing": say("No hits: none of these words is in the catalog."),
        "corrected": say("No item has “{typed}”: searched for “{read}”."),
        "kin": say("No item has “{typed}”: read as “{read}”."),
        "missing": say("No text has “{word}”."),
        "stopped": say("These words are in so many texts that alone they say nothing."),
        "wordsHead": say("words"),
        "answered": say("Answered by: {heads}."),
        "waiting": say("Still loading: {heads}."),
        "unknownTo": say("Knows none of these words: {heads}."),
        "why": say("Why this score"),
        "whyWord": say("Word"),
        "whyHead": say("Head"),
        "whyFound": say("Found as"),
        "whyAdds": say("Adds"),
        "whyMeaning": say("meaning: its vector · the item's key"),
        "whyConstant": say("the mean over all items, taken away"),
        "whySum": say("Sum: the score"),
        "score": say("score {score}, weight {weight}"),
        "loaded": say("{n} kB loaded"),
    }
