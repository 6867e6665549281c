"""A lesson as a file: each format."""

import pytest

from qkvsearch.lessons import COURSE_LESSONS, LESSONS, guidance

NAME = "self-attention"


@pytest.mark.parametrize(
    ("name", "begins"),
    [("a.md", "# "), ("a.html", "<!doctype html>"), ("a.ipynb", "{"), ("a.txt", "Lesson 7"),
     ("a.json", "{")],
)  # fmt: skip
def test_a_file_name_says_the_format(qkv, tmp_path, name, begins, taught):
    answer = qkv("teach", NAME, "-o", name)
    assert (answer.code, answer.stdout) == (0, "")
    text = (tmp_path / name).read_text("utf-8")
    assert text.lower().startswith(begins.lower())
    assert taught.steps[2].title in text
    assert ("\x1b" in text) is False


def test_json_of_one_lesson_is_an_object_and_of_all_an_array(qkv, taught, computed):
    one = qkv("teach", "0", "--format", "json").json()
    assert (one["name"], len(one["quizzes"])) == (LESSONS[0], len(computed(LESSONS[0]).quizzes))
    all_ = qkv("teach", "--all", "--no-quiz", "--format", "json").json()
    assert [entry["name"] for entry in all_] == list(COURSE_LESSONS)
    assert not any(entry["quizzes"] for entry in all_)
    step = qkv("teach", NAME, "--step", "4", "--format", "json").json()
    assert [entry["title"] for entry in step["steps"]] == [taught.steps[3].title]


def test_the_instructors_edition_has_every_answer_below_its_question(qkv, computed):
    text = qkv("teach", "masks", "--instructor").stdout
    assert guidance("masks").wrong in text
    assert guidance("masks").ask in text
    for quiz in computed("masks").quizzes:
        _, _, after = text.partition(f"**{quiz.name}**")
        assert f"**Answer:** {quiz.solution.replace('<', '&lt;')} — " in after
    assert qkv("teach", "masks", "--step", 1, "--instructor").code == 2
