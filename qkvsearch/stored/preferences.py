"""The stored preferences: item embeddings learned from who interacted with what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from qkvsearch.collaborative.cold_start import fit_text_map, place_cold_items
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.data.interactions import Interactions
from qkvsearch.labelled import unit_rows
from qkvsearch.progress import Progress
from qkvsearch.retrieval import DenseKeys
from qkvsearch.stored.dense import DensePart
from qkvsearch.stored.log import LogPart
from qkvsearch.stored.part import BuildReader, Change, LearnedPart, main_head, places
from qkvsearch.workspace import BuildContents

# The fact that says with which settings preferences were learned, and how those were found; there
# is none where they are the default ones.
TUNED = "tuned"


class StoredPreferences(NamedTuple):
    """factors: to recommend by, with cold items placed by their text. unit_rows: the embeddings of
    the others at length 1, to compare items by. item_counts: int32 (n_items,), how many users
    interacted with each item.
    """

    factors: ImplicitFactors
    unit_rows: DenseKeys
    item_counts: np.ndarray


@dataclass(frozen=True)
class PreferencesPart(LearnedPart[StoredPreferences]):
    """text_map is the matrix that places an item by its text, where text tells of preferences."""

    group: str = "implicit"
    arrays: ClassVar = ("item_embeddings", "gram", "item_directions", "item_counts", "text_map")

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Fit `ImplicitALS` to a log, with the settings among the build's facts, and store it."""
        from qkvsearch.collaborative.als import ImplicitALS

        model = ImplicitALS(
            **contents.facts.get(TUNED, {}).get("settings", {}),
            random_state=0,
            callback=partial(progress, "learning preferences"),
        )
        feedback = LogPart().feedback(contents)
        confidences = feedback.confidences(log.items, log.ratings, log.weights)
        self.store(contents, model.fit(log.matrix(confidences)).factors_, log)

    def store(self, contents: BuildContents, factors: ImplicitFactors, log: Interactions) -> None:
        """Where the main head's keys are stored already."""
        arrays, contents.facts[self.group] = factors.state()
        keys = DensePart(main_head(contents.facts)).pending(contents, "keys")
        self.put(
            contents,
            **arrays,
            item_directions=unit_rows(factors.item_embeddings),
            item_counts=np.bincount(log.items, minlength=len(log.item_ids)).astype(np.int32),
            text_map=fit_text_map(keys, factors.item_embeddings),
        )

    def load(self, build: BuildReader) -> StoredPreferences:
        arrays = self.read_all(build.snapshot)
        directions, counts = DenseKeys(arrays.pop("item_directions")), arrays.pop("item_counts")
        text_map = arrays.pop("text_map", None)
        if text_map is not None:
            keys = build.load(DensePart(build.main_head)).keys.vectors
            embeddings = place_cold_items(arrays["item_embeddings"], keys, text_map, counts == 0)
            arrays["item_embeddings"] = embeddings
        factors = ImplicitFactors.from_state(arrays, build.snapshot.facts[self.group])
        return StoredPreferences(factors, directions, counts)

    def revise(self, contents: BuildContents, change: Change, progress: Progress) -> None:
        """Embeddings go along with their items; who joins has none, and is placed by its text."""
        rows = ("item_embeddings", "item_directions", "item_counts")
        self.take_rows(contents, change.origin, *rows)
        self.share(contents, "text_map")
        embeddings = self.read(change.former.snapshot, "item_embeddings")
        gone = places(change.origin, len(embeddings)) < 0
        if not embeddings[gone].any():
            self.share(contents, "gram")
            return
        kept = embeddings[~gone].astype(np.float64)
        self.put(contents, gram=kept.T @ kept)
        numbers = contents.facts[self.group]
        known = numbers["n_items"] - np.count_nonzero(embeddings[gone].any(axis=1))
        # At least one, or the solve for a user without a history would divide by zero.
        contents.facts[self.group] = numbers | {"n_items": max(int(known), 1)}
