"""The course, each lesson computed once, and the scripts that write pages about it."""

from functools import cache

import pytest

from qkvsearch.lessons import lesson
from tests import scripts


@pytest.fixture(scope="session")
def taught():
    """A lesson by its name, in English."""
    return cache(lesson)


@pytest.fixture(scope="session")
def script():
    """A script in docs/ by its name, as a module."""
    if not scripts.DOCS.is_dir():
        pytest.skip("not run from a checkout")
    return scripts.script
