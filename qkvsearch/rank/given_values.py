"""Ratings and weights as a user gives them: what the log of a build takes, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qkvsearch._utils.validation import is_number, require
from qkvsearch.errors import QkvError
from qkvsearch.heads.histories import Histories
from qkvsearch.models.user_history import NOW, Interaction
from qkvsearch.rank.candidates import id_list, positions_of
from qkvsearch.tables.ids import id_text
from qkvsearch.tables.ratings import LARGEST


@dataclass(frozen=True)
class GivenValues:
    """What the interactions of a build come with: ratings, weights, or neither."""

    histories: Histories

    @property
    def weighed(self) -> bool:
        """Whether interactions come with weights instead of ratings."""
        return self.has_weights and not self.rated

    @property
    def rated(self) -> bool:
        """Whether interactions come with ratings."""
        return self.histories.models.rating_scale is not None

    @property
    def has_weights(self) -> bool:
        """Whether interactions come with weights, be it beside ratings."""
        return "interactions.weights" in self.histories.models.snapshot

    def as_if_recorded(self, ratings: Mapping[Any, float]) -> tuple[list[Interaction], list[str]]:
        """Return what `record` of these ratings would append to a history, in their order, and
        notes on ambiguous names. Raises `QkvError`, which names the item, for a wrong value.
        """
        is_mapping = isinstance(ratings, Mapping)
        require(is_mapping, "ratings", ratings, "a mapping from items to ratings")
        positions, notes = positions_of(self.histories.catalog, id_list("ratings", ratings.keys()))
        for item, value in ratings.items():
            try:
                self.check(*self.by_kind(value))
            except QkvError as error:
                raise QkvError(f"`ratings`: {id_text(item)!r}: {error}") from None
        first = NOW - len(ratings)
        return [
            Interaction(position, rating, time, weight)
            for time, (position, (rating, weight)) in enumerate(
                zip(positions, map(self.by_kind, ratings.values()), strict=True), first
            )
        ], notes

    def by_kind(self, value: float | None) -> tuple[float | None, float | None]:
        """Return a value as rating and weight: a weight where the log has weights alone."""
        return (None, value) if self.weighed else (value, None)

    def check(self, rating: float | None, weight: float | None) -> None:
        """Raise `QkvError` for a value that the log does not have, or not such a one."""
        for name, value in (("rating", rating), ("weight", weight)):
            is_valid = value is None or (is_number(value) and abs(value) <= LARGEST)
            require(is_valid, name, value, f"a number between ±{LARGEST:g}")
        scale = self.histories.models.rating_scale
        if rating is not None and scale is None:
            instead = "give a `weight`" if self.has_weights else "leave the rating out"
            raise QkvError(f"the interactions here have no ratings: {instead}")
        if rating is not None and scale and not scale[0] <= rating <= scale[1]:
            raise QkvError(f"a rating here is from {scale[0]:g} to {scale[1]:g}, not {rating:g}")
        if weight is not None and not self.has_weights:
            instead = "give a `rating`" if self.rated else "leave the weight out"
            raise QkvError(f"the interactions here have no weights: {instead}")
        if weight == 0:
            raise QkvError("a weight is a number other than 0, negative for a refund: not 0")
