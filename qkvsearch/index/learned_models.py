"""What is learned from interactions: preferences, predicted ratings, and what comes next."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from qkvsearch._utils.progress import Progress, silent
from qkvsearch.collaborative.cold_start import fit_text_map, place_cold_items
from qkvsearch.collaborative.factors import ImplicitFactors, RatingFactors
from qkvsearch.collaborative.strength import Strength, usual_level
from qkvsearch.data.files.scratch import counts_of, scratch_array
from qkvsearch.data.interactions import Interactions
from qkvsearch.errors import DamagedError, QkvError
from qkvsearch.index.component import ArraySpec, LearnedComponent, main_head
from qkvsearch.index.dense import DenseComponent
from qkvsearch.index.interaction_log import LogComponent
from qkvsearch.retrieval import DenseKeys
from qkvsearch.storage import BuildContents, Snapshot
from qkvsearch.text.labelled import unit_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from qkvsearch.collaborative.sequences.network import NextItemModel
    from qkvsearch.index import StoredModels

# The fact that says with which settings preferences were learned, and how those were found; there
# is none where they are the default ones.
TUNED = "tuned"
# The fact that says below which best score recommendations rest on too little.
WEAK_BELOW = "weak_below"
# Users' vectors: by the log of a base, and by the Gram matrix that it has beside them.
USERS = "user_directions"
# Users are solved so many at a time.
BLOCK = 1 << 14


class StoredPreferences(NamedTuple):
    """factors: to recommend by, with cold items placed by their text. unit_rows: the embeddings of
    the others at length 1, to compare items by. item_counts: int32 (n_items,), how many users
    interacted with each item. strength: what tells recommendations from too little.
    """

    factors: ImplicitFactors
    unit_rows: DenseKeys
    item_counts: np.ndarray
    strength: Strength


@dataclass(frozen=True)
class PreferencesComponent(LearnedComponent[StoredPreferences]):
    """text_map is the matrix that places an item by its text, where text tells of preferences.
    user_directions are the users' embeddings at length 1, by the log alone. They are not what a
    user is solved to where a segment has another Gram matrix, as items that are known left: then
    they are solved when they are asked for, and anew where segments are merged.
    """

    group: str = "implicit"
    arrays: ClassVar = {
        "item_embeddings": ArraySpec("f", ("items", "components"), rows="interactions"),
        "gram": ArraySpec("f", ("components", "components")),
        "unit_rows": ArraySpec("f", ("items", "components"), rows="interactions"),
        "item_counts": ArraySpec("i", ("items",), rows="interactions"),
        "n_liking": ArraySpec("i", ("items",), rows="interactions"),
        "text_map": ArraySpec("f", ("text_components", "components")),
        USERS: ArraySpec("f", ("users", "components")),
    }

    def learn(
        self,
        contents: BuildContents,
        log: Interactions,
        progress: Progress,
        estimator: Callable[..., Any] | None = None,
    ) -> None:
        """Fit `ImplicitALS`, or another estimator of its parameters, to a log, with the settings
        among the build's facts, and store it.
        """
        from qkvsearch.collaborative.implicit_als import AlternatingLeastSquares

        model = (estimator or AlternatingLeastSquares)(
            **contents.facts.get(TUNED, {}).get("settings", {}),
            random_state=0,
            callback=partial(progress, "learning preferences"),
        )
        feedback = LogComponent().feedback(contents)
        confidences = feedback.confidences(log.items, log.ratings, log.weights)
        factors = model.fit(log.matrix(confidences)).factors_
        self.store(contents, factors, log, confidences, progress)

    def store(
        self,
        contents: BuildContents,
        factors: ImplicitFactors,
        log: Interactions,
        confidences: np.ndarray,
        progress: Progress = silent,
    ) -> None:
        """Where the main head's keys are stored already. confidences (n,): of the interactions."""
        liked = confidences > 0
        self.put_learned(contents, factors, _counts(log), _counts(log, liked))
        solved = solved_directions(factors, log.matrix(confidences), progress)
        self.put(contents, user_directions=solved)

    def put_learned(
        self,
        contents: BuildContents,
        factors: ImplicitFactors,
        item_counts: np.ndarray,
        n_liking: np.ndarray,
    ) -> None:
        """Store all but the users' vectors."""
        arrays, contents.facts[self.group] = factors.state()
        keys = DenseComponent(main_head(contents.facts)).pending(contents, "keys")
        self.put(
            contents,
            **arrays,
            unit_rows=unit_rows(factors.item_embeddings),
            item_counts=item_counts,
            n_liking=n_liking,
            text_map=fit_text_map(keys, factors.item_embeddings),
        )
        contents.facts[WEAK_BELOW] = usual_level(factors, n_liking)

    def drop(self, contents: BuildContents) -> None:
        super().drop(contents)
        contents.facts.pop(WEAK_BELOW, None)

    def load(self, models: StoredModels) -> StoredPreferences:
        sizes: dict[str, int] = {}
        keys: Any = None  # an array, or as one
        if "text_map" in self.names_in(models.snapshot):
            keys = models.load(DenseComponent(models.main_head)).keys.vectors
            sizes["text_components"] = keys.shape[1]
        names = [name for name in self.names_in(models.snapshot) if name != USERS]
        arrays = self.read(models.snapshot, *names, **sizes)
        rows, counts = DenseKeys(arrays.pop("unit_rows")), arrays.pop("item_counts")
        level = float(models.snapshot.facts[WEAK_BELOW])
        strength = Strength(level, arrays.pop("n_liking"))
        if keys is not None:
            embeddings, text_map = arrays["item_embeddings"], arrays.pop("text_map")
            placed = place_cold_items(embeddings, keys, text_map, counts == 0)
            arrays["item_embeddings"] = placed
        factors = ImplicitFactors.from_state(arrays, models.snapshot.facts[self.group])
        return StoredPreferences(factors, rows, counts, strength)

    def user_directions(self, models: StoredModels, progress: Progress) -> np.ndarray:
        """(n_users, d), float32, memory-mapped where they are stored: the embeddings of the users
        of the log at length 1, zeros for who likes nothing. What was recorded since is not in them.
        """
        factors = models.load(self).factors
        if self._are_solved(models.snapshot):
            sizes = {"users": models.snapshot.facts["n_users"], "components": len(factors.gram)}
            return self.read(models.snapshot, USERS, **sizes)[USERS]
        stored = models.load(LogComponent())
        log = stored.interactions()
        confidences = stored.feedback.confidences(log.items, log.ratings, log.weights)
        return solved_directions(factors, log.matrix(confidences), progress)

    def _are_solved(self, snapshot: Snapshot) -> bool:
        """Whether the stored vectors are those that the build's Gram matrix gives."""
        return self.name_of(USERS) in snapshot and not any(
            segment.has(self.name_of("gram")) for segment in snapshot.segments[1:]
        )

    def merge(self, contents: BuildContents, models: StoredModels, progress: Progress) -> None:
        super().merge(contents, models, progress)
        if not self._are_solved(models.snapshot):
            self.put(contents, **{USERS: None})
            # A log that cannot be read is told of by its own part, and mended without this one.
            with suppress(DamagedError):
                self.put(contents, **{USERS: self.user_directions(models, progress)})

    def forget_user(self, contents: BuildContents, row: int) -> None:
        """Take the vector of the user in this row out of a whole build."""
        if self.is_pending(contents, USERS):
            self.put(contents, **{USERS: np.delete(self.pending(contents, USERS), row, axis=0)})

    def withdraw(self, contents: BuildContents, models: StoredModels, leaving: np.ndarray) -> None:
        """Sums over all items lose what leaves."""
        embeddings = self.rows_at(models.snapshot, "item_embeddings", leaving).astype(np.float64)
        known = int(np.count_nonzero(embeddings.any(axis=1)))
        if known:
            gram = self.read(models.snapshot, "gram")["gram"]
            self.put(contents, gram=gram - embeddings.T @ embeddings)
        numbers = contents.facts[self.group]
        # At least one, or the solve for a user without a history would divide by zero.
        contents.facts[self.group] = numbers | {"n_items": max(numbers["n_items"] - known, 1)}


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

    def load(self, models: StoredModels) -> RatingFactors:
        numbers = models.snapshot.facts[self.group]
        return RatingFactors.from_state(self.read(models.snapshot), numbers)


@dataclass(frozen=True)
class NextItemComponent(LearnedComponent["NextItemModel"]):
    """Where a build was asked for it. An item that joins has zeros, and no score."""

    group: str = "next_item"
    arrays: ClassVar = {
        "item_embeddings": ArraySpec("f", ("items", "components"), rows="interactions"),
        "positions": ArraySpec("f", ("positions", "components")),
        "encoder": ArraySpec("f", ("weights",)),
    }

    def check(self, log: Interactions | None) -> None:
        """Raise `QkvError` where what comes next cannot be learned."""
        from qkvsearch.collaborative.sequences.next_item import NextItem

        if log is None:
            raise QkvError("nothing comes next where nobody's interactions were given")
        NextItem().check(log)

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Train `NextItem`, which takes minutes, and store what answers."""
        from qkvsearch.collaborative.sequences.next_item import NextItem

        callback = partial(progress, "learning what comes next")
        self.store(contents, NextItem(random_state=0, callback=callback).fit(log).model_)

    def store(self, contents: BuildContents, model: NextItemModel) -> None:
        arrays, contents.facts[self.group] = model.state()
        self.put(contents, **arrays)

    def load(self, models: StoredModels) -> NextItemModel:
        from qkvsearch.collaborative.sequences.network import NextItemModel

        arrays, numbers = self.read(models.snapshot), models.snapshot.facts[self.group]
        try:
            return NextItemModel.from_state(arrays, numbers)
        except ValueError as error:
            file = models.snapshot.file(f"{self.group}.encoder")
            raise DamagedError(file.path, f"not the weights of an encoder: {error}") from None


def directions(embeddings: np.ndarray) -> np.ndarray:
    """Users' embeddings (n, d) as they are compared: at length 1, float32."""
    return unit_rows(embeddings).astype(np.float32)


def solved_directions(
    factors: ImplicitFactors, histories: csr_matrix, progress: Progress
) -> np.ndarray:
    """`directions` (n, d) of histories (n, n_items) of confidences."""
    n, n_items = histories.shape
    found = scratch_array((n, len(factors.gram)), np.float32)
    for start in range(0, n, BLOCK):
        progress("placing users", start, n)
        ends = histories.indptr[start : start + BLOCK + 1]
        pairs = slice(ends[0], ends[-1])
        arrays = histories.data[pairs], histories.indices[pairs], ends - ends[0]
        some = type(histories)(arrays, shape=(len(ends) - 1, n_items))
        found[start : start + BLOCK] = directions(factors.fold_in_many(some))
    progress("placing users", n, n)
    return found


def _counts(log: Interactions, which: np.ndarray | None = None) -> np.ndarray:
    """How many interactions the log has with each item, int32 (n_items,); which: bool (n,), these
    alone."""
    return counts_of(log.items, len(log.item_ids), which).astype(np.int32)
