"""The course, each lesson computed once, and the scripts that write pages about it."""

from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from qkvsearch.lessons import lesson

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="session")
def taught():
    """A lesson by its name, in English."""
    return cache(lesson)


@pytest.fixture(scope="session")
def script():
    """A script in docs/ by its name, as a module."""
    if not DOCS.is_dir():
        pytest.skip("not run from a checkout")

    @cache
    def load(name):
        spec = spec_from_file_location(name, DOCS / f"{name}.py")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
