"""A lesson in each format that it comes in; the texts are made in `lessons.exports`."""

from collections.abc import Callable, Iterator, Sequence

from qkvsearch.cli.lesson.quizzing import printed
from qkvsearch.cli.lesson.view import heading, step_blocks
from qkvsearch.cli.render import to_json
from qkvsearch.lessons.exports.document import to_document
from qkvsearch.lessons.exports.markdown import to_markdown
from qkvsearch.lessons.exports.notebook import to_notebook
from qkvsearch.lessons.exports.page import to_page
from qkvsearch.lessons.parts import Lesson


def forms(
    lessons: Sequence[Lesson], quizzes: bool, step: int | None, *, is_array: bool
) -> dict[str, Callable[[], str]]:
    """By format, what makes the text. step: the number of the only step, None for whole lessons.

    is_array: JSON is an array of the lessons, else the first one's object.
    """

    def as_json() -> str:
        documents = [to_document(lesson, quizzes) for lesson in lessons]
        return to_json(documents if is_array else documents[0])

    found = {
        "table": lambda: "\n".join(_blocks(lessons, quizzes, step or 1)),
        "json": as_json,
        "markdown": lambda: to_markdown(lessons, quizzes, first=step or 1),
        "html": lambda: to_page(lessons, quizzes),
    }
    # A notebook's cells go on with what the steps before computed.
    return found if step is not None else {**found, "ipynb": lambda: to_notebook(lessons, quizzes)}


def _blocks(lessons: Sequence[Lesson], quizzes: bool, first: int) -> Iterator[str]:
    """Everything at once, for a pipe or a file."""
    for lesson in lessons:
        explained: set[str] = set()
        yield heading(lesson)
        for place in range(len(lesson.steps)):
            yield from step_blocks(lesson, place, first + place, explained)
        if quizzes and lesson.quizzes:
            yield printed(lesson.quizzes)
