"""Report damage: which files, what still works without them, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.index.component import main_head
from qkvsearch.index.remote_vectors import damaged_keys
from qkvsearch.storage import Snapshot, Workspace

# Groups of a build's arrays, by the first word of their names; see `_group_of`.
WORDS, PEOPLE = {"lexical", "codes", "words"}, {"interactions", "implicit", "ratings", "records"}
TOKENS, USERS, ALL = "tokens", "users", "all"
# The damaged files that a message names.
MAX_NAMED = 20
NOTHING, MEND = "nothing works until then", "mend it with qkvsearch repair"


def explained(error: DamagedError, build: Snapshot) -> WorkspaceError:
    """Return the error of a question about `build` with what still works, or one that says that the
    build was removed.
    """
    if not build.segments[-1].folder.is_dir():
        return WorkspaceError(
            f"{build.workspace}: the build that was open here, {build.name}, was removed, as "
            "forget does with every build that has the user's data; open the workspace again"
        )
    return DamagedError(error.file, error.what, f"{_still(build, [error])}; {MEND}")


def verified(workspace: Workspace) -> str:
    """Compare every file with its checksum. Raises one `DamagedError` for all that differ."""
    path, damaged = workspace.path, workspace.damaged_files()
    with suppress(WorkspaceError), closing(workspace.open()) as build:
        damaged += damaged_keys(build)
    if not damaged:
        return "all files as written"
    names = [f"{Path(error.file).relative_to(path)} ({error.what})" for error in damaged]
    works = NOTHING
    with suppress(WorkspaceError), closing(workspace.open()) as build:
        works = _still(build, damaged)
    files = "1 file is" if len(damaged) == 1 else f"{len(damaged)} files are"
    more = f", and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    what = f"{files} not as written: {', '.join(names[:MAX_NAMED])}{more}"
    raise DamagedError(path, what, f"{works}; {MEND}")


def _still(build: Snapshot, damaged: Iterable[DamagedError]) -> str:
    needs = {_group_of(error, build) for error in damaged} - {""}
    works = working(build.facts, needs)
    return f"what still works: {', '.join(works)}" if works else NOTHING


def _group_of(error: DamagedError, build: Snapshot) -> str:
    """Return the group of arrays that a damaged file is in, "" where it is of another build."""
    file = Path(error.file)
    if file.name.startswith("records."):
        return "records"
    if file.parent not in [segment.folder for segment in build.segments]:
        return ""
    group, _, array = file.name.removesuffix(".npy").partition(".")
    if array.startswith("token_"):
        return TOKENS
    if array == "user_directions":  # only `similar` of a user reads them
        return USERS
    is_array = file.suffix == ".npy" and group not in ("rows", "tombstones")
    return group if is_array else ALL


def working(facts: Mapping[str, Any], damaged: set[str]) -> list[str]:
    """Return the questions that a build answers without these groups of arrays.

    >>> facts = {"encoder": "static", "head_weights": {"lexical": 0.5, "static": 0.5}}
    >>> working(facts, {"static"})
    ['search with `heads` lexical', 'items']
    >>> working(facts, {"ratings"})
    ['search', 'similar', 'items']
    """
    if ALL in damaged:
        return []
    heads, main = list(facts["head_weights"]), main_head(facts)
    sound = ",".join(name for name in heads if name not in damaged)
    any_search = "search" if sound and not damaged & {*heads, *WORDS, TOKENS} else ""
    questions = [
        any_search or (f"search with `heads` {sound}" if not damaged & WORDS else ""),
        "" if damaged & {*PEOPLE, main} else "recommend",
        "" if damaged & {"implicit", main} else "similar",
        "items",
    ]
    return [question for question in questions if question]
