"""A lesson read at a terminal: a screen at a time, forth and back, then its questions; where one
was is remembered.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from qkvsearch.cli.context import settings
from qkvsearch.cli.lesson.quizzing import BACK, STOP, Stopped, ask, explain_back, prompt
from qkvsearch.cli.lesson.view import heading, prose, step_blocks
from qkvsearch.cli.render import write_text
from qkvsearch.lessons import progress
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Lesson


class Turned(Exception):
    """The person goes back a step."""


def is_interactive() -> bool:
    """Whether someone reads and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def offer(lesson: str) -> str | None:
    """Ask whether to begin this lesson; the one that was chosen, or None."""
    typed = prompt(say("Enter begins {lesson}, a number another one, q ends.", lesson=lesson))
    if typed.casefold() in STOP:
        return None
    return typed or lesson


def read(
    lessons: Iterable[Lesson],
    quizzes: bool,
    *,
    is_whole: bool,
    save: Path | None = None,
) -> None:
    """Show one lesson after another, as long as the person goes on.

    is_whole: whether all steps are there, so that a lesson goes on where it was left and is done at
    its end. save: a file for the answers. Raises `click.Abort` where the person stops by Ctrl-C.
    """
    try:
        for count, lesson in enumerate(lessons):
            if count:
                _pause()
            _read_one(lesson, quizzes, is_whole, save)
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
        settings().message(say("That this lesson is done could not be kept on this machine."))


def _read_one(lesson: Lesson, quizzes: bool, is_whole: bool, save: Path | None) -> None:
    n = len(lesson.steps)
    place = 0
    explained: set[str] = set()
    screen = _Screen()
    screen.show(heading(lesson))
    if is_whole and 1 < (before := progress.places().get(lesson.name, 1)) <= n:
        place = before - 1
        _say(
            say(
                "You were at step {step} of {n}, and go on there. `--step 1` shows the first.",
                step=before,
                n=n,
            )
        )
    has_begun = False
    while place < n:
        try:
            if has_begun:
                screen.turn()
            has_begun = True
            if is_whole:
                progress.keep_place(lesson.name, place + 1)
            for _, block in step_blocks(lesson, place, explained):
                screen.show(block)
            place += 1
        except Turned:
            place = max(place - 1, 0)
            has_begun = False
            screen.used = 0
    if lesson.explain and is_whole and save is None:
        screen.show(explain_back(lesson.explain))
    if quizzes and lesson.quizzes:
        _pause()
        ask(lesson, save)


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
        _pause(is_step=True)
        self.used = 0


def _pause(*, is_step: bool = False) -> None:
    """Wait for Enter. is_step: whether one may go back to the step before."""
    write_text("\n")
    text = say("Enter goes on, b goes back, q ends.") if is_step else say("Enter goes on, q ends.")
    typed = prompt(text).casefold()
    if typed in STOP:
        raise Stopped
    if is_step and typed in BACK:
        raise Turned


def _say(text: str) -> None:
    write_text(prose(text))
