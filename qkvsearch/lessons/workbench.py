"""A computation that the reader may change: its matrices, its mask, its scale and normalization.

`Workbench.steps` computes it by the engine's trace; the page's script computes it again in the
browser, and is compared with this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from qkvsearch.attention.masks import look_ahead_mask, padding_mask
from qkvsearch.attention.trace import Trace, trace, trace_self_attention

MaskName = Literal["none", "padding", "look-ahead", "both"]
MASKS: tuple[MaskName, ...] = ("none", "padding", "look-ahead", "both")
# From the inputs on, or from queries, keys and values on.
PROJECTED = ("inputs", "w_query", "w_key", "w_value")
GIVEN = ("queries", "keys", "values")
# The steps of a trace that are shown.
WITH_VALUES = ("queries", "keys", "values", "scores", "scaled", "masked", "weights", "outputs")
WITHOUT_VALUES = ("queries", "keys", "scores")


def mask_of(name: MaskName, L: int, S: int, padded: int = 0) -> np.ndarray | None:
    """Return bool (L, S), True = may attend; None for "none". The last `padded` keys are padding.

    >>> mask_of("both", 3, 3, padded=1).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 0]])
    """
    if name == "none":
        return None
    visible = np.ones((L, S), dtype=bool)
    if name in ("padding", "both"):
        visible &= padding_mask([S - padded], size=S)
    if name in ("look-ahead", "both"):
        visible &= look_ahead_mask(L, S)
    return visible


@dataclass(frozen=True, eq=False)
class Workbench:
    """Attention over matrices that may be edited."""

    # One word, unique in its lesson.
    name: str
    # What to try.
    caption: str
    # Those of PROJECTED, or of GIVEN. Without values, the computation ends with the scores.
    matrices: Mapping[str, np.ndarray]
    # Labels of the queries (L,).
    rows: Sequence[str]
    # Labels of the keys (S,), for self-attention those of the queries.
    columns: Sequence[str]
    # Labels of a matrix's columns, by its name, where they mean something.
    widths: Mapping[str, Sequence[str]] | None = None
    # The mask to begin with, and those to choose from.
    mask: MaskName = "none"
    masks: Sequence[MaskName] = ("none",)
    # The masks whose weights stand beside one another, whichever is chosen.
    compared: Sequence[MaskName] = ()
    # How many of the last keys are padding.
    padded: int = 0
    # Of the scores; None is 1/√d.
    scale: float | None = None
    # What the scores are divided by, too.
    temperature: float = 1.0
    normalize: Literal["softmax", "relu", "none"] = "softmax"

    @property
    def is_projected(self) -> bool:
        return "inputs" in self.matrices

    @property
    def has_values(self) -> bool:
        return "values" in self.matrices or "w_value" in self.matrices

    @property
    def scale_or_default(self) -> float:
        """The scale of the scores, 1/√d unless another is set."""
        wide = self.matrices["w_query" if self.is_projected else "queries"]
        return float(self.scale or wide.shape[1] ** -0.5)

    @property
    def visible(self) -> np.ndarray | None:
        """The mask to begin with: bool (L, S), True = may attend; None hides nothing."""
        return mask_of(self.mask, len(self.rows), len(self.columns), self.padded)

    def steps(
        self, matrices: Mapping[str, np.ndarray] | None = None, **changed: Any
    ) -> dict[str, np.ndarray]:
        """Compute the steps by name, from the queries on: those of `trace`, without "weighted".

        matrices: edited ones, by name; mask, temperature, scale, normalize: changed ones.
        """
        given = {**self.matrices, **(matrices or {})}
        computed = self.trace(given, **changed)
        names = WITH_VALUES if self.has_values else WITHOUT_VALUES
        return {name: np.asarray(computed[name].array) for name in names}

    def trace(
        self,
        matrices: Mapping[str, np.ndarray],
        *,
        mask: MaskName | None = None,
        scale: float | None = None,
        temperature: float | None = None,
        normalize: str | None = None,
    ) -> Trace:
        """Return the engine's record of the computation.

        Numbers too large for exp give ∞ and NaN, without a warning: the reader sees them.
        """
        L = len(matrices["inputs" if self.is_projected else "queries"])
        S = len(matrices["inputs" if self.is_projected else "keys"])
        options: dict[str, Any] = {
            "mask": mask_of(mask or self.mask, L, S, self.padded),
            "scale": (scale or self.scale_or_default) / (temperature or self.temperature),
            "normalize": normalize or self.normalize,
        }
        with np.errstate(all="ignore"):
            # Values that nobody asked for still have to fit.
            if self.is_projected:
                w_value = matrices.get("w_value", matrices["w_key"])
                x, w_query, w_key = (matrices[name] for name in PROJECTED[:3])
                return trace_self_attention(x, w_query, w_key, w_value, tokens=self.rows, **options)
            values = matrices.get("values", matrices["keys"])
            labels = {"query_labels": self.rows, "key_labels": self.columns}
            return trace(matrices["queries"], matrices["keys"], values, **labels, **options)
