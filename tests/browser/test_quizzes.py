"""Quizzes on the page: what is right, what is not, and the same judgement as Python's."""

from dataclasses import replace

import numpy as np
import pytest

from qkvsearch.lessons import LESSONS, language, lesson
from qkvsearch.lessons.exports.page import to_page
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz

pytestmark = pytest.mark.xdist_group("browser")

ANSWERS = (
    "|0|1|2|1/2|1 / 3|1/0|33%|33 %|−1.5|-1.5|.25|1e-1|two|0.5, 0.5|"
    "0.5 0.5|[1, 0, 0]|１，２|0，0；1|aD bD|ad、BD|aD, bD, cD|is 4|1,5|none|"
    "None, aD|2√3|∞|−inf|NaN|banana, information|0,25|−33,3 %|0,5 0,5|"
    "1,14; 2,86|0,2,5|０．２５|３²|a and D|a和D、ｂ|AND, c"
).split("|")
# As numbers of the reader's own may make them.
NOT_FINITE = [
    Quiz("odd.1", "?", np.inf, ""),
    Quiz("odd.2", "?", (-np.inf, 1.0), ""),
    Quiz("odd.3", "?", np.nan, ""),
    Quiz("odd.4", "?", (np.nan, np.nan), ""),
]
# Each is what one of the answers says that is written in an unusual way.
TYPED = [
    Quiz("odd.5", "?", frozenset(), ""),
    Quiz("odd.6", "?", frozenset({"a", "D"}), ""),
    Quiz("odd.7", "?", frozenset({"a", "b", "D"}), ""),
    Quiz("odd.8", "?", frozenset({"and", "c"}), ""),
    Quiz("odd.9", "?", 0.25, ""),
    Quiz("odd.10", "?", -0.333, ""),
    Quiz("odd.11", "?", (1.14, 2.86), ""),
    Quiz("odd.12", "?", 32.0, ""),
]


@pytest.mark.parametrize("name", LESSONS)
def test_a_wrong_answer_shows_the_worked_step_and_a_right_one_is_right(
    name, course, visit, lesson_file
):
    with visit(lesson_file(name)) as page:
        assert course[name].quizzes
        for quiz in course[name].quizzes:
            form = page.locator(f'[data-quiz="{quiz.name}"]')
            assert not form.locator(".worked").is_visible()
            answer(form, quiz, is_right=False)
            assert form.locator(".verdict").inner_text().endswith("Try once more.")
            assert not form.locator(".worked p").first.is_visible()
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
        wrong = " ".join(["98765"] * np.size(quiz.answer))
        form.locator("input").fill(right_answer(quiz) if is_right else wrong)
    form.locator("input").last.press("Enter")


def right_answer(quiz):
    if isinstance(quiz.answer, frozenset):
        return " ".join(quiz.answer)
    return ", ".join(map(repr, np.atleast_1d(quiz.answer).astype(float).tolist()))


def test_what_is_no_answer_is_no_wrong_one(course, visit, lesson_file):
    with visit(lesson_file("masks")) as page:
        form = page.locator('[data-quiz="masks.1"]')
        for text in ("zero", "?"):
            form.locator("input").fill(text)
            form.locator("input").press("Enter")
            assert form.get_attribute("data-verdict") is None
            assert "no answer yet" in form.locator(".verdict").inner_text()
        for text, hint in (("0", "too little"), ("9", "This is the way")):
            form.locator("input").fill(text)
            form.locator("input").press("Enter")
            assert hint in form.locator(".verdict").inner_text()


def test_answers_and_what_is_covered_are_there_after_a_reload(browsing, lesson_file):
    with browsing() as context:
        page = context.new_page()
        page.goto(lesson_file("masks").as_uri())
        form = page.locator('[data-quiz="masks.1"]')
        form.locator("input").fill("6")
        form.locator("input").press("Enter")
        toggle = page.get_by_role("button", name="Predict before you look")
        weights = page.locator("#masks-5 .matrix[data-role=weights]").first
        assert weights.locator("table").is_visible()
        toggle.click()
        assert not weights.locator("table").is_visible()
        page.reload()
        assert page.locator('[data-quiz="masks.1"]').get_attribute("data-verdict") == "right"
        weights = page.locator("#masks-5 .matrix[data-role=weights]").first
        assert not weights.locator("table").is_visible()
        weights.get_by_role("button").click()
        assert weights.locator("table").is_visible()


def test_an_answer_is_judged_as_python_judges_it(course, visit, lesson_file):
    quizzes = [quiz for one in course.values() for quiz in one.quizzes if not quiz.choices]
    with visit(lesson_file("masks")) as page:
        for quiz in [*quizzes, *TYPED]:
            judged = page.evaluate(IS_ONE, [ANSWERS, asked(quiz)])
            assert judged == [not quiz.complaint(text) for text in ANSWERS], quiz.name
        for quiz in [*quizzes, *NOT_FINITE, *TYPED]:
            given = [*ANSWERS, quiz.solution, right_answer(quiz)]
            judged = page.evaluate(JUDGE, [given, asked(quiz), say("none")])
            assert judged == [quiz.is_right(text) for text in given], quiz.name
            assert judged[-2:] == [True, True], quiz.name


IS_ONE = "([given, quiz]) => given.map(text => numbers.isAnswer(text, quiz))"
JUDGE = "([given, quiz, none]) => given.map(text => numbers.isRight(text, quiz, none))"


def asked(quiz):
    """As the page's form holds it."""
    kind = "words" if isinstance(quiz.answer, frozenset) else "numbers"
    return {"kind": kind, "answer": quiz.to_record()["answer"], "tolerance": quiz.tolerance}


@pytest.mark.parametrize("spoken", ["en", "zh"])
def test_no_word_at_all_is_said_in_the_readers_language(spoken, visit, tmp_path):
    with language(spoken):
        none = Quiz("masks.1", "?", frozenset(), "")
        path = written(tmp_path, replace(lesson("masks"), quizzes=[none]))
        typed = say("none")
    with visit(path) as page:
        form = page.locator('[data-quiz="masks.1"]')
        for text, verdict in (("a", "wrong"), (typed, "right"), ("b", "wrong"), ("", "right")):
            form.locator("input").fill(text)
            form.locator("input").press("Enter")
            assert form.get_attribute("data-verdict") == verdict


def written(folder, one):
    path = folder / "page.html"
    path.write_text(to_page([one]), encoding="utf-8")
    return path
