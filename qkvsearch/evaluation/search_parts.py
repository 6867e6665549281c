"""The parts of a search that can be tuned, and the settings that are tried of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from qkvsearch.errors import QkvError
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.token_head import TOKENS
from qkvsearch.store.remote_collections import RemoteCollection

# The parts, in the order in which they are tried: those that change the fewest answers come first.
FAMILIES, SECOND_PASS, HEADS, COLUMNS = "families", "second_pass", "heads", "columns"
PARTS = (FAMILIES, SECOND_PASS, HEADS, COLUMNS)
# How much words of the same family may count.
FAMILY_WEIGHTS = (0.0, 0.5, 1.0)
# A step multiplies or divides a weight by STEP. After all steps, a weight beside the others is at
# most MOST times what the build chose, or at least one MOST-th of it. So every head keeps some
# weight.
STEP, MOST = 2.0, 8.0
# Weights that differ by less are the same.
DIGITS = 4
# The embeddings of all columns, which are in memory while weights of columns are tried.
MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class Parts:
    """What can be set of the searches of one build.

    models: with the default settings.
    """

    models: StoredModels

    @classmethod
    def of(cls, models: StoredModels) -> Parts:
        """Return the parts of the searches of a build, whatever its settings are."""
        return cls(models.with_search(SearchSettings()))

    def tried(self, part: str, settings: SearchSettings) -> Iterator[SearchSettings]:
        """Yield other settings of a part, near those given; none where the build lacks the part.

        Weights that are those of the build are None again.
        """
        if part == FAMILIES:
            yield from self._families(settings)
        elif part == SECOND_PASS:
            yield from self._second_pass(settings)
        elif part == HEADS and sum(w > 0 for w in self.models.head_weights.values()) > 1:
            default: Mapping[str, float] = self.models.head_weights
            for weights in _steps(settings.heads or default, default):
                yield replace(settings, heads=_unless(weights, default))
        elif part == COLUMNS and len(self.default_columns) > 1:
            default = self.default_columns
            for weights in _steps(settings.columns or default, default):
                yield replace(settings, columns=_unless(weights, default))

    def _families(self, settings: SearchSettings) -> Iterator[SearchSettings]:
        default = self.models.families
        used = default if settings.families is None else settings.families
        for weight in FAMILY_WEIGHTS:
            if weight != used:
                yield replace(settings, families=None if weight == default else weight)

    def _second_pass(self, settings: SearchSettings) -> Iterator[SearchSettings]:
        if not TOKENS.is_in(self.models, has_user=False):
            return
        default = self.models.second_pass
        used = default if settings.second_pass is None else settings.second_pass
        for weight in {0.0, used / STEP, used * STEP, default} - {used}:
            if weight == 0 or default / MOST <= weight <= default * MOST:
                is_default = abs(weight - default) < 10**-DIGITS
                yield replace(settings, second_pass=None if is_default else round(weight, DIGITS))

    @property
    def default_columns(self) -> dict[str, float]:
        """The weights of the text columns in the main head's keys, as the build chose them."""
        names = self.models.snapshot.facts["text_columns"]
        weights = self.models.column_weights(self.models.main_head) or [1.0] * len(names)
        return {name: weight / sum(weights) for name, weight in zip(names, weights, strict=True)}

    def why_not_columns(self) -> str | None:
        """Return why weights of columns cannot be tried; None where they can."""
        models = self.models
        if len(self.default_columns) < 2:
            return None
        if RemoteCollection.of(models.snapshot.facts) is not None:
            return "the keys are on a server"
        if models.units is not None:
            return "long texts are searched in passages"
        try:
            widths = [models.encoder(head).n_components for head in models.dense_heads]
        except QkvError as error:
            return str(error)
        n_bytes = 4 * models.n_items * len(self.default_columns) * sum(widths)
        if n_bytes > MAX_BYTES:
            return f"the embeddings of all columns would take {n_bytes / 1e9:.1f} GB of memory"
        return None


def _steps(
    weights: Mapping[str, float], default: Mapping[str, float]
) -> Iterator[dict[str, float]]:
    """Yield weights that add up to 1, of which one is larger or smaller than before.

    Of two weights, to double one is to halve the other: it is one step.
    """
    seen: list[dict[str, float]] = []
    for name in weights:
        for factor in (STEP, 1 / STEP):
            changed = {**weights, name: weights[name] * factor}
            total = sum(changed.values())
            scaled = {each: round(weight / total, DIGITS) for each, weight in changed.items()}
            # Beside the others, which have a common factor of their own.
            ratios = [scaled[each] / default[each] for each in scaled if default[each] > 0]
            is_near = max(ratios) <= MOST * min(ratios)
            if weights[name] > 0 and is_near and scaled not in seen:
                seen.append(scaled)
                yield scaled


def _unless(
    weights: Mapping[str, float], default: Mapping[str, float]
) -> Mapping[str, float] | None:
    """Return weights; None where they are the default ones."""
    is_default = all(abs(weights[name] - default[name]) < 2 * 10**-DIGITS for name in weights)
    return None if is_default else weights
