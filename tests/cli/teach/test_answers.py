"""Questions printed with their answers, and a class's answers judged."""

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


def test_questions_that_are_asked_are_counted_from_1(capsys, monkeypatch, taught):
    given = iter([quiz.solution for quiz in taught.quizzes])
    monkeypatch.setattr(quizzing, "prompt", lambda _text: next(given))
    n = len(taught.quizzes)
    quizzing.ask(taught.quizzes)
    told = capsys.readouterr().out
    assert f"{n} of {n} right." in told
    asked = re.findall(r"Question (\d+) of (\d+)", told)
    assert asked == [(str(number), str(n)) for number in range(1, n + 1)]


def test_answers_of_a_class_are_judged_in_every_listing(qkv, tmp_path, taught):
    rows = ["student,quiz,answer", f"Ada,{NAME}.1,12", f"Bo,{NAME}.1,13", f"Bo,{NAME}.2,2"]
    (tmp_path / "class.csv").write_text("\n".join(rows))
    answer = qkv("teach", "--answers", "class.csv", "--format", "json")
    found = answer.json()
    assert [(row["student"], row["right"]) for row in found] == [
        ("Ada", True), ("Bo", False), ("Bo", True),
    ]  # fmt: skip
    assert list(found[0]) == ["student", "quiz", "given", "right", "answer", "worked"]
    assert answer.stderr == "Ada: 1 of 1 right.\nBo: 1 of 2 right.\n"
    table = qkv("teach", "--answers", "class.csv").stdout
    assert re.search(rf"^Bo +{NAME}\.1 +13 +wrong +12$", table, re.M)
    assert taught.quizzes[0].worked[:30] in table
    assert qkv("-q", "teach", "--answers", "class.csv").stderr == ""


def test_an_unknown_quiz_is_named_with_near_ones(qkv, tmp_path):
    (tmp_path / "a.csv").write_text("quiz,answer\nself-atention.1,3\n")
    answer = qkv("teach", "--answers", "a.csv")
    assert (answer.code, answer.stdout) == (1, "")
    assert "no quiz 'self-atention.1'; did you mean self-attention.1" in answer.stderr
