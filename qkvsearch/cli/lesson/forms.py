"""A lesson in each format that it comes in, made in `lessons.exports`."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from qkvsearch.cli.lesson.quizzing import printed
from qkvsearch.cli.lesson.view import heading, step_blocks
from qkvsearch.cli.render import to_json
from qkvsearch.lessons.exports.document import to_document
from qkvsearch.lessons.exports.markdown import to_instructors_edition, to_markdown
from qkvsearch.lessons.exports.notebook import to_notebook
from qkvsearch.lessons.exports.page import to_page
from qkvsearch.lessons.parts import Lesson


def forms(
    lessons: Sequence[Lesson],
    quizzes: bool,
    *,
    is_step: bool,
    is_array: bool,
    instructor: bool = False,
) -> dict[str, Callable[[], str]]:
    """Return by format the function that makes the text. is_step: whether it is a single step.

    instructor: the instructor's edition, as Markdown alone. is_array: JSON is an array of the
    lessons, else the first one's object.
    """

    if instructor:
        edition = partial(to_instructors_edition, lessons)
        return {"table": edition, "markdown": edition}

    def as_json() -> str:
        documents = [to_document(lesson, quizzes) for lesson in lessons]
        return to_json(documents if is_array else documents[0])

    by_format = {
        "table": lambda: "\n".join(_blocks(lessons, quizzes)),
        "json": as_json,
        "markdown": lambda: to_markdown(lessons, quizzes),
        "html": lambda: to_page(lessons, quizzes),
    }
    # A notebook's cells go on with what the steps before computed.
    return by_format if is_step else {**by_format, "ipynb": lambda: to_notebook(lessons, quizzes)}


def _blocks(lessons: Sequence[Lesson], quizzes: bool) -> Iterator[str]:
    """Yield all blocks at once, for a pipe or a file."""
    for lesson in lessons:
        explained: set[str] = set()
        yield heading(lesson)
        for place in range(len(lesson.steps)):
            yield from (text for _, text in step_blocks(lesson, place, explained))
        if quizzes and lesson.quizzes:
            yield printed(lesson.quizzes)
