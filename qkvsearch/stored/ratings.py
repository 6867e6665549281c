"""The stored model of ratings: item biases and embeddings of a `BiasedMF`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qkvsearch.collaborative.factors import RatingFactors
from qkvsearch.progress import Progress
from qkvsearch.stored.part import BuildReader, Change, StoredPart
from qkvsearch.workspace import BuildContents


@dataclass(frozen=True)
class RatingsPart(StoredPart[RatingFactors]):
    """Where interactions came with ratings."""

    group: str = "ratings"
    arrays: ClassVar = ("item_biases", "item_embeddings")

    def store(self, contents: BuildContents, factors: RatingFactors) -> None:
        arrays, contents.facts[self.group] = factors.state()
        self.put(contents, **arrays)

    def load(self, build: BuildReader) -> RatingFactors:
        numbers = build.snapshot.facts[self.group]
        return RatingFactors.from_state(self.read_all(build.snapshot), numbers)

    def revise(self, contents: BuildContents, change: Change, progress: Progress) -> None:
        """Rows go along with their items; one that joins is rated like the mean item."""
        self.take_rows(contents, change.origin, *self.arrays)
