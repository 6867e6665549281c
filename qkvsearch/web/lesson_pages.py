"""The lessons of the course: a page for each, its outline as JSON, and the course's files.

Each lesson is computed once for each language, in a thread that no search waits for.
"""

import asyncio
import contextvars
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from qkvsearch import lessons
from qkvsearch.lessons import LESSONS, lesson
from qkvsearch.lessons.exports.document import COURSE
from qkvsearch.lessons.exports.page import FILES, SCRIPTS, STYLES
from qkvsearch.lessons.exports.page.article import article, contents, script_words
from qkvsearch.lessons.messages import language, say, spoken
from qkvsearch.web.api.responses import as_json
from qkvsearch.web.pages import language_in_links, language_of, render, words
from qkvsearch.web.problems import RETRY_AFTER, Problem
from qkvsearch.web.service import Service
from qkvsearch.web.whole_files import ListedFiles

ADDRESS = "/learn"


@dataclass(frozen=True)
class LessonContent:
    """A lesson in a language. outline: its title, steps and questions. contents, article: HTML."""

    outline: dict[str, Any]
    contents: str
    article: str


class Course:
    """All lessons. seconds: how long a request waits for a lesson."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # One thread, since lessons computed at once share the threads of BLAS and differ in the
        # last bits.
        self._thread = ThreadPoolExecutor(1, "lesson")
        self._lessons: dict[tuple[str, str], Future[LessonContent]] = {}

    def close(self) -> None:
        """Compute no further lesson."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def lesson(self, name: str) -> LessonContent:
        """Return a lesson in the language of the request. Raises `QkvError` and `Problem`."""
        if name not in LESSONS:
            available = f"there is no such lesson; there are {', '.join(LESSONS)}"
            raise Problem(HTTPStatus.NOT_FOUND, available)
        key = name, spoken()
        if key not in self._lessons:
            context = contextvars.copy_context()
            self._lessons[key] = self._thread.submit(context.run, _compute, name)
        try:
            # A request that stops waiting does not stop the lesson for the others.
            computed = asyncio.shield(asyncio.wrap_future(self._lessons[key]))
            return await asyncio.wait_for(computed, self._seconds)
        except TimeoutError:
            late = "the lesson is still being computed"
            headers = {"Retry-After": RETRY_AFTER}
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, late, headers) from None
        except Exception:
            self._lessons.pop(key, None)
            raise


def _compute(name: str) -> LessonContent:
    computed = lesson(name)
    outline = {
        "name": computed.name,
        "number": computed.number,
        "title": computed.title,
        "goal": computed.goal,
        "minutes": computed.minutes,
        "steps": [step.title for step in computed.steps],
        "questions": [quiz.name for quiz in computed.quizzes],
    }
    return LessonContent(outline, contents([computed], True), article(computed, True))


def routes(service: Service) -> list[BaseRoute]:
    """Return the routes of the lessons, their outlines and the course's files."""
    course = Course(service.settings.seconds)
    service.closing.append(course.close)

    async def outline(request: Request) -> Response:
        with language(language_of(request)):
            return as_json((await course.lesson(request.path_params["name"])).outline)

    async def page(request: Request) -> Response:
        with language(language_of(request)):
            content = await course.lesson(request.path_params["name"])
            return _render(service, request, content)

    return [
        Mount(f"{ADDRESS}/files", ListedFiles(FILES, (*STYLES, *SCRIPTS)), name="course"),
        Route(f"{ADDRESS}/{{name}}.json", outline),
        Route(f"{ADDRESS}/{{name}}", page),
    ]


def _render(service: Service, request: Request, content: LessonContent) -> Response:
    entries = {entry.name: entry for entry in lessons.outline()}
    here = LESSONS.index(content.outline["name"])
    return render(
        service,
        "lesson",
        path=ADDRESS,
        title=f"{content.outline['title']} · {say(COURSE)}",
        facts=content.outline,
        more_words={**script_words(), **words("learn")},
        course=say(COURSE),
        styles=STYLES,
        scripts=SCRIPTS,
        contents=content.contents,
        article=content.article,
        before=[entries[name] for name in LESSONS[max(here - 1, 0) : here]],
        after=[entries[name] for name in LESSONS[here + 1 : here + 2]],
        language_in_links=language_in_links(request),
    )
