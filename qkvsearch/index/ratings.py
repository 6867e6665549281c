"""The stored model of ratings: item biases and embeddings of a `BiasedMF`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from qkvsearch._utils.progress import Progress
from qkvsearch.collaborative.factors import RatingFactors
from qkvsearch.data.interactions import Interactions
from qkvsearch.index.component import BuildReader, LearnedComponent
from qkvsearch.index.schema import ArraySpec
from qkvsearch.storage import BuildContents


@dataclass(frozen=True)
class RatingsComponent(LearnedComponent[RatingFactors]):
    """Where interactions came with ratings. An item that joins is rated like the mean item."""

    group: str = "ratings"
    arrays: ClassVar = {
        "item_biases": ArraySpec("f", ("items",), rows="interactions"),
        "item_embeddings": ArraySpec("f", ("items", "components"), rows="interactions"),
    }

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Fit `BiasedMF` and store it; nothing without ratings."""
        from qkvsearch.collaborative.biased_mf import BiasedFactorization

        self.drop(contents)
        if len(log.rated()):
            model = BiasedFactorization(
                random_state=0, callback=partial(progress, "learning ratings")
            )
            self.store(contents, model.fit(log).factors_)

    def store(self, contents: BuildContents, factors: RatingFactors) -> None:
        arrays, contents.facts[self.group] = factors.state()
        self.put(contents, **arrays)

    def load(self, build: BuildReader) -> RatingFactors:
        numbers = build.snapshot.facts[self.group]
        return RatingFactors.from_state(self.read(build.snapshot), numbers)
