"""Headless Chromium and the whole course as files, for tests that open the page as a reader does.

Without Playwright or a Chromium on the path these tests skip; no browser is fetched.
"""

from contextlib import contextmanager
from functools import cache

import pytest

from qkvsearch.lessons import LESSONS, language, lesson
from qkvsearch.lessons.exports.page import to_page
from qkvsearch.lessons.workbench import Workbench

READ = """bench => Object.fromEntries(
  [...bench.querySelectorAll("table[data-given], table[data-step]")].map(table => [
    table.dataset.given ?? table.dataset.step,
    [...table.tBodies[0].rows].map(row =>
      [...row.querySelectorAll("td")].map(cell => numbers.held(cell.dataset.value))),
  ]))"""


@pytest.fixture(scope="session")
def course():
    """Every lesson, computed once."""
    return {name: lesson(name) for name in LESSONS}


@pytest.fixture(scope="session")
def file(chromium, course, tmp_path_factory):
    """The page of all lessons: where it lies."""
    path = tmp_path_factory.mktemp("page") / "course.html"
    path.write_text(to_page(list(course.values())), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def lesson_file(chromium, course, tmp_path_factory):
    """The page of a lesson alone, by its name: a tenth of the whole to open."""
    folder = tmp_path_factory.mktemp("lessons")

    @cache
    def of(name):
        path = folder / f"{name}.html"
        path.write_text(to_page([course[name]]), encoding="utf-8")
        return path

    return of


@pytest.fixture(scope="session")
def chinese_file(chromium, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "zh.html"
    with language("zh"):
        path.write_text(to_page([lesson(name) for name in LESSONS]), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def visit(browsing):
    """Opens a file; afterwards nothing may have been requested but that, nor complained of."""

    @contextmanager
    def visiting(path, **options):
        with browsing(reduced_motion="reduce", **options) as context:
            page = context.new_page()
            requests, complaints = [], []
            page.on("request", lambda request: requests.append(request.url))
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.goto(path.as_uri())
            yield page
            assert not complaints
            assert requests == [path.as_uri()]

    return visiting


@pytest.fixture(scope="session")
def workbenches(course):
    """(lesson, workbench) in the order of the course."""
    return [
        (found, part)
        for found in course.values()
        for step in found.steps
        for part in step.parts
        if isinstance(part, Workbench)
    ]


@pytest.fixture
def bench(visit, lesson_file):
    """The workbench of the eight steps, on a page of its own."""
    with visit(lesson_file("self-attention")) as page:
        yield page.locator('[data-bench="self-attention.layer"]')


@pytest.fixture(scope="session")
def matrices():
    """All that a workbench holds, by name and in full precision."""
    return lambda bench: bench.evaluate(READ)
