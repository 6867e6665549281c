"""The page `learn`: the course's contents."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from qkvsearch.lessons import LESSONS, outline
from qkvsearch.lessons.exports.page import STYLES
from qkvsearch.lessons.exports.page.article import welcome
from qkvsearch.lessons.exports.page.markup import prose
from qkvsearch.lessons.messages import LANGUAGES, say
from qkvsearch.web.service import Service


def words() -> dict[str, str]:
    """What its script says, by name."""
    return {
        "progress": say("{steps} of {allSteps} steps read, {right} of {questions} questions right"),
        "goOn": say("Go on where you were: {place} {title}"),
        "forget": say("Forget what I have read and answered"),
        "forgetSure": say("All that this browser remembers of the course will be gone. Go on?"),
        "forgotten": say("Nothing is remembered any more."),
        "notKept": say("This browser keeps nothing: progress is gone when the page is closed."),
    }


def facts(service: Service) -> dict[str, Any]:
    """What its script must know at once."""
    return {"lessons": list(LESSONS)}


def shown(request: Request) -> dict[str, Any]:
    """What the template of the contents shows."""
    return {
        "styles": STYLES,
        "welcome": welcome(),
        "prose": prose,
        "lessons": list(outline()),
        "spoken": spoken_in_links(request),
    }


def spoken_in_links(request: Request) -> str:
    """What links add to stay in a language that was chosen."""
    asked = request.query_params.get("lang")
    return f"?{urlencode({'lang': asked})}" if asked in LANGUAGES else ""
