"""Preferences learned anew with other settings; all else of the build stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch.errors import WorkspaceError
from qkvsearch.progress import Progress
from qkvsearch.revision.contents import revised_contents
from qkvsearch.revision.items import without_items
from qkvsearch.stored import TUNED, PreferencesPart, StoredModels
from qkvsearch.workspace import BuildContents, Snapshot, Workspace


def learn_preferences(
    path: str | Path, tuned: Mapping[str, Any] | None, progress: Progress | None = None
) -> None:
    """Fit `ImplicitALS` to the whole log of the workspace at `path`, and publish.

    tuned: {"settings": its parameters, …}, kept among the build's facts; None for the default
    settings. Where another build is published meanwhile, it begins again from that one. Raises
    `WorkspaceError` where there are no interactions; what was there before then stays.
    """
    workspace = Workspace(path)
    progress = progress or (lambda stage, done, total: None)
    workspace.revise(lambda build: workspace.publish(_learned_anew(build, tuned, progress)))


def _learned_anew(
    build: Snapshot, tuned: Mapping[str, Any] | None, progress: Progress
) -> BuildContents:
    log = StoredModels(build).log()
    if log is None:
        raise WorkspaceError(
            f"{build.folder.parent.parent}: nobody's interactions are here to learn from; build "
            "with `interactions`"
        )
    nobody_leaves = np.zeros(build.facts["n_items"], dtype=bool)
    contents = revised_contents(without_items(build, nobody_leaves), progress)
    contents.facts.pop(TUNED, None)
    if tuned:
        contents.facts[TUNED] = dict(tuned)
    PreferencesPart().learn(contents, log, progress)
    return contents
