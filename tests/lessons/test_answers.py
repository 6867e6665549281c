"""A class's answers: read from CSV, judged, and what is wrong with a file said by place."""

import json

import numpy as np
import pytest

from qkvsearch.errors import DataError, UnknownIdError
from qkvsearch.lessons import lesson
from qkvsearch.lessons.answers import judge, read_answers, totals
from qkvsearch.lessons.parts import Given

QUIZZES = {quiz.name: quiz for quiz in lesson("self-attention").quizzes}
SCORE, MOST, EQUAL = list(QUIZZES)[:3]
CSV = f"""student,quiz,answer
Ada,{SCORE},12
Ada,{EQUAL},they are equal
Bo,{SCORE},13
"""
FORMS = {
    "comma.csv": CSV,
    "semicolon.csv": CSV.replace(",", ";"),
    "tab.tsv": CSV.replace(",", "\t"),
    "marked.csv": "\ufeff" + CSV.replace("\n", "\r\n") + "\r\n,,\r\n",
    "other order.txt": f"Answer,Student,Quiz,Time\n12,Ada,{SCORE},9\nthey are equal,Ada,{EQUAL},9\n"
    f"13,Bo,{SCORE},9\n",
    "capitals.csv": CSV.replace("self", "Self").replace("attention", "ATTENTION"),
}


@pytest.fixture
def write(tmp_path):
    def to(text, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return to


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_file_holds_the_same_answers(write, name):
    judged = judge(read_answers(write(FORMS[name], name)))
    found = [(one.answer.student, one.quiz.name, one.is_right) for one in judged]
    assert found == [("Ada", SCORE, True), ("Ada", EQUAL, True), ("Bo", SCORE, False)]
    assert totals(judged) == {"Ada": (2, 2), "Bo": (0, 1)}


def test_one_persons_answers_need_no_name(write):
    (judged,) = judge(read_answers(write(f"quiz,answer\n{SCORE},12\n")))
    assert judged.answer.student is None
    assert judged.is_right
    assert totals([judged]) == {None: (1, 1)}


def test_a_record_holds_what_was_right_and_how_to_get_there(write):
    ada, choice, bo = (one.to_record() for one in judge(read_answers(write(CSV))))
    assert list(bo) == ["student", "quiz", "given", "right", "answer", "worked"]
    assert bo == {
        "student": "Bo",
        "quiz": SCORE,
        "given": "13",
        "right": False,
        "answer": 12.0,
        "worked": QUIZZES[SCORE].worked,
    }
    assert ada["right"] is True
    assert choice["answer"] == "they are equal"
    assert json.loads(json.dumps([ada, choice, bo])) == [ada, choice, bo]


def test_of_two_answers_to_one_question_the_last_counts(write):
    text = f"student,quiz,answer\nAda,{SCORE},1\nBo,{SCORE},1\nAda,{SCORE},12\n"
    judged = judge(read_answers(write(text)))
    assert {one.answer.student: one.is_right for one in judged} == {"Ada": True, "Bo": False}


def test_no_answer_is_a_wrong_one(write):
    (judged,) = judge(read_answers(write(f"quiz,answer\n{SCORE},\n")))
    assert not judged.is_right


def test_a_decimal_comma_is_right_where_semicolons_part_the_columns(write):
    name, half = next((q.name, q) for q in lesson("softmax").quizzes if is_fraction(q))
    right = str(round(float(half.answer), 3)).replace(".", ",")
    (judged,) = judge(read_answers(write(f"quiz;answer\n{name};{right}\n")))
    assert "," in judged.answer.given
    assert judged.is_right


def is_fraction(quiz):
    return not quiz.choices and isinstance(quiz.answer, float) and quiz.answer % 1 > 0


def test_answers_to_other_lessons_are_left_out_of_one(write):
    path = write(f"quiz,answer\nmasks.1,1\n{SCORE},12\n")
    assert [one.quiz.name for one in judge(read_answers(path), only="self-attention")] == [SCORE]
    with pytest.raises(DataError, match="none of the answers is about the lesson softmax"):
        judge(read_answers(path), only="softmax")


def test_answers_are_judged_by_the_readers_own_numbers(write):
    own = Given(inputs=2 * lesson("self-attention").steps[0].computed["inputs"])
    path = write(f"quiz,answer\n{SCORE},48\n")
    (judged,) = judge(read_answers(path), "self-attention", own)
    assert judged.is_right


def test_a_record_is_json_even_where_the_readers_numbers_are_too_large(write):
    own = Given(inputs=np.array([[1e300] * 4, [1e300] * 4, [1e300, -1e300, 0, 1]]))
    with np.errstate(all="ignore"):
        quizzes = lesson("self-attention", own).quizzes
        asked = "".join(f'{quiz.name};"{quiz.solution}"\n' for quiz in quizzes)
        judged = judge(read_answers(write(f"quiz;answer\n{asked}")), given=own)
    records = [one.to_record() for one in judged]
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert records[0]["answer"] == "-inf"
    assert all(record["right"] for record in records)


@pytest.mark.parametrize("only", [None, "self-attention"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("self-atention.1", "did you mean self-attention.1"),
        ("self-attention.17", "did you mean self-attention.1"),
        ("zzz", "masks.1"),
    ],
)
def test_an_unknown_quiz_is_named_with_its_line_and_near_ones(write, name, said, only):
    path = write(f"quiz,answer\n{SCORE},12\n{name},3\n")
    with pytest.raises(UnknownIdError, match=f"a.csv, line 3: no quiz '{name}'.*{said}"):
        judge(read_answers(path), only)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "", "no answers in it"),
        ("a.csv", "quiz,answer\n", "no answers in it"),
        ("a.csv", "quiz,anser\nmasks.1,3\n", "no column 'answer'; did you mean anser"),
        ("a.csv", "name,answer\nAda,3\n", "no column 'quiz' (it has: name, answer; it needs"),
        ("a.csv", "quiz,answer\nmasks.1,3\n , 4\n", "line 3: the quiz is missing"),
        ("a.csv", "answer,quiz\n3\n", "line 2: the quiz is missing"),
        ("a.csv", "quiz,answer\nmasks.1,3\nmasks.2,a,b\n", "line 3: 3 cells under 2 headings"),
        ("a.csv", 'quiz,answer\nmasks.1,"3\n', "line"),
        ("a.csv", b"quiz,answer\nmasks.1,\xff\n", "no text in UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_with_the_place(write, name, content, said):
    with pytest.raises(DataError) as caught:
        read_answers(write(content, name))
    assert name in str(caught.value)
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(DataError, match=r"no\.csv: cannot read: No such file"):
        read_answers(tmp_path / "no.csv")
