"""The settings of a search that `tune search` finds, in place of those that a build chose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

# The fact with the settings of searches that `tune search` found; missing for the default settings.
TUNED_SEARCH = "tuned_search"


@dataclass(frozen=True)
class SearchSettings:
    """What can be set of a search. None stands for what the build, or its encoder, chose.

    >>> facts = {"tuned_search": {"seed": 0, "settings": {"second_pass": 0.5}}}
    >>> SearchSettings.of(facts)
    SearchSettings(heads=None, columns=None, second_pass=0.5, families=None)
    >>> SearchSettings.of(facts).to_dict()
    {'second_pass': 0.5}
    """

    # The weight of each head of the first pass. They add up to 1.
    heads: Mapping[str, float] | None = None
    # The weight of each text column in the keys of all dense heads, by its name in the build. They
    # add up to 1.
    columns: Mapping[str, float] | None = None
    # The weight of the second pass, as a share of the main head's weight; 0 leaves it out.
    second_pass: float | None = None
    # The weight of words of the same family, times how much they are like the one that was typed;
    # with 0, only that one counts.
    families: float | None = None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> SearchSettings:
        """Return the settings of a build with these facts. Raises an error of `MISFIT`."""
        settings = cls(**facts.get(TUNED_SEARCH, {}).get("settings", {}))
        weights = [
            *(settings.heads or {}).values(),
            *(settings.columns or {}).values(),
            settings.second_pass or 0,
            settings.families or 0,
        ]
        if not all(float(weight) >= 0 for weight in weights):
            raise ValueError("a weight below 0")
        return settings

    def fit(self, heads: Iterable[str], columns: Iterable[str]) -> bool:
        """Return whether the weights are those of a build with these heads and text columns.

        >>> SearchSettings(heads={"lexical": 0.4, "lsa": 0.6}).fit(["lexical", "static"], ["title"])
        False
        """
        has_heads = self.heads is None or set(self.heads) == set(heads)
        has_columns = self.columns is None or set(self.columns) == set(columns)
        return has_heads and has_columns

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that are not those of the build, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def shown(self, name_of: Callable[[str], str]) -> dict[str, Any]:
        """Return the same with the names that the owner of the data gave the columns.

        name_of: returns a column's name by its name in the build.
        """
        if self.columns is None:
            return self.to_dict()
        columns = {name_of(stored): weight for stored, weight in self.columns.items()}
        return replace(self, columns=columns).to_dict()
