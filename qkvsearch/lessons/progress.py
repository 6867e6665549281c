"""Which lessons a person has done: a small file among their data, and never a reason to stop."""

import json
from contextlib import suppress
from pathlib import Path

from qkvsearch.errors import DataError
from qkvsearch.files import write_file
from qkvsearch.lessons import LESSONS
from qkvsearch.user_files import data_folder

FILE = "lessons.json"


def done() -> frozenset[str]:
    """The lessons done so far; none where the file is missing, damaged or not to be read."""
    with suppress(OSError, ValueError, RuntimeError, RecursionError):
        found = json.loads(_path().read_text(encoding="utf-8"))
        if isinstance(found, dict) and isinstance(found.get("done"), list):
            return frozenset(name for name in LESSONS if name in found["done"])
    return frozenset()


def remember(lesson: str) -> bool:
    """Note that the lesson is done; whether that could be kept."""
    names = done() | {lesson}
    try:
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"done": [name for name in LESSONS if name in names]})
        write_file(path, f"{text}\n".encode())
    except (OSError, RuntimeError, DataError):  # the latter where there is no home at all
        return False
    return True


def following() -> str | None:
    """The first lesson that is not done; None where all are."""
    there = done()
    return next((name for name in LESSONS if name not in there), None)


def _path() -> Path:
    return data_folder() / FILE
