"""What is learned from interactions: preferences, predicted ratings, and what comes next."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.scratch import counts_of
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.errors import DamagedError, QkvError
from qkvsearch.heads.component import (
    RECOMMEND_HEADS,
    BuildModels,
    LearnedComponent,
    main_head,
)
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.heads.stored_log import LogComponent
from qkvsearch.models.cold_start import fit_text_map, place_cold_items
from qkvsearch.models.item_neighbours import NeighbourWeights, learn_neighbours
from qkvsearch.models.preferences import (
    COLLABORATIVE,
    NEIGHBOURS,
    HeadShares,
    Preferences,
    learn_preferences,
    learners,
    settings_by_head,
    with_scales,
)
from qkvsearch.models.strength import Strength, usual_level
from qkvsearch.models.user_vectors import ImplicitFactors, RatingFactors
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.array_spec import ArraySpec
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.ratings import ends_of
from qkvsearch.text.labelled import unit_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from qkvsearch.models.next_item_model import NextItemModel

# The fact with the settings of preferences that `tune` found; missing for the default settings.
TUNED = "tuned"
# The fact with the best score below which recommendations count as weak.
WEAK_BELOW = "weak_below"
# The arrays of `NeighbourWeights`, by their names there.
NEIGHBOUR_ARRAYS = {name: f"neighbour_{name}" for name in ("starts", "targets", "values")}


class StoredPreferences(NamedTuple):
    """Loaded preferences."""

    # What scores histories, with cold items placed by their text.
    heads: Preferences
    # The embeddings of the other items at length 1, to compare items.
    unit_rows: DenseKeys
    # How many users interacted with each item, int32 (n_items,).
    item_counts: np.ndarray
    # The test for weak recommendations.
    strength: Strength


@dataclass(frozen=True)
class PreferencesComponent(LearnedComponent[StoredPreferences]):
    """The item embeddings and neighbours that are learned from who interacted with what.

    text_map places a cold item by its text, if texts predict preferences.
    """

    group: str = "implicit"
    arrays: ClassVar = {
        "item_embeddings": ArraySpec("f", ("items", "components"), rows="interactions"),
        "gram": ArraySpec("f", ("components", "components")),
        "unit_rows": ArraySpec("f", ("items", "components"), rows="interactions"),
        "item_counts": ArraySpec("i", ("items",), rows="interactions"),
        "n_liking": ArraySpec("i", ("items",), rows="interactions"),
        "text_map": ArraySpec("f", ("text_components", "components")),
        "neighbour_starts": ArraySpec("i", ("items",), rows="interactions", lists="neighbours"),
        "neighbour_targets": ArraySpec("i", ("neighbours",), rows="interactions", below="items"),
        "neighbour_values": ArraySpec("f", ("neighbours",), rows="interactions"),
    }

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Learn item embeddings by `ImplicitALS`, with the settings in the build's facts, and
        neighbours; store them.
        """
        feedback = LogComponent().feedback(contents)
        confidences = log.matrix(feedback.confidences(log.items, log.ratings, log.weights))
        preferences = self.learned(contents, confidences, progress)
        self.store(contents, preferences, _counts(log), _counts(log, confidences.data > 0))

    def learned(
        self,
        contents: BuildContents,
        confidences: csr_matrix,
        progress: Progress,
        factors: ImplicitFactors | None = None,
    ) -> Preferences:
        """Return preferences learned from confidences (n_users, n_items), with the settings in the
        build's facts. factors: those of all interactions, if they are learned already.
        """
        settings = contents.facts.get(TUNED, {}).get("settings", {})
        learn = learners(settings, 0, progress)
        if factors is not None:
            learn_embeddings = learn[COLLABORATIVE]
            learn[COLLABORATIVE] = lambda part: (
                factors if part is confidences else learn_embeddings(part)
            )
        weighing = partial(progress, "weighing the heads")
        return learn_preferences(confidences, learn, progress=weighing)

    def store(
        self,
        contents: BuildContents,
        preferences: Preferences,
        item_counts: np.ndarray,
        n_liking: np.ndarray,
    ) -> None:
        """Store preferences after the main head's keys. item_counts: of interactions with each
        item; n_liking: those of them with a confidence.
        """
        factors = preferences.factors
        arrays, contents.facts[self.group] = factors.state()
        contents.facts[RECOMMEND_HEADS] = asdict(preferences.shares)
        self.put_neighbours(contents, preferences.neighbours)
        keys = DenseComponent(main_head(contents.facts)).pending(contents, "keys")
        self.put(
            contents,
            **arrays,
            unit_rows=unit_rows(factors.item_embeddings),
            item_counts=item_counts,
            n_liking=n_liking,
            text_map=fit_text_map(keys, factors.item_embeddings),
        )
        contents.facts[WEAK_BELOW] = usual_level(preferences.scores, n_liking)

    def forget(self, contents: BuildContents, log: Interactions) -> None:
        from qkvsearch.models.implicit_als import AlternatingLeastSquares

        feedback = LogComponent().feedback(contents)
        confidences = log.matrix(feedback.confidences(log.items, log.ratings, log.weights))
        item_counts, n_liking = _counts(log), _counts(log, confidences.data > 0)
        is_liked = n_liking > 0
        embeddings = _rows_where(is_liked, self.pending(contents, "item_embeddings"))
        rows = embeddings.astype(np.float64)
        with one_blas_thread():
            gram = rows.T @ rows
        settings = settings_by_head(contents.facts.get(TUNED, {}).get("settings", {}))
        numbers = contents.facts[self.group] | {"n_items": max(int(is_liked.sum()), 1)}
        if is_liked.any():
            alpha0, reg = AlternatingLeastSquares(**settings[COLLABORATIVE]).strengths(confidences)
            numbers |= {"alpha0": alpha0, "reg": reg}
        contents.facts[self.group] = numbers
        self.put(
            contents,
            item_embeddings=embeddings,
            gram=gram,
            unit_rows=_rows_where(is_liked, self.pending(contents, "unit_rows")),
            item_counts=item_counts,
            n_liking=n_liking,
        )
        factors = ImplicitFactors(item_embeddings=embeddings, gram=gram, **numbers)
        shares = HeadShares(**contents.facts[RECOMMEND_HEADS])
        preferences = Preferences({COLLABORATIVE: factors}, shares)
        if not is_liked.any():
            self.put_neighbours(contents, None)
        elif self.is_pending(contents, NEIGHBOUR_ARRAYS["starts"]):
            # Each weight follows exactly from who has both items, so that with the interactions
            # that are left one could compute who was there: they are learned anew.
            neighbours = learn_neighbours(confidences, settings[NEIGHBOURS], 0, None)
            self.put_neighbours(contents, neighbours)
            preferences = with_scales(preferences.with_head(NEIGHBOURS, neighbours), confidences)
        contents.facts[RECOMMEND_HEADS] = asdict(preferences.shares)
        contents.facts[WEAK_BELOW] = usual_level(preferences.scores, n_liking)

    def put_neighbours(self, contents: BuildContents, neighbours: NeighbourWeights | None) -> None:
        """Store neighbours, or remove them."""
        for name, array in NEIGHBOUR_ARRAYS.items():
            values = None if neighbours is None else getattr(neighbours, name)
            self.put(contents, **{array: values})

    def drop(self, contents: BuildContents) -> None:
        super().drop(contents)
        contents.facts.pop(WEAK_BELOW, None)
        contents.facts.pop(RECOMMEND_HEADS, None)

    def load(self, models: BuildModels) -> StoredPreferences:
        snapshot = models.snapshot
        sizes: dict[str, int] = {}
        keys: Any = None  # an array or remote rows
        if "text_map" in self.names_in(snapshot):
            keys = models.load(DenseComponent(models.main_head)).keys.vectors
            sizes["text_components"] = keys.shape[1]
        of_neighbours = NEIGHBOUR_ARRAYS.values()
        names = [name for name in self.names_in(snapshot) if name not in of_neighbours]
        arrays = self.read(snapshot, *names, **sizes)

        item_counts = arrays["item_counts"]
        embeddings = arrays["item_embeddings"]
        if keys is not None:
            is_cold = item_counts == 0
            embeddings = place_cold_items(embeddings, keys, arrays["text_map"], is_cold)
        factors = ImplicitFactors.from_state(
            {"item_embeddings": embeddings, "gram": arrays["gram"]}, snapshot.facts[self.group]
        )
        shares = HeadShares(**snapshot.facts[RECOMMEND_HEADS])
        heads = Preferences({COLLABORATIVE: factors}, shares)
        neighbours = self.neighbours(snapshot)
        if neighbours is not None:
            heads = heads.with_head(NEIGHBOURS, neighbours)
        return StoredPreferences(
            heads=heads,
            unit_rows=DenseKeys(arrays["unit_rows"]),
            item_counts=item_counts,
            strength=Strength(float(snapshot.facts[WEAK_BELOW]), arrays["n_liking"]),
        )

    def neighbours(self, snapshot: Snapshot) -> NeighbourWeights | None:
        """Return the neighbours of the build's items; None where there are none."""
        starts = NEIGHBOUR_ARRAYS["starts"]
        if self.name_of(starts) not in snapshot:
            return None
        arrays = self.renumbered_lists(snapshot, starts)
        return NeighbourWeights(**{name: arrays[full] for name, full in NEIGHBOUR_ARRAYS.items()})

    def delete(self, contents: BuildContents, snapshot: Snapshot, deleted: np.ndarray) -> None:
        """Subtract the deleted items from the sums over all items."""
        embeddings = self.rows_at(snapshot, "item_embeddings", deleted).astype(np.float64)
        n_learned = int(np.count_nonzero(embeddings.any(axis=1)))
        if n_learned:
            gram = self.read(snapshot, "gram")["gram"]
            self.put(contents, gram=gram - embeddings.T @ embeddings)
        numbers = contents.facts[self.group]
        # At least one, or the solve for a user without a history would divide by zero.
        contents.facts[self.group] = numbers | {"n_items": max(numbers["n_items"] - n_learned, 1)}


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
        is_rated = _counts(rated) > 0
        arrays = {name: self.pending(contents, name) for name in self.arrays}
        self.put(contents, **{name: _rows_where(is_rated, arrays[name]) for name in arrays})
        numbers = {"mean": float(mean), "lowest": float(scale[0]), "highest": float(scale[1])}
        contents.facts[self.group] = contents.facts[self.group] | numbers

    def store(self, contents: BuildContents, factors: RatingFactors) -> None:
        arrays, contents.facts[self.group] = factors.state()
        self.put(contents, **arrays)

    def load(self, models: BuildModels) -> RatingFactors:
        numbers = models.snapshot.facts[self.group]
        return RatingFactors.from_state(self.read(models.snapshot), numbers)


@dataclass(frozen=True)
class NextItemComponent(LearnedComponent["NextItemModel"]):
    """The next-item model, if the build was asked for one. A new item has zeros and no score."""

    group: str = "next_item"
    arrays: ClassVar = {
        "item_embeddings": ArraySpec("f", ("items", "components"), rows="interactions"),
        "positions": ArraySpec("f", ("positions", "components")),
        "encoder": ArraySpec("f", ("weights",)),
    }

    def check(self, log: Interactions | None) -> None:
        """Raise `QkvError` where the model cannot be learned from a log."""
        from qkvsearch.models.next_item import NextItem

        if log is None:
            raise QkvError(
                "`next_item` learns from interactions: give `interactions`, or leave it out"
            )
        NextItem().check(log)

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Train `NextItem`, which takes minutes, and store it."""
        from qkvsearch.models.next_item import NextItem

        callback = partial(progress, "learning what comes next")
        self.store(contents, NextItem(random_state=0, callback=callback).fit(log).model_)

    def forget(self, contents: BuildContents, log: Interactions) -> None:
        embeddings = _rows_where(_counts(log) > 0, self.pending(contents, "item_embeddings"))
        self.put(contents, item_embeddings=embeddings)

    def store(self, contents: BuildContents, model: NextItemModel) -> None:
        arrays, contents.facts[self.group] = model.state()
        self.put(contents, **arrays)

    def load(self, models: BuildModels) -> NextItemModel:
        from qkvsearch.models.next_item_model import NextItemModel

        arrays, numbers = self.read(models.snapshot), models.snapshot.facts[self.group]
        try:
            return NextItemModel.from_state(arrays, numbers)
        except ValueError as error:
            file = models.snapshot.file(f"{self.group}.encoder")
            raise DamagedError(file.path, f"not the weights of an encoder: {error}") from None


def _rows_where(is_kept: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a copy with zeros in the rows of the items, bool (n_items,), that are not kept."""
    kept = np.array(rows)
    kept[~is_kept] = 0
    return kept


def _counts(log: Interactions, which: np.ndarray | None = None) -> np.ndarray:
    """Count the interactions with each item, int32 (n_items,). which: bool (n,), only these."""
    return counts_of(log.items, len(log.item_ids), which).astype(np.int32)
