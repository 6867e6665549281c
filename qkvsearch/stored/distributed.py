"""Parts learned from a log that an engine holds: its blocks pass by, and are on disk.

What grows with users is written block by block, and is never in the memory of this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from qkvsearch.collaborative.confidences import Feedback
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.collaborative.strength import level_of, likes_drawn
from qkvsearch.data.ids import Ids
from qkvsearch.data.interactions import Interactions
from qkvsearch.progress import Progress
from qkvsearch.stored.log import LogPart
from qkvsearch.stored.preferences import TUNED, USERS, PreferencesPart
from qkvsearch.stored.ratings import RatingsPart
from qkvsearch.workspace import BuildContents
from qkvsearch.workspace.arrays import ArrayFile

# Up to so many ratings are brought to this machine, where the model of ratings learns.
RATINGS_HERE = 5_000_000
NO_RATINGS = (
    "Left out: predicted ratings; the log has {n:,} ratings, they are learned on one machine, and "
    "of a log that an engine holds up to {most:,} are"
)


class Block(Protocol):
    """Some users' histories: int64 indptr, int32 items, and what of the others there is."""

    indptr: np.ndarray
    items: np.ndarray
    ratings: np.ndarray | None
    times: np.ndarray | None
    weights: np.ndarray | None


class DistributedLog(Protocol):
    """A log of which nothing that grows with users is here. arrays: of "ratings", "times" and
    "weights" those that it has. item_counts, n_liking: int32 (n_items,).
    """

    item_ids: Ids

    @property
    def n_users(self) -> int: ...
    @property
    def user_ids(self) -> Any: ...
    @property
    def times_comparable(self) -> bool: ...
    @property
    def arrays(self) -> list[str]: ...
    @property
    def feedback(self) -> Feedback: ...
    @property
    def item_counts(self) -> np.ndarray: ...
    @property
    def n_liking(self) -> np.ndarray: ...
    def __len__(self) -> int: ...
    def histories(self) -> Iterator[Block]: ...
    def learn(self, settings: Mapping[str, Any], progress: Progress) -> ImplicitFactors: ...
    def likes_at(self, drawn: np.ndarray) -> np.ndarray: ...
    def directions(self, factors: ImplicitFactors) -> Iterator[np.ndarray]: ...


DTYPES = {"items": np.int32, "ratings": np.float32, "times": np.int64, "weights": np.float32}


def learn(
    contents: BuildContents, log: DistributedLog, folder: Path, progress: Progress
) -> list[str]:
    """Learn preferences, and ratings where they are few enough; add them and the log to a build.
    folder: of the file system on which the build will be. Returns what was left out, for a person.
    """
    _store_log(contents, log, folder, progress)
    settings = contents.facts.get(TUNED, {}).get("settings", {})
    factors = log.learn(settings, progress)
    n_likes = int(log.n_liking.sum())
    level = level_of(factors, log.likes_at(likes_drawn(n_likes)))
    part = PreferencesPart()
    part.put_learned(contents, factors, log.item_counts, log.n_liking, level)
    name = part.name_of(USERS)
    shape = log.n_users, factors.item_embeddings.shape[1]
    with ArrayFile(folder / f"{name}.npy", np.float32, shape) as file:
        for found in log.directions(factors):
            progress("placing users", file.n_rows, log.n_users)
            file.append(found)
    progress("placing users", log.n_users, log.n_users)
    contents.shared[f"{name}.npy"] = file.stored
    return _learn_ratings(contents, log, progress)


def _store_log(
    contents: BuildContents, log: DistributedLog, folder: Path, progress: Progress
) -> None:
    """The arrays of `LogPart`, in files."""
    part, n_pairs = LogPart(), len(log)
    part.drop(contents)
    contents.users = log.user_ids
    part.note_feedback(contents, log.feedback)
    has_times = "times" in log.arrays
    part.note_size(contents, log.n_users, n_pairs, has_times, log.times_comparable)
    names = ["items", *log.arrays]
    files = {
        name: ArrayFile(folder / f"{part.name_of(name)}.npy", DTYPES[name], (n_pairs,))
        for name in names
    }
    with ArrayFile(folder / f"{part.name_of('indptr')}.npy", np.int64, (log.n_users + 1,)) as ends:
        ends.append(np.zeros(1, np.int64))
        for block in log.histories():
            ends.append(block.indptr[1:] + files["items"].n_rows)
            for name, file in files.items():
                file.append(getattr(block, name))
            progress("writing the log", files["items"].n_rows, n_pairs)
    for name, file in files.items():
        file.close()
        contents.shared[f"{part.name_of(name)}.npy"] = file.stored
    contents.shared[f"{part.name_of('indptr')}.npy"] = ends.stored
    part.put(contents, usual_weights=log.feedback.usual_weights)


def _learn_ratings(contents: BuildContents, log: DistributedLog, progress: Progress) -> list[str]:
    part = RatingsPart()
    part.drop(contents)
    if "ratings" not in log.arrays:
        return []
    if len(log) > RATINGS_HERE:
        return [NO_RATINGS.format(n=len(log), most=RATINGS_HERE)]
    pending = partial(LogPart().pending, contents)
    lengths = np.diff(pending("indptr"))
    here = Interactions(
        users=np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
        items=pending("items"),
        user_ids=Ids(map(str, range(log.n_users)), integer=True),
        item_ids=log.item_ids,
        ratings=pending("ratings"),
        scale=log.feedback.scale,
    )
    part.learn(contents, here, progress)
    return []
