"""Every test of `teach` keeps its own progress, in English, and computes no lesson twice."""

from functools import cache

import pytest

from qkvsearch import lessons
from qkvsearch.lessons import Given, language, progress


@pytest.fixture(autouse=True)
def a_place_of_their_own(tmp_path, monkeypatch):
    """Progress is kept beside the test, and the language is English unless a test says so."""
    monkeypatch.setattr(progress, "data_folder", lambda: tmp_path / "data" / "qkvsearch")
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def computed():
    """A lesson by its name and language, computed once; what is given of one's own, every time."""
    compute = lessons.lesson

    @cache
    def of_the_course(name, spoken):
        with language(spoken):
            return compute(name)

    def lesson(name, given=None):
        if any(value is not None for value in vars(given or Given()).values()):
            return compute(name, given)
        return of_the_course(name, lessons.messages.spoken())

    return lesson


@pytest.fixture(autouse=True)
def no_lesson_twice(computed, monkeypatch):
    monkeypatch.setattr(lessons, "lesson", computed)


@pytest.fixture
def taught(computed):
    """The lesson that most tests read."""
    return computed("self-attention")
