"""Every lesson's questions can be answered, by typing what is given as the answer; and nothing but
a right answer is taken for one.
"""

import json

import numpy as np
import pytest

from qkvsearch.lessons import LESSONS
from qkvsearch.lessons.quizzes import Quiz

# What a person may type for the questions of each lesson, in order.
ANSWERS = {
    "ask-match-mix": "vision | 1 | 3 | 2 | 1",
    "embeddings": "0 | 0.29 | princess | 1.21",
    "dot-product": "0.76 | negative | Love story | 12",
    "recommender": "3.4 | up | Space race | 0.34 | 1 | 3 | 2 | 0.2",
    "search": "5 | [0.75, 0.25, 0] | 1 | C | The user | Nearly 0",
    "softmax": "2 | 3 | 0.25 | 1.1 2.9 | 8",
    "translation": "6 | 潮 | 3 | 24 | 0.48 | 2 | 20 | 1",
    "self-attention": "12 | 2 | 2",
    "masks": "6 | c D | 0.80 | a, b, c | 1 | 45",
    "mask-details": "D | 3 | 2",
    "context": "0 | 3 | a, b, c, d | 3 | 2",
    "heads": "1 3 | 80 | 16 | 2 | 2 | 1 | 600 | 3",
    "block": "-1 1 | 2 | -1 | 2 | 0 | 1 | 3 | 3",
    "learning": "2 | 3 × 3 | 2 | 2 | 1",
    "check": "2 | 2 | 1 | 3 | 2 | 1 | 3 | 2 | 1 | 3",
    "appendix": "112 | 1, 3 | 3",
}
NUMBER = Quiz("a.1", "?", 0.25, "")
NUMBERS = Quiz("a.2", "?", (0.5, -1.0), "")
CELLS = Quiz("a.3", "?", frozenset({"aD", "bD"}), "")
TOKENS = Quiz("a.9", "?", frozenset({"c", "and"}), "")
MINUS = Quiz("a.10", "?", -0.25, "")
SQUARE = Quiz("a.11", "?", 32.0, "")
CHOICE = Quiz("a.4", "?", 1.0, "", choices=("less", "as much", "more"))
SENTENCE = Quiz("a.5", "?", 1.0, "", choices=("It grows (a lot)", "It grows (a bit).", "b."))
MOST = Quiz("a.6", "?", np.inf, "")
ODD = Quiz("a.7", "?", (-np.inf, np.nan), "")
NONE = Quiz("a.8", "?", frozenset(), "")


@pytest.fixture(scope="module")
def course(taught):
    return {name: taught(name).quizzes for name in LESSONS}


@pytest.mark.parametrize("name", LESSONS)
class TestEveryLesson:
    def test_it_has_three_questions_or_more_named_in_order(self, course, name):
        names = [quiz.name for quiz in course[name]]
        assert len(names) >= 3
        assert names == [f"{name}.{n}" for n in range(1, len(names) + 1)]

    def test_the_solution_as_shown_is_a_right_answer(self, course, name):
        for quiz in course[name]:
            assert quiz.is_right(quiz.solution), quiz.name

    def test_its_questions_have_the_answers_that_the_course_gives(self, course, name):
        for quiz, answer in zip(course[name], ANSWERS[name].split(" | "), strict=False):
            assert quiz.is_right(answer), quiz.name

    def test_a_choice_is_answered_by_number_or_text_and_only_one_is_right(self, course, name):
        for quiz in course[name]:
            for place in range(len(quiz.choices)):
                ways = (str(place + 1), quiz.choices[place])
                assert {quiz.is_right(way) for way in ways} == {place == quiz.answer}, quiz.name

    def test_a_number_beside_the_answer_is_wrong(self, course, name):
        for quiz in course[name]:
            if not quiz.choices and not isinstance(quiz.answer, frozenset):
                off = np.atleast_1d(quiz.answer) + 2 * max(quiz.tolerance, 0.001)
                assert not quiz.is_right(" ".join(f"{x:.6f}" for x in off)), quiz.name

    def test_no_answer_and_nonsense_are_wrong(self, course, name):
        for quiz in course[name]:
            assert not quiz.is_right("banana"), quiz.name
            assert quiz.is_right("") == (quiz.answer == frozenset()), quiz.name

    def test_it_shows_the_step_and_is_a_record(self, course, name):
        for quiz in course[name]:
            assert quiz.question.strip()
            assert quiz.worked.strip()
            record = quiz.to_record()
            assert json.loads(json.dumps(record)) == record


@pytest.mark.parametrize(
    ("quiz", "right"),
    [
        (NUMBER, ["0.25", ".25", " 1/4 ", "25%", "2.5e-1", "0.259", "= 0.25"]),
        (NUMBER, ["0,25", "25,0%", "+0,25", "０．２５", "２５％", "０,２５"]),
        (MINUS, ["-0,25", "−0,25", "－０．２５"]),
        (NUMBERS, ["0.5 -1", "[0.5, −1]", "1/2，-1", "(0.5; -1.0)", "50%、−1"]),
        (NUMBERS, ["0,5 -1,0", "0,5; −1,0", "0,5, -1", "0.5,-1"]),
        (CELLS, ["aD bD", "bd, AD", "aD，bD", "bD;aD"]),
        (CELLS, ["aD and bD", "aD, AND bD", "aD 和 bD", "aD和bD", "ａＤ、ｂＤ"]),
        (TOKENS, ["c and", "and, C"]),
        (CHOICE, ["2", "2)", "2.", "As Much", "２", "２）"]),
        (SENTENCE, ["2", "2)", "it grows (a bit)."]),
        (MOST, ["∞", "inf", "Inf", "+infinity", "it is ∞", "1e999"]),
        (ODD, ["−∞ NaN", "[-inf, nan]", "-Infinity; NAN"]),
        (NONE, ["none", "None", "", " , "]),
    ],
    ids=lambda value: value.name if isinstance(value, Quiz) else "",
)
def test_an_answer_may_be_typed_in_many_ways(quiz, right):
    assert {text: quiz.is_right(text) for text in right} == dict.fromkeys(right, True)


@pytest.mark.parametrize(
    ("quiz", "wrong"),
    [
        (NUMBER, ["-0.25", "0.27", "25", "0.25 0.25", "a quarter", ""]),
        (NUMBER, ["0,2,5", "0, 25", "25,0", "0.25,0"]),
        (SQUARE, ["3²"]),
        (NUMBERS, ["-1 0.5", "0.5", "0.5 1", "0.5 -1 0", "0,5"]),
        (CELLS, ["aD", "aD bD cD", "aDbD", "none", "aD和", "aD and cD"]),
        (TOKENS, ["c", "c 和"]),
        (CHOICE, ["1", "3", "b", "B)", "0", "-1", "as", "two"]),
        (SENTENCE, ["It grows (a lot)", "a", "3", "b."]),
        (MOST, ["−∞", "1e300", "information", "infinite", "nan", ""]),
        (ODD, ["NaN −∞", "−∞", "−∞ banana", "−∞ 0", "∞ NaN"]),
        (NONE, ["a", "none a", "0"]),
    ],
    ids=lambda value: value.name if isinstance(value, Quiz) else "",
)
def test_what_is_not_the_answer_is_wrong(quiz, wrong):
    assert {text: quiz.is_right(text) for text in wrong} == dict.fromkeys(wrong, False)


@pytest.mark.parametrize(
    ("quiz", "answer"), [(MOST, "inf"), (ODD, ["-inf", "nan"]), (NONE, []), (NUMBER, 0.25)]
)
def test_a_record_has_words_for_numbers_that_json_lacks(quiz, answer):
    record = quiz.to_record()
    assert record["answer"] == answer
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert quiz.is_right(quiz.solution)
