"""The parts of the course's page: contents, lessons with their steps, what the script says."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import get_args

from qkvsearch.lessons.drawings import Drawing, Flow, Total
from qkvsearch.lessons.exports.document import ROLE_NAMES
from qkvsearch.lessons.exports.page.bench import workbench
from qkvsearch.lessons.exports.page.drawings import drawing, drawing_words
from qkvsearch.lessons.exports.page.figures import curve, matrix, side_by_side, swatch, table
from qkvsearch.lessons.exports.page.questions import questions
from qkvsearch.lessons.exports.page.switch import switch
from qkvsearch.lessons.markup import Html, element, joined, mathematics, prose
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import (
    Code,
    Curve,
    Formula,
    Lesson,
    Matrix,
    Part,
    Role,
    ShownTable,
    Step,
    Switch,
    Text,
)
from qkvsearch.lessons.workbench import Workbench


def welcome() -> Html:
    """Introduce the course, and explain the colours."""
    roles: tuple[Role, ...] = get_args(Role)
    legend = [element("li", swatch(role), say(ROLE_NAMES[role])) for role in roles]
    return joined(
        [
            element(
                "p",
                say(
                    "Attention computed before your eyes, from the first dot product on. Every "
                    "number here was computed; under “Try it yourself” you change the matrices, "
                    "and all that follows from them is computed again."
                ),
                class_="lead",
            ),
            element("p", say("A matrix is marked by what it is:"), class_="legend-title"),
            element("ul", *legend, class_="legend"),
        ],
        "\n",
    )


def contents(lessons: Sequence[Lesson], quizzes: bool) -> Html:
    """Link to the lessons, and to the steps of each."""
    items = []
    for lesson in lessons:
        steps = [
            element("li", element("a", step.title, href=f"#{lesson.name}-{number}"))
            for number, step in enumerate(lesson.steps, start=1)
        ]
        if lesson.explain:
            link = element("a", say("Explain it back"), href=f"#explain-{lesson.name}")
            steps.append(element("li", link))
        if quizzes and lesson.quizzes:
            link = element("a", say("Check yourself"), href=f"#quiz-{lesson.name}")
            steps.append(element("li", link))
        number = element("span", str(lesson.number), class_="counter")
        link = element("a", number, " ", lesson.title, href=f"#{lesson.name}")
        items.append(element("li", link, element("ol", *steps)))
    return element("ol", joined(items, "\n"))


def article(lesson: Lesson, quizzes: bool) -> Html:
    """Return a whole lesson."""
    steps = [_step(step, lesson, n) for n, step in enumerate(lesson.steps, start=1)]
    if lesson.explain:
        steps.append(explain_back(lesson))
    if quizzes and lesson.quizzes:
        steps.append(questions(lesson.quizzes, lesson.name))
    about = say(
        "Lesson {number} · about {minutes} minutes", number=lesson.number, minutes=lesson.minutes
    )
    return element(
        "article",
        element(
            "div",
            element("p", about, class_="about"),
            element("h2", lesson.title, id=f"{lesson.name}-title"),
            element("p", prose(lesson.goal), class_="goal"),
            class_="lesson-head",
        ),
        joined(steps, "\n"),
        element("p", element("a", say("Back to the contents"), href="#contents"), class_="back"),
        id=lesson.name,
        aria_labelledby=f"{lesson.name}-title",
        data_paged="yes" if lesson.is_paged else None,
    )


def explain_back(lesson: Lesson) -> Html:
    """Return the place for a sentence of one's own, which the script keeps in the browser."""
    place = f"explain-{lesson.name}"
    hint = say("Nothing compares it. It stays in this browser, and is printed with the lesson.")
    field = element(
        "textarea",
        id=f"{place}-text",
        rows="3",
        maxlength="4000",
        data_explains=lesson.name,
        aria_describedby=f"{place}-hint",
    )
    return element(
        "section",
        element("h3", say("Explain it back"), id=place),
        element("p", element("label", lesson.explain, for_=f"{place}-text")),
        field,
        element("p", hint, class_="hint", id=f"{place}-hint"),
        class_="explain",
        aria_labelledby=place,
    )


def _step(step: Step, lesson: Lesson, number: int) -> Html:
    place = f"{lesson.name}-{number}"
    shown = [html for _, html in blocks(step, lesson.name, place, are_stages_inside=True)]
    if step.code:
        shown.append(code(step.code))
    counter = element("span", f"{lesson.number}.{number}", class_="counter")
    return element(
        "section",
        element("h3", counter, " ", step.title, id=f"{place}-title"),
        joined(shown, "\n"),
        id=place,
        class_="step",
        aria_labelledby=f"{place}-title",
    )


def blocks(
    step: Step, lesson: str, place: str, are_stages_inside: bool = False
) -> Iterator[tuple[list[Part], Html]]:
    """Yield the parts of a step with their HTML; matrices that follow one another are one block.

    lesson: its name. place: a part of ids, unique in the page. are_stages_inside: whether what is
    said of a stage stands in the drawing instead of below it.
    """
    said = _said_of_stages(step) if are_stages_inside else {}
    inside = [part for texts in said.values() for part in texts]
    outside = [part for part in step.parts if not any(part is one for one in inside)]
    number = 0  # of the blocks so far
    for is_matrix, parts in groupby(outside, key=lambda part: isinstance(part, Matrix)):
        if is_matrix:
            group = list(parts)
            yield group, side_by_side([matrix(part) for part in group])  # type: ignore[arg-type]
            number += 1
            continue
        for part in parts:
            if isinstance(part, Flow) and part.name in said:
                yield [part], drawing(part, lesson, said[part.name])
            else:
                yield [part], _part(part, lesson, f"{place}-{number}")
            number += 1


def _said_of_stages(step: Step) -> dict[str, list[Text | Formula]]:
    """Return what is said of the stages of each flow of a step, by its name."""
    said: dict[str, list[Text | Formula]] = {}
    flow: Flow | None = None
    for part in step.parts:
        if isinstance(part, Flow):
            flow = part
        elif isinstance(part, Text | Formula) and flow and part.stage in flow.stages:
            said.setdefault(flow.name, []).append(part)
    return said


def code(shown: Code) -> Html:
    """Return the code of a step, to be unfolded."""
    return element(
        "details",
        element("summary", say("The same in Python")),
        element("pre", element("code", shown.source)),
        class_="code",
    )


def _part(part: Part, lesson: str, place: str) -> Html:
    """Return a part that is not a matrix."""
    match part:
        case Text():
            return element("p", prose(part.text))
        case Formula():
            return element("p", mathematics(part.text), class_="formula")
        case ShownTable():
            return table(part)
        case Curve():
            return curve(part, f"curve-{place}")
        case Workbench():
            return workbench(part, lesson)
        case Switch():
            return switch(part, lesson)
        case Total(folded=True):
            summary = element("summary", part.caption)
            return element("details", summary, drawing(part, lesson), class_="folded")
        case Drawing():
            return drawing(part, lesson)
    raise TypeError(f"the page does not know how to show a {type(part).__name__}")


def script_words() -> dict[str, str]:
    """Return the script's sentences by name; it fills in their {names} itself."""
    return {
        "cell": say("{matrix}, row {row}, column {column}"),
        "hidden": say("hidden"),
        "none": say("none"),
        "notNumber": say("“{entry}” is not a number. {last} still counts."),
        "notPositive": say("“{entry}” is not a number above 0. {last} still counts."),
        "recomputed": say("Computed again. {step}, first row: {row}"),
        "right": say("Right."),
        "wrong": say("Not yet. This is the way to it:"),
        "again": say("Not yet. {hint} Try once more."),
        "another": say("It is another one."),
        "tooMuch": say("That is too much."),
        "tooLittle": say("That is too little."),
        "notAll": say("Not all of it is right."),
        "noNumber": say("That is no answer yet: type {n} numbers, such as 1/4 or 25%."),
        "noWords": say("Name the tokens, or type: none."),
        "resume": say("Go on where you were: {title}"),
        "predict": say("Predict before you look"),
        "reveal": say("Show {name}"),
        "scrolls": say("{name}, scrolls sideways"),
        **drawing_words(),
    }
