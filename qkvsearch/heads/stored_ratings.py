"""The stored model that predicts ratings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.heads.component import BuildModels, LearnedComponent
from qkvsearch.heads.interaction_rows import counts_by_item, rows_where
from qkvsearch.heads.stored_log import LogComponent
from qkvsearch.models.user_vectors import RatingFactors
from qkvsearch.store import BuildContents
from qkvsearch.store.array_spec import ArraySpec
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.ratings import ends_of


@dataclass(frozen=True)
class RatingsComponent(LearnedComponent[RatingFactors]):
    """The model of ratings: item biases and embeddings. A new item is rated like the mean item."""

    group: str = "ratings"
    arrays: ClassVar = {
        "item_biases": ArraySpec("f", ("items",), rows="interactions"),
        "item_embeddings": ArraySpec("f", ("items", "components"), rows="interactions"),
    }

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Fit `BiasedMF` and store it, if the log has ratings."""
        from qkvsearch.models.biased_mf import BiasedFactorization

        self.drop(contents)
        if len(log.rated()):
            model = BiasedFactorization(
                random_state=0, callback=partial(progress, "learning ratings")
            )
            self.store(contents, model.fit(log).factors_)

    def forget(self, contents: BuildContents, log: Interactions) -> None:
        rated = log.rated()
        if rated.ratings is None or not len(rated):
            self.drop(contents)
            return
        scale = LogComponent().feedback(contents).scale or ends_of(rated.ratings)
        mean = np.clip(rated.ratings.astype(np.float64), *scale).mean()
        is_rated = counts_by_item(rated) > 0
        arrays = {name: self.pending(contents, name) for name in self.arrays}
        self.put(contents, **{name: rows_where(is_rated, arrays[name]) for name in arrays})
        numbers = {"mean": float(mean), "lowest": float(scale[0]), "highest": float(scale[1])}
        contents.facts[self.group] = contents.facts[self.group] | numbers

    def store(self, contents: BuildContents, factors: RatingFactors) -> None:
        arrays, contents.facts[self.group] = factors.state()
        self.put(contents, **arrays)

    def load(self, models: BuildModels) -> RatingFactors:
        numbers = models.snapshot.facts[self.group]
        return RatingFactors.from_state(self.read(models.snapshot), numbers)
