"""The course as pages show it: each lesson computed once for each language, beside the answers."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from qkvsearch.lessons import lesson
from qkvsearch.lessons.exports.page.article import article, contents
from qkvsearch.lessons.messages import spoken
from qkvsearch.web.problems import Problem


@dataclass(frozen=True)
class TaughtLesson:
    """A lesson in a language. outline: its title, steps and questions. contents, article: HTML."""

    outline: dict[str, Any]
    contents: str
    article: str


class Course:
    """All lessons. seconds: how long one is waited for; it goes on, and is there the next time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # A thread that no search waits for; one alone, since lessons computed at once share the
        # threads of BLAS and differ in the last bits.
        self._thread = ThreadPoolExecutor(1, "lesson")
        self._found: dict[tuple[str, str], Future[TaughtLesson]] = {}

    def close(self) -> None:
        """No further lesson is computed."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def lesson(self, name: str) -> TaughtLesson:
        """In the language that is spoken. Raises `QkvError` and `Problem`."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._lesson(name)
        except TimeoutError:
            late = "the lesson is still being computed"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, late, {"Retry-After": "5"}) from None

    async def _lesson(self, name: str) -> TaughtLesson:
        key = name, spoken()
        if key not in self._found:
            context = contextvars.copy_context()
            self._found[key] = self._thread.submit(context.run, _taught, name)
        try:
            # Whoever stops waiting does not stop it for the others.
            return await asyncio.shield(asyncio.wrap_future(self._found[key]))
        except Exception:
            self._found.pop(key, None)
            raise


def _taught(name: str) -> TaughtLesson:
    made = lesson(name)
    outline = {
        "name": made.name,
        "number": made.number,
        "title": made.title,
        "goal": made.goal,
        "minutes": made.minutes,
        "steps": [step.title for step in made.steps],
        "questions": [quiz.name for quiz in made.quizzes],
    }
    return TaughtLesson(outline, contents([made], True), article(made, True))
