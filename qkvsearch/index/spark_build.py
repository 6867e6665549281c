"""Learn from a log that Spark has read, whose arrays are written to files block by block."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.collaborative.preferences import head_settings
from qkvsearch.data.ids import Ids
from qkvsearch.data.interactions import Interactions
from qkvsearch.index.interaction_log import LogComponent
from qkvsearch.index.learned_models import TUNED, PreferencesComponent, RatingsComponent
from qkvsearch.storage import BuildContents
from qkvsearch.storage.array_files import ArrayFile

if TYPE_CHECKING:
    from qkvsearch.engines.spark.spark_log import SparkLog

# About this many interactions are copied to this machine, where neighbours and ratings are learned.
MAX_PAIRS = 5_000_000
SAMPLED = (
    "Neighbours of items, and predicted ratings, are learned on one machine, from users drawn at "
    "random: {n:,} of {total:,} interactions. Embeddings are learned from all of them"
)
DTYPES = {"items": np.int32, "ratings": np.float32, "times": np.int64, "weights": np.float32}


def learn_from_spark(
    contents: BuildContents, log: SparkLog, folder: Path, progress: Progress
) -> list[str]:
    """Add a log to a build, and the preferences and predicted ratings that are learned from it.

    folder: for temporary files, in the file system of the build. Return a note if neighbours and
    ratings are those of a sample of users.
    """
    _store_log(contents, log, folder, progress)
    settings, _ = head_settings(contents.facts.get(TUNED, {}).get("settings", {}))
    factors = log.learn(settings, progress)
    local = _local_log(contents, log)
    confidences = local.matrix(log.feedback.confidences(local.items, local.ratings, local.weights))
    component = PreferencesComponent()
    preferences = component.learned(contents, confidences, progress, factors)
    component.store(contents, preferences, log.blocks.counts.pairs, log.blocks.counts.likes)
    RatingsComponent().learn(contents, local, progress)
    is_whole = len(local) == len(log)
    return [] if is_whole else [SAMPLED.format(n=len(local), total=len(log))]


def _local_log(contents: BuildContents, log: SparkLog) -> Interactions:
    """Return the stored log, or that of a sample of its users, with numbers as their ids."""
    stored: dict[str, Any] = {
        name: LogComponent().pending(contents, name)
        for name in ("indptr", "items", *log.facts.arrays)
    }
    starts = stored.pop("indptr")
    lengths = np.diff(starts)
    if len(log) > MAX_PAIRS:
        is_drawn = np.random.default_rng(0).random(log.n_users) < MAX_PAIRS / len(log)
        users = np.flatnonzero(is_drawn)
        lengths = lengths[users]
        first_rows = np.cumsum(lengths) - lengths
        rows = np.repeat(starts[users] - first_rows, lengths) + np.arange(lengths.sum())
        stored = {name: values[rows] for name, values in stored.items()}
    return Interactions(
        users=np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
        user_ids=Ids(map(str, range(len(lengths))), integer=True),
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
