"""Every point of the course is shown by a step and checked by a test that bears its number."""

import pytest

from qkvsearch.lessons import LESSONS, guidance

POINTS = list(range(1, 71))

pytestmark = pytest.mark.xdist_group("the whole course")  # computed once, by one process


@pytest.fixture(scope="module")
def lessons(taught):
    return [taught(name) for name in LESSONS]


@pytest.fixture(scope="module")
def generate(script):
    return script("generate")


def test_every_point_is_shown_by_a_step(lessons):
    shown = {point for lesson in lessons for step in lesson.steps for point in step.points}
    assert sorted(set(POINTS) - shown) == []
    assert sorted(shown - set(POINTS)) == []


def test_the_table_of_points_is_what_generate_writes(generate, lessons):
    assert len(generate.WHAT) == len(POINTS)
    hint = "run python docs/generate.py"
    assert generate.POINTS.read_text(encoding="utf-8") == generate.points_page(lessons), hint


def test_the_tables_of_the_teachers_page_are_what_generate_writes(generate, lessons):
    written = generate.TEACHING.read_text(encoding="utf-8")
    assert written == generate.teaching_page(written, lessons), "run python docs/generate.py"
    assert all(f"`{name}`" in written for name in LESSONS)


def test_lessons_have_the_names_and_numbers_of_the_course(lessons):
    assert [one.name for one in lessons] == list(LESSONS)
    assert [one.number for one in lessons] == sorted({one.number for one in lessons})


def test_every_lesson_has_its_guidance():
    assert all(all(vars(guidance(name)).values()) for name in LESSONS)
