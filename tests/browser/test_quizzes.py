"""Quizzes on the page: what is right, what is not, and the same judgement as Python's."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.lessons import LESSONS

pytestmark = pytest.mark.xdist_group("browser")

ANSWERS = [
    "",
    "0",
    "1",
    "2",
    "1/2",
    "1 / 3",
    "1/0",
    "33%",
    "33 %",
    "−1.5",
    "-1.5",
    ".25",
    "1e-1",
    "two",
    "0.5, 0.5",
]
ANSWERS += [
    "0.5 0.5",
    "[1, 0, 0]",
    "１，２",
    "0，0；1",
    "aD bD",
    "ad、BD",
    "aD, bD, cD",
    "is 4",
    "1,5",
]


@pytest.mark.parametrize("name", LESSONS)
def test_a_wrong_answer_shows_the_worked_step_and_a_right_one_is_right(name, course, visit, file):
    with visit(file) as page:
        assert course[name].quizzes
        for quiz in course[name].quizzes:
            form = page.locator(f'[data-quiz="{quiz.name}"]')
            assert not form.locator(".worked").is_visible()
            answer(form, quiz, is_right=False)
            assert form.locator(".verdict").inner_text() == "Not yet. This is the way to it:"
            assert form.locator(".worked p").first.is_visible()
            answer(form, quiz, is_right=True)
            assert form.locator(".verdict").inner_text() == "Right."


def answer(form, quiz, is_right):
    """By keyboard alone."""
    if quiz.choices:
        right = int(quiz.answer)
        chosen = right if is_right else (right + 1) % len(quiz.choices)
        form.locator("input").nth(chosen).check()
    else:
        form.locator("input").fill(right_answer(quiz) if is_right else "98765")
    form.locator("input").last.press("Enter")


def right_answer(quiz):
    if isinstance(quiz.answer, frozenset):
        return " ".join(quiz.answer)
    return ", ".join(map(repr, np.atleast_1d(quiz.answer).astype(float).tolist()))


def test_an_answer_is_judged_as_python_judges_it(course, visit, file):
    quizzes = [quiz for lesson in course.values() for quiz in lesson.quizzes if not quiz.choices]
    with visit(file) as page:
        for quiz in quizzes:
            given = [*ANSWERS, quiz.solution, right_answer(quiz)]
            judged = page.evaluate(
                "([given, answer, tolerance]) =>"
                " given.map(text => numbers.isRight(text, answer, tolerance))",
                [given, quiz.to_record()["answer"], quiz.tolerance],
            )
            assert judged == [quiz.is_right(text) for text in given], quiz.name
            assert judged[-1]
