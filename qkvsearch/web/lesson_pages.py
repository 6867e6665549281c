"""The course's lessons: a page for each, from the export's files, and its outline as JSON."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from qkvsearch import lessons
from qkvsearch.lessons import LESSONS
from qkvsearch.lessons.exports.page import COURSE, FILES, SCRIPTS, STYLES
from qkvsearch.lessons.exports.page.article import script_words
from qkvsearch.lessons.messages import language, say
from qkvsearch.web import pages
from qkvsearch.web.api.answers import as_json
from qkvsearch.web.course import Course, TaughtLesson
from qkvsearch.web.pages.learn import spoken_in_links, words
from qkvsearch.web.problems import Problem
from qkvsearch.web.service import Service

ADDRESS = "/learn"


class CourseFiles(StaticFiles):
    """The files of the exported page, and no others of its folder."""

    def lookup_path(self, path: str) -> Any:
        """Raises nothing: what is not one of them is not there."""
        return super().lookup_path(path) if path in (*STYLES, *SCRIPTS) else ("", None)


def lesson_words() -> dict[str, str]:
    """What the script of a lesson's page says, and those of the course."""
    return {
        **script_words(),
        **words(),
        "markRead": say("Mark as read"),
        "isRead": say("Read"),
        "stepRead": say("Step {place} is read."),
        "stepUnread": say("Step {place} is no longer marked as read."),
        "helpNext": say("next lesson"),
        "helpPrevious": say("previous lesson"),
    }


def add_routes(app: FastAPI, service: Service) -> None:
    """The lessons, the outline of each as JSON, and the course's files."""
    course = Course(service.settings.seconds)
    service.closing.append(course.close)

    async def outline(request: Request, name: str) -> Response:
        with language(pages.language_of(request)):
            return as_json((await course.lesson(_known(name))).outline)

    async def lesson(request: Request, name: str) -> Response:
        with language(pages.language_of(request)):
            return _lesson(service, request, await course.lesson(_known(name)))

    app.mount(f"{ADDRESS}/files", CourseFiles(directory=FILES), name="course")
    app.add_api_route(f"{ADDRESS}/{{name}}.json", outline, include_in_schema=False)
    app.add_api_route(f"{ADDRESS}/{{name}}", lesson, include_in_schema=False)


def _lesson(service: Service, request: Request, found: TaughtLesson) -> Response:
    """The page of a lesson."""
    known = {one.name: one for one in lessons.outline()}
    here = LESSONS.index(found.outline["name"])
    before = [known[name] for name in LESSONS[max(here - 1, 0) : here]]
    after = [known[name] for name in LESSONS[here + 1 : here + 2]]
    return pages.render(
        service,
        "lesson",
        path=ADDRESS,
        title=f"{found.outline['title']} · {say(COURSE)}",
        words=lesson_words(),
        facts=found.outline,
        course=say(COURSE),
        styles=STYLES,
        scripts=SCRIPTS,
        contents=found.contents,
        article=found.article,
        before=before,
        after=after,
        spoken=spoken_in_links(request),
    )


def _known(name: str) -> str:
    if name not in LESSONS:
        there = f"there is no such lesson; there are {', '.join(LESSONS)}"
        raise Problem(HTTPStatus.NOT_FOUND, there)
    return name
