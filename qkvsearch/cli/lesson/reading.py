"""A lesson read at a terminal: a screen at a time, then its questions, and that it is done."""

import shutil
import sys
from collections.abc import Iterable

from qkvsearch.cli.context import settings
from qkvsearch.cli.lesson.quizzing import ask, prompt
from qkvsearch.cli.lesson.view import heading, paragraph, step_blocks
from qkvsearch.cli.render import rendered, write_text
from qkvsearch.lessons import progress
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Lesson

STOP = {"q", "quit"}


class Stopped(Exception):
    """The person has read enough for now."""


def is_interactive() -> bool:
    """Whether someone reads and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def offer(lesson: str) -> str | None:
    """Ask whether to begin this lesson; the one that was chosen, or None."""
    typed = prompt(say("Enter begins {lesson}, a number another one, q ends.", lesson=lesson))
    return None if typed.casefold() in STOP else typed or lesson


def read(lessons: Iterable[Lesson], quizzes: bool, *, first: int, is_whole: bool) -> None:
    """One lesson after another, as long as the person goes on.

    first: the number of the first step that is there; is_whole: whether all steps are, so that the
    lesson is done at its end. Raises `click.Abort` where the person stops by Ctrl-C.
    """
    try:
        for count, lesson in enumerate(lessons):
            if count:
                _pause()
            _read_one(lesson, quizzes, first)
            if is_whole:
                remember(lesson.name)
                _say(say("Done: {title}.", title=lesson.title))
    except Stopped:
        return
    following = progress.following()
    if is_whole and following is not None:
        _say(say("Next: {command}", command=f"`qkvsearch teach {following}`"))


def remember(lesson: str) -> None:
    """Note that it is done; say where that is not possible, and go on."""
    if not progress.remember(lesson):
        settings().say(say("That this lesson is done could not be kept on this machine."))


def _read_one(lesson: Lesson, quizzes: bool, first: int) -> None:
    explained: set[str] = set()
    screen = _Screen()
    screen.show(heading(lesson))
    for place in range(len(lesson.steps)):
        if place:
            screen.turn()
        for block in step_blocks(lesson, place, first + place, explained):
            screen.show(block)
    if quizzes and lesson.quizzes:
        screen.turn()
        ask(lesson.quizzes)


class _Screen:
    """As much as the terminal is high stays in sight: it waits before more would push that out."""

    def __init__(self) -> None:
        self.used = 0

    def show(self, block: str) -> None:
        height = block.count("\n") + 1
        # The last two lines are the prompt's.
        if self.used and self.used + height > shutil.get_terminal_size((80, 24)).lines - 2:
            self.turn()
        write_text(f"\n{block}")
        self.used += height

    def turn(self) -> None:
        _pause()
        self.used = 0


def _pause() -> None:
    write_text("\n")
    if prompt(say("Enter goes on, q ends.")).casefold() in STOP:
        raise Stopped


def _say(text: str) -> None:
    write_text(rendered([paragraph(text)]))
