"""The course as slides: one file of HTML that needs no network, one slide in the window at a time.

A step is one slide, or as many as it needs: what does not fit below what is there already goes on
under the same title. Drawings, workbenches and questions answer as on the page.
"""

import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from qkvsearch.lessons.exports.document import COURSE
from qkvsearch.lessons.exports.page.alone import alone
from qkvsearch.lessons.exports.page.article import blocks, code
from qkvsearch.lessons.exports.page.questions import form
from qkvsearch.lessons.markup import Html, element, joined, prose
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import (
    Curve,
    Formula,
    Lesson,
    Matrix,
    Part,
    ShownTable,
    Step,
    Switch,
    Text,
)
from qkvsearch.lessons.workbench import Workbench

OWN_STYLES = ("slides.css",)
OWN_SCRIPTS = ("slides.js",)
# The height of a slide below its title, in pixels at a width of 1280, and the width of its text.
ROOM = 560
WIDE = 1100
# Estimates of what a part takes of it, by which a step is divided.
LINE, LETTERS = 34, 84
ROW, COLUMN = 32, 72
AROUND = 72
FORMULA, CURVE, DRAWING, SWITCH = 72, 330, 520, 400
# A workbench is higher than any slide: it has one alone, and scrolls.
WORKBENCH = 2000


def to_slides(lessons: Sequence[Lesson], quizzes: bool = True) -> str:
    """Write lessons as slides in a whole page of HTML, in the current language."""
    course = say(COURSE)
    title = course if len(lessons) != 1 else f"{lessons[0].title} · {course}"
    slides = [slide for lesson in lessons for slide in _slides(lesson, quizzes)]
    turns = element(
        "footer",
        _turn("before", "←", say("Previous slide")),
        element("output"),
        _turn("after", "→", say("Next slide")),
        hidden=True,
    )
    content = joined([element("main", joined(slides, "\n")), turns], "\n")
    return alone("slides", title, content, OWN_STYLES, OWN_SCRIPTS)


def _turn(name: str, sign: str, label: str) -> Html:
    return element("button", sign, type="button", aria_label=label, data_turn=name)


def _slides(lesson: Lesson, quizzes: bool) -> Iterator[Html]:
    """Yield the slides of a lesson: its title, its steps, and its questions one by one."""
    about = say(
        "Lesson {number} · about {minutes} minutes", number=lesson.number, minutes=lesson.minutes
    )
    yield element(
        "section",
        element("p", about, class_="about"),
        element("h1", lesson.title),
        element("p", prose(lesson.goal), class_="goal"),
        class_="slide opening",
    )
    for n, step in enumerate(lesson.steps, start=lesson.first):
        yield from _step(step, lesson, n)
    if quizzes:
        for n, quiz in enumerate(lesson.quizzes, start=1):
            question = form(quiz, n, f"quiz-{lesson.name}-{n}")
            yield _slide(str(lesson.number), say("Check yourself"), [question])


def _step(step: Step, lesson: Lesson, number: int) -> Iterator[Html]:
    """Yield the slides of a step, each with its title."""
    slides: list[list[Html]] = [[]]
    used = 0.0
    for parts, html in blocks(step, lesson.name, f"{lesson.name}-{number}"):
        height = _height(parts)
        if slides[-1] and used + height > ROOM:
            slides.append([])
            used = 0
        slides[-1].append(html)
        used += height
    if step.code:
        slides[-1].append(code(step.code))
    for n, shown in enumerate(slides, start=1):
        counter = f"{lesson.number}.{number}"
        if len(slides) > 1:
            counter += f" ({n}/{len(slides)})"
        yield _slide(counter, step.title, shown)


def _slide(counter: str, title: str, shown: Sequence[Html]) -> Html:
    named = element("h2", element("span", counter, class_="counter"), " ", title)
    body = element("div", joined(shown, "\n"), class_="body")
    return element("section", named, body, class_="slide")


def _height(parts: Sequence[Part]) -> float:
    """Estimate the height of a block: of matrices side by side, or of one other part."""
    first = parts[0]
    match first:
        case Matrix():
            widths = [
                COLUMN * (len(part.columns) + 1) for part in parts if isinstance(part, Matrix)
            ]
            lines = math.ceil(sum(widths) / WIDE)
            rows = max(len(part.rows) for part in parts if isinstance(part, Matrix))
            return lines * (AROUND + ROW * (rows + 1))
        case Text():
            return LINE * math.ceil(cell_len(first.text) / LETTERS) + LINE / 2
        case ShownTable():
            return AROUND + ROW * 1.4 * (len(first.rows) + 1)
        case Formula():
            return FORMULA
        case Curve():
            return CURVE
        case Switch():
            return SWITCH
        case Workbench():
            return WORKBENCH
    return DRAWING
