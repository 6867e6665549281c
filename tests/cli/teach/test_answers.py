"""Questions printed with their answers, and asked."""

import csv
import re

import pytest

from qkvsearch.cli.lesson import quizzing

NAME = "self-attention"


def test_without_a_terminal_questions_come_with_their_answers_after(qkv, taught):
    text = qkv("teach", NAME).stdout
    questions, answers = text.split("\nQuestions\n")[1].split("\nAnswers\n")
    quizzes = taught.quizzes
    for number, quiz in enumerate(quizzes, start=1):
        assert re.search(rf"^{number}\. {re.escape(quiz.question[:40])}", questions, re.M)
        assert re.search(rf"^{number}\. {re.escape(quiz.solution)} — ", answers, re.M)
    assert f"2) {quizzes[2].choices[1]}\n" in questions
    assert "Questions" not in qkv("teach", NAME, "--no-quiz").stdout


def typed(quiz):
    """What answers a question: the number of the right choice, or a value."""
    return str(quiz.choices.index(quiz.solution) + 1) if quiz.choices else quiz.solution


def test_questions_that_are_asked_are_counted_from_1(capsys, monkeypatch, taught):
    given = iter([typed(quiz) for quiz in taught.quizzes])
    monkeypatch.setattr(quizzing, "prompt", lambda _text: next(given))
    n = len(taught.quizzes)
    quizzing.ask(taught)
    told = capsys.readouterr().out
    assert f"{n} of {n} right." in told
    asked = re.findall(r"Question (\d+) of (\d+)", told)
    assert asked == [(str(number), str(n)) for number in range(1, n + 1)]


class TestAnswersFromAFile:
    """`teach check --save` without a terminal."""

    def test_a_line_for_each_question_is_judged_and_kept(self, qkv, computed, tmp_path):
        quizzes = computed("check").quizzes
        lines = [typed(quiz) for quiz in quizzes[:-1]]
        answer = qkv("teach", "check", "--save", "a.csv", stdin="\n".join([*lines, "", "", ""]))
        assert answer.code == 0
        assert "The answers are in a.csv." in answer.stdout
        rows = list(csv.DictReader((tmp_path / "a.csv").open()))
        assert [row["quiz"] for row in rows] == [*(quiz.name for quiz in quizzes), "check.explain"]
        assert [row["right"] for row in rows] == ["yes"] * (len(quizzes) - 1) + ["no", ""]

    def test_one_more_line_is_the_sentence_that_nothing_compares(self, qkv, computed, tmp_path):
        lines = [typed(quiz) for quiz in computed("check").quizzes]
        sentence = "A word asks, the others match."
        answer = qkv("teach", "check", "--save", "a.csv", stdin="\n".join([*lines, sentence]))
        assert answer.code == 0
        row = list(csv.DictReader((tmp_path / "a.csv").open()))[-1]
        assert row == {"quiz": "check.explain", "answer": sentence, "right": ""}

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ("1\n2\n", "stdin has 2 lines, but there are 10 questions"),
            ("1\n" * 12, "stdin has 12 lines"),
            ("1\n1\nx\n" + "1\n" * 7, "stdin, line 3, check.3: 'x': Type the number of a choice"),
        ],
    )
    def test_what_is_no_answer_writes_nothing(self, qkv, tmp_path, given, said):
        answer = qkv("teach", "check", "--save", "a.csv", stdin=given)
        assert answer.code == 1
        assert said in answer.stderr
        assert not (tmp_path / "a.csv").exists()
