"""Questions printed with their answers, and asked."""

import re

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
    quizzing.ask(taught.quizzes)
    told = capsys.readouterr().out
    assert f"{n} of {n} right." in told
    asked = re.findall(r"Question (\d+) of (\d+)", told)
    assert asked == [(str(number), str(n)) for number in range(1, n + 1)]
