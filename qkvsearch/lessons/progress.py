"""How far a person has come: a small file among their data, and never a reason to stop."""

import json
import logging
from contextlib import suppress
from typing import Any

from qkvsearch._utils.files import write_file
from qkvsearch._utils.user_files import data_folder
from qkvsearch.errors import DataError
from qkvsearch.lessons import COURSE_LESSONS, LESSONS

log = logging.getLogger("qkvsearch.lessons")
FILE = "lessons.json"
# Where a damaged file is put, so that its owner can look into it.
SET_ASIDE = "lessons-damaged.json"


def done() -> frozenset[str]:
    """Return the lessons done so far; none if the file is missing, damaged or unreadable."""
    names = _kept().get("done")
    return frozenset(name for name in LESSONS if isinstance(names, list) and name in names)


def places() -> dict[str, int]:
    """Return the lessons begun and not finished, the latest last: by name, the step, from
    1, that comes next.
    """
    positions = _kept().get("at")
    pairs = positions.items() if isinstance(positions, dict) else ()
    return {
        name: step for name, step in pairs if name in LESSONS and type(step) is int and step > 0
    }


def remember(lesson: str) -> bool:
    """Note that the lesson is done; whether that could be kept."""
    others = {name: step for name, step in places().items() if name != lesson}
    return _keep(done() | {lesson}, others)


def keep_place(lesson: str, step: int) -> bool:
    """Note that this step comes next; whether that could be kept."""
    others = {name: at for name, at in places().items() if name != lesson}
    return _keep(done(), {**others, lesson: step})


def following() -> str | None:
    """Return the lesson left unfinished last, or else the first of the course that is not done.
    None where all are.
    """
    begun = list(places())
    if begun:
        return begun[-1]
    finished = done()
    return next((name for name in COURSE_LESSONS if name not in finished), None)


def _kept() -> dict[str, Any]:
    """Return what is stored; nothing where the file is missing or damaged, or there is no home."""
    with suppress(OSError, RuntimeError):
        path = data_folder() / FILE
        content = path.read_bytes()
        with suppress(ValueError, RecursionError):
            stored = json.loads(content)
            if isinstance(stored, dict):
                return stored
        path.replace(path.with_name(SET_ASIDE))
        log.warning("%s was damaged and is now %s: the progress begins anew", path, SET_ASIDE)
    return {}


def _keep(names: frozenset[str], at: dict[str, int]) -> bool:
    record: dict[str, Any] = {"done": [name for name in LESSONS if name in names]}
    if at:
        record["at"] = at
    try:
        path = data_folder() / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, f"{json.dumps(record)}\n".encode())
    except (OSError, RuntimeError, DataError):  # the latter where there is no home at all
        return False
    return True
