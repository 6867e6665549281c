"""The models of a build: the arrays that the builder stores, and the way back for the engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qkvsearch.data.interactions import Interactions
from qkvsearch.embeddings.encoders import Encoder, transformer
from qkvsearch.embeddings.factors import ImplicitFactors, RatingFactors
from qkvsearch.embeddings.feedback import confidences, rating_scale
from qkvsearch.embeddings.static import StaticEncoder
from qkvsearch.embeddings.tokens import TokenEncoder
from qkvsearch.embeddings.vocabulary import Vocabulary
from qkvsearch.retrieval import DenseKeys, LexicalKeys
from qkvsearch.workspace import BuildContents, Snapshot

IMPLICIT_ARRAYS = ("item_embeddings", "gram")
RATING_ARRAYS = ("item_biases", "item_embeddings")


Scale = tuple[float, float] | None


@dataclass(frozen=True)
class History:
    """What a person met: row numbers (h,), confidences (h,) to recommend by, ratings (h,), NaN
    where unknown, and times (h,), 0 where unknown.
    """

    positions: np.ndarray
    confidences: np.ndarray
    ratings: np.ndarray
    times: np.ndarray

    def recorded_later(
        self, records: Iterable[tuple[int, float | None, int]]
    ) -> dict[int, float | None]:
        """Of records (row number, rating, time) what counts beside this history: not what the build
        knows from a later time, and a meeting without a rating takes no rating back.
        """
        times = dict(zip(self.positions.tolist(), self.times.tolist(), strict=True))
        latest: dict[int, float | None] = {}
        known = dict(zip(self.positions.tolist(), np.isfinite(self.ratings), strict=True))
        for position, rating, time in records:
            if time < times.get(position, time):
                continue
            if rating is None and (known.get(position) or latest.get(position) is not None):
                continue
            latest[position] = rating
        return latest

    def then(self, later: Iterable[tuple[int, float | None]], scale: Scale) -> History:
        """With later meetings (row number, rating), which stand instead of earlier ones with the
        same items. A rating of None, where someone only likes the item, counts in full.
        """
        latest = dict(later)
        stays = ~np.isin(self.positions, list(latest))
        ratings = np.array([np.nan if r is None else r for r in latest.values()], dtype=np.float32)
        counts = np.where(np.isnan(ratings), 1, confidences(ratings, len(ratings), scale))
        return History(
            np.concatenate([self.positions[stays], np.array(list(latest), dtype=np.int64)]),
            np.concatenate([self.confidences[stays], counts.astype(np.float32)]),
            np.concatenate([self.ratings[stays], ratings]),
            np.concatenate([self.times[stays], np.zeros(len(ratings), dtype=np.int64)]),
        )


# --- stored by the builder ---


def store_lexical(contents: BuildContents, keys: LexicalKeys) -> None:
    contents.arrays |= {
        "lexical.terms": keys.vocabulary.terms,
        "lexical.indptr": keys.indptr,
        "lexical.indices": keys.indices,
        "lexical.weights": keys.weights,
    }


def store_encoder(contents: BuildContents, name: str, encoder: Encoder, keys: np.ndarray) -> None:
    """What an encoder makes of every item, (n_items, d), and what it learned from the catalogue;
    of a pretrained one the rest stays where it is installed.
    """
    contents.arrays[f"{name}.keys"] = keys
    if isinstance(encoder, TokenEncoder):
        contents.arrays[f"{name}.terms"] = encoder.vocabulary.terms
        contents.arrays[f"{name}.vectors"] = encoder.vectors
        contents.arrays[f"{name}.weights"] = encoder.weights
    elif isinstance(encoder, StaticEncoder):
        contents.arrays["static.weights"] = np.asarray(encoder.weights)


def store_interactions(contents: BuildContents, log: Interactions) -> None:
    """Each user's history as one span of the arrays, items in ascending order."""
    indptr = np.searchsorted(log.users, np.arange(len(log.user_ids) + 1))
    contents.users = log.user_ids
    contents.arrays |= {"interactions.indptr": indptr, "interactions.items": log.items}
    contents.facts |= {"n_users": len(log.user_ids), "n_interactions": len(log)}
    if log.ratings is not None:
        contents.arrays["interactions.ratings"] = log.ratings
        contents.facts["rating_scale"] = rating_scale(log.ratings)
    if log.times is not None:
        contents.arrays["interactions.times"] = log.times
        contents.facts["times_comparable"] = log.times_comparable


def store_implicit(contents: BuildContents, factors: ImplicitFactors) -> None:
    """Item embeddings to recommend by, and their directions to compare items by."""
    arrays, contents.facts["implicit"] = factors.state()
    contents.arrays |= {f"implicit.{name}": array for name, array in arrays.items()}
    lengths = np.linalg.norm(factors.item_embeddings, axis=1, keepdims=True)
    directions = factors.item_embeddings / np.where(lengths > 0, lengths, 1)
    contents.arrays["implicit.item_directions"] = directions


def store_ratings(contents: BuildContents, factors: RatingFactors) -> None:
    arrays, contents.facts["ratings"] = factors.state()
    contents.arrays |= {f"ratings.{name}": array for name, array in arrays.items()}


# --- read by the engine ---


class StoredModels:
    """What a build stored, each part read on first use, with neither scikit-learn nor numba."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.n_items: int = snapshot.facts["n_items"]
        self._encoders: dict[str, Encoder] = {}

    @cached_property
    def lexical_keys(self) -> LexicalKeys:
        names = ("indptr", "indices", "weights")
        postings = {name: self.snapshot.array(f"lexical.{name}") for name in names}
        vocabulary = Vocabulary(self.snapshot.array("lexical.terms"))
        return LexicalKeys(vocabulary, n_items=self.n_items, **postings)

    @cached_property
    def head_weights(self) -> dict[str, float]:
        """How much each head of a search counts, the lexical one first; they add up to 1."""
        return dict(self.snapshot.facts["head_weights"])

    @cached_property
    def main_head(self) -> str:
        """The dense head that stands for meaning where there is room for one."""
        return "lsa" if self.snapshot.facts["encoder"] == "corpus" else list(self.head_weights)[-1]

    def encoder(self, head: str) -> Encoder:
        """What a dense head turns texts into vectors by. Raises `QkvError` where it is gone."""
        if head not in self._encoders:
            self._encoders[head] = self._read_encoder(head)
        return self._encoders[head]

    def _read_encoder(self, head: str) -> Encoder:
        array = self.snapshot.array
        if f"{head}.terms" in self.snapshot:
            terms = Vocabulary(array(f"{head}.terms"))
            return TokenEncoder(terms, array(f"{head}.vectors"), array(f"{head}.weights"))
        if head == "static":
            return StaticEncoder.from_package().weighted(array("static.weights"))
        return transformer(self.snapshot.facts["encoder"])

    def dense_keys(self, head: str) -> DenseKeys:
        """The items' keys of a dense head."""
        return DenseKeys(self.snapshot.array(f"{head}.keys"))

    @cached_property
    def implicit(self) -> ImplicitFactors | None:
        """None where nobody's interactions were given."""
        if "implicit" not in self.snapshot.facts:
            return None
        arrays = {name: self.snapshot.array(f"implicit.{name}") for name in IMPLICIT_ARRAYS}
        return ImplicitFactors.from_state(arrays, self.snapshot.facts["implicit"])

    @cached_property
    def item_directions(self) -> DenseKeys:
        return DenseKeys(self.snapshot.array("implicit.item_directions"))

    @cached_property
    def ratings(self) -> RatingFactors | None:
        """None where interactions came without ratings."""
        if "ratings" not in self.snapshot.facts:
            return None
        arrays = {name: self.snapshot.array(f"ratings.{name}") for name in RATING_ARRAYS}
        return RatingFactors.from_state(arrays, self.snapshot.facts["ratings"])

    def log(self) -> Interactions | None:
        """What the build learnt from, in the owner's ids; None where there were no interactions."""
        snapshot = self.snapshot
        if "interactions.indptr" not in snapshot:
            return None
        names = [f"interactions.{name}" for name in ("ratings", "times")]
        ratings, times = (snapshot.array(name) if name in snapshot else None for name in names)
        lengths = np.diff(snapshot.array("interactions.indptr"))
        return Interactions(
            users=np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
            items=snapshot.array("interactions.items"),
            user_ids=snapshot.tables.ids("users"),
            item_ids=snapshot.tables.ids("items"),
            ratings=ratings,
            times=times,
            times_comparable=snapshot.facts.get("times_comparable", True),
        )

    @property
    def rating_scale(self) -> Scale:
        """The lowest and the highest rating, None where there are none."""
        return self.snapshot.facts.get("rating_scale")

    def history(self, user: int | None) -> History:
        """What the user in this row of the build met; nothing for None."""
        span = slice(0)
        if user is not None:
            span = slice(*self.snapshot.array("interactions.indptr")[user : user + 2])
        positions = self.snapshot.array("interactions.items")[span].astype(np.int64)
        times = np.zeros(len(positions), dtype=np.int64)
        if self.snapshot.facts.get("times_comparable"):
            times = self.snapshot.array("interactions.times")[span]
        ratings = np.full(len(positions), np.nan, dtype=np.float32)
        if "interactions.ratings" in self.snapshot:
            ratings = self.snapshot.array("interactions.ratings")[span]
        weights = confidences(ratings, len(positions), self.rating_scale)
        return History(positions, weights, ratings, times)
