"""Tastes learned anew with other settings; all else of the build stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch.collaborative.feedback import confidences
from qkvsearch.errors import WorkspaceError
from qkvsearch.progress import Progress
from qkvsearch.revision.items import without_items
from qkvsearch.revision.models import revised_contents
from qkvsearch.stored import StoredModels, store_implicit
from qkvsearch.stored.kinds import TUNED
from qkvsearch.workspace import BuildContents, Snapshot, Workspace


def learn_tastes(
    path: str | Path, tuned: Mapping[str, Any] | None, progress: Progress | None = None
) -> None:
    """Fit `ImplicitALS` to the whole log of the workspace at `path`, and publish.

    tuned: {"settings": its parameters, …}, kept among the build's facts; None for the default
    settings. Where another build is published meanwhile, it begins again from that one. Raises
    `WorkspaceError` where there are no interactions; what was there before then stays.
    """
    workspace = Workspace(path)
    report = progress or (lambda stage, done, total: None)
    workspace.revise(lambda build: workspace.publish(_with_tastes(build, tuned, report)))


def _with_tastes(
    build: Snapshot, tuned: Mapping[str, Any] | None, report: Progress
) -> BuildContents:
    from qkvsearch.collaborative.als import ImplicitALS

    log = StoredModels(build).log()
    if log is None:
        raise WorkspaceError(
            f"{build.folder.parent.parent}: nobody's interactions are here to learn from; build "
            "with `interactions`"
        )
    settings = tuned["settings"] if tuned else {}
    weights = confidences(log.ratings, len(log), build.facts.get("rating_scale"))
    model = ImplicitALS(
        **settings, random_state=0, callback=lambda i, n: report("learning tastes", i, n)
    ).fit(log.matrix(weights))
    nobody_leaves = np.zeros(build.facts["n_items"], dtype=bool)
    contents = revised_contents(build, without_items(build, nobody_leaves), report)
    store_implicit(contents, model.factors_)
    contents.shared -= set(contents.arrays)
    contents.facts.pop(TUNED, None)
    if tuned:
        contents.facts[TUNED] = dict(tuned)
    return contents
