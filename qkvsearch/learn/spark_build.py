"""Learn from a log that Spark has read, whose arrays may be larger than memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.scratch import GrowingArray
from qkvsearch.heads.component import TUNED
from qkvsearch.heads.stored_log import LogComponent
from qkvsearch.heads.stored_preferences import PreferencesComponent
from qkvsearch.heads.stored_ratings import RatingsComponent
from qkvsearch.models.preferences import settings_by_head
from qkvsearch.models.recommend_heads import COLLABORATIVE
from qkvsearch.store import BuildContents
from qkvsearch.tables.dataset import DistributedLog
from qkvsearch.tables.ids import Ids
from qkvsearch.tables.interactions import Interactions

if TYPE_CHECKING:
    from qkvsearch.engines.spark.spark_log import SparkLog

# About this many interactions are copied to this machine, where neighbours and ratings are learned.
MAX_PAIRS = 5_000_000
SAMPLED = (
    "Neighbours of items, and predicted ratings, are learned on one machine, from users drawn at "
    "random: {n:,} of {total:,} interactions. Embeddings are learned from all of them"
)
DTYPES = {"items": np.int32, "ratings": np.float32, "times": np.int64, "weights": np.float32}


def spark_log(log: DistributedLog) -> SparkLog:
    """Return the log as what it is, with its type."""
    from qkvsearch.engines.spark.spark_log import SparkLog

    assert isinstance(log, SparkLog)
    return log


def learn_from_spark(contents: BuildContents, log: SparkLog, progress: Progress) -> list[str]:
    """Add a log to a build, and the preferences and predicted ratings that are learned from it.
    Return a note if neighbours and ratings are those of a sample of users.
    """
    _store_log(contents, log, progress)
    settings = settings_by_head(contents.facts.get(TUNED, {}).get("settings", {}))
    factors = log.learn(settings[COLLABORATIVE], progress)
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


def _store_log(contents: BuildContents, log: SparkLog, progress: Progress) -> None:
    """Store the arrays of `LogComponent`, which may be larger than memory."""
    component, n_pairs = LogComponent(), len(log)
    component.drop(contents)
    contents.users = log.user_ids
    component.note_feedback(contents, log.feedback)
    has_times = "times" in log.facts.arrays
    component.note_size(contents, log.n_users, n_pairs, has_times, log.facts.times_comparable)
    columns = {name: GrowingArray(DTYPES[name]) for name in ("items", *log.facts.arrays)}
    starts = GrowingArray(np.int64)
    starts.fill(0, 1)
    for block in log.histories():
        starts.append(block.indptr[1:] + len(columns["items"]))
        for name, column in columns.items():
            column.append(getattr(block, name))
        progress("writing the log", len(columns["items"]), n_pairs)
    arrays = {name: column.whole() for name, column in columns.items()}
    component.put(
        contents, indptr=starts.whole(), **arrays, usual_weights=log.feedback.usual_weights
    )
