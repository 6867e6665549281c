"""Learn from a log that Spark has read, whose arrays are written to files block by block."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.collaborative.preferences import Preferences, head_settings
from qkvsearch.data.ids import Ids
from qkvsearch.data.interactions import Interactions
from qkvsearch.index.interaction_log import LogComponent
from qkvsearch.index.learned_models import TUNED, USERS, PreferencesComponent, RatingsComponent
from qkvsearch.storage import BuildContents
from qkvsearch.storage.array_files import ArrayFile

if TYPE_CHECKING:
    from qkvsearch.engines.spark.spark_log import SparkLog

# Up to this many interactions are copied to this machine, where neighbours are learned.
MAX_PAIRS = 5_000_000
NO_NEIGHBOURS = (
    "Left out: neighbours of items; they are learned on one machine, which takes up to {most:,} of "
    "an engine's interactions, and the log has {n:,}: recommendations are by embeddings alone"
)
# Up to this many ratings are copied to this machine, where the model of ratings learns.
MAX_RATINGS = 5_000_000
NO_RATINGS = (
    "Left out: predicted ratings; they are learned on one machine, which takes up to {most:,} of "
    "an engine's ratings, and the log has {n:,}"
)
DTYPES = {"items": np.int32, "ratings": np.float32, "times": np.int64, "weights": np.float32}


def learn_from_spark(
    contents: BuildContents, log: SparkLog, folder: Path, progress: Progress
) -> list[str]:
    """Add a log to a build, and the preferences and predicted ratings that are learned from it.

    folder: for temporary files, in the file system of the build. Return notes about what was left
    out.
    """
    _store_log(contents, log, folder, progress)
    settings, _ = head_settings(contents.facts.get(TUNED, {}).get("settings", {}))
    factors = log.learn(settings, progress)
    component = PreferencesComponent()
    preferences, notes = _with_neighbours(contents, factors, log, progress)
    component.put_learned(contents, preferences, log.blocks.counts.pairs, log.blocks.counts.likes)
    name = component.name_of(USERS)
    shape = log.n_users, factors.item_embeddings.shape[1]
    with ArrayFile(folder / f"{name}.npy", np.float32, shape) as file:
        for directions in log.directions(factors):
            progress("placing users", file.n_rows, log.n_users)
            file.append(directions)
    progress("placing users", log.n_users, log.n_users)
    contents.shared[f"{name}.npy"] = file.stored
    return [*notes, *_learn_ratings(contents, log, progress)]


def _with_neighbours(
    contents: BuildContents, factors: ImplicitFactors, log: SparkLog, progress: Progress
) -> tuple[Preferences, list[str]]:
    """Learn neighbours here, beside embeddings of the engine. Return notes on what was left out."""
    if len(log) > MAX_PAIRS:
        return Preferences(factors), [NO_NEIGHBOURS.format(n=len(log), most=MAX_PAIRS)]
    local = _local_log(contents, log)
    confidences = local.matrix(log.feedback.confidences(local.items, local.ratings, local.weights))
    component = PreferencesComponent()
    learned = component.learned(contents, confidences, progress, factors)
    return learned, []


def _local_log(contents: BuildContents, log: SparkLog) -> Interactions:
    """Return the stored log, with the numbers of users as their ids."""
    stored: dict[str, Any] = {
        name: LogComponent().pending(contents, name)
        for name in ("indptr", "items", *log.facts.arrays)
    }
    lengths = np.diff(stored.pop("indptr"))
    return Interactions(
        users=np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
        user_ids=Ids(map(str, range(log.n_users)), integer=True),
        item_ids=log.item_ids,
        scale=log.feedback.scale,
        **stored,
    )


def _store_log(contents: BuildContents, log: SparkLog, folder: Path, progress: Progress) -> None:
    """Write the arrays of `LogComponent` to files."""
    component, n_pairs = LogComponent(), len(log)
    component.drop(contents)
    contents.users = log.user_ids
    component.note_feedback(contents, log.feedback)
    has_times = "times" in log.facts.arrays
    component.note_size(contents, log.n_users, n_pairs, has_times, log.facts.times_comparable)
    files = {
        name: ArrayFile(folder / f"{component.name_of(name)}.npy", DTYPES[name], (n_pairs,))
        for name in ("items", *log.facts.arrays)
    }
    with ArrayFile(
        folder / f"{component.name_of('indptr')}.npy", np.int64, (log.n_users + 1,)
    ) as ends:
        ends.append(np.zeros(1, np.int64))
        for block in log.histories():
            ends.append(block.indptr[1:] + files["items"].n_rows)
            for name, file in files.items():
                file.append(getattr(block, name))
            progress("writing the log", files["items"].n_rows, n_pairs)
    for name, file in files.items():
        file.close()
        contents.shared[f"{component.name_of(name)}.npy"] = file.stored
    contents.shared[f"{component.name_of('indptr')}.npy"] = ends.stored
    component.put(contents, usual_weights=log.feedback.usual_weights)


def _learn_ratings(contents: BuildContents, log: SparkLog, progress: Progress) -> list[str]:
    """Learn predicted ratings on this machine. Return notes about what was left out."""
    component = RatingsComponent()
    component.drop(contents)
    if "ratings" not in log.facts.arrays:
        return []
    if len(log) > MAX_RATINGS:
        return [NO_RATINGS.format(n=len(log), most=MAX_RATINGS)]
    component.learn(contents, _local_log(contents, log), progress)
    return []
