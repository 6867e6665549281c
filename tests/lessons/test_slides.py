"""The course as slides."""

import re
from html import escape

import pytest

from qkvsearch.lessons import LESSONS, language
from qkvsearch.lessons.exports.page.slides import to_slides

SLIDE = re.compile(
    r'<section class="slide[^>]*>.*?</section>\n?(?=<section class="slide|</main>)', re.S
)


def slides(text):
    return SLIDE.findall(text)


@pytest.mark.parametrize("name", LESSONS)
def test_a_step_has_a_slide_or_more_in_order_under_its_title(name, taught):
    titles = [
        re.search(r"</span> (.*?)</h2>", slide) for slide in slides(to_slides([taught(name)]))
    ]
    shown = list(dict.fromkeys(title[1] for title in titles if title))
    steps = [escape(step.title, quote=False) for step in taught(name).steps]
    assert shown[: len(steps)] == steps


def test_a_workbench_has_a_slide_alone_and_code_ends_its_step(taught):
    found = slides(to_slides([taught("masks")]))
    (bench,) = [slide for slide in found if "data-bench" in slide]
    assert "<figure" not in bench
    assert sum('class="code"' in slide for slide in found) == len(taught("masks").steps)


def test_questions_are_slides_or_left_out(taught):
    lesson = taught("masks")
    with_them, without = slides(to_slides([lesson])), slides(to_slides([lesson], quizzes=False))
    assert len(with_them) - len(without) == len(lesson.quizzes)
    assert "data-quiz" not in "".join(without)


def test_no_slide_loads_anything_and_each_language_has_its_own(taught):
    with language("zh"):
        text = to_slides([taught("masks")])
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    assert '<html lang="zh-Hans"' in text
    assert 'aria-label="下一张"' in text
