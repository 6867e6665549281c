"""Ratings and weights as a user gives them: what the log of a build takes, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qkvsearch._utils.validation import is_number, require
from qkvsearch.errors import QkvError
from qkvsearch.heads.histories import Histories
from qkvsearch.models.user_history import NOW, PastInteraction
from qkvsearch.rank.candidates import positions_of
from qkvsearch.rank.options import id_list
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
        """Whether interactions come with weights, alone or beside ratings."""
        return "interactions.weights" in self.histories.models.snapshot

    def as_if_recorded(
        self, ratings: Mapping[Any, float]
    ) -> tuple[list[PastInteraction], list[str]]:
        """Return what `record` of these ratings would append to a history, in their order, and
        notes on ambiguous names. Raises `QkvError`, which names the item, for a wrong value.
        """
        items = id_list("ratings", ratings.keys())
        positions, notes = positions_of(self.histories.catalog, items)
        interactions = []
        # One after the other, and all just before now.
        time = NOW - len(ratings)
        for position, (item, value) in zip(positions, ratings.items(), strict=True):
            rating, weight = self.by_kind(value)
            try:
                self.check(rating, weight)
            except QkvError as error:
                raise QkvError(f"`ratings`: {id_text(item)!r}: {error}") from None
            interactions.append(PastInteraction(position, rating, time, weight))
            time += 1
        return interactions, notes

    def by_kind(self, value: float | None) -> tuple[float | None, float | None]:
        """Return a value as rating and weight: a weight where the log has weights alone."""
        return (None, value) if self.weighed else (value, None)

    def weight_of_event(self, event: str, weight: float | None) -> float | None:
        """Return the weight of an interaction that is this event, as the build weighs its log:
        times its own weight, if any. None where all interactions of the log count the same.

        Raises `QkvError`, which names the event, where it has no weight, or has 0, which is not
        counted.
        """
        from qkvsearch.tables.columns.events import times_events, weight_of_event

        require(isinstance(event, str), "event", event, "a text")
        facts = self.histories.models.snapshot.facts
        of_event = weight_of_event(event, facts.get("interaction_columns", ()))
        if of_event == 0:
            raise QkvError(f"`event`: {event!r} counts 0 here, so that it is not recorded")
        if weight is None:
            total = of_event
        else:
            self.check(None, weight)
            total = float(times_events(weight, of_event))
        return None if total > 0 and not self.has_weights else total

    def check(self, rating: float | None, weight: float | None) -> None:
        """Raise `QkvError` for a value of a kind that the log does not have, or out of range."""
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
