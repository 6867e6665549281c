"""What a head of a recommendation is: how it is learned, and how it scores items for a history.

To add one, write a class with the methods of `FittedHead`, as in `item_neighbours.py`, and a
`RecommendHead`, as in `item_neighbours_head.py`, and add it to `HEADS` in `recommend_heads.py`. How
it is stored is its `PreferenceHead` in `heads`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from qkvsearch._utils.callbacks import Callback

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

# Parameters of an estimator, by name.
Settings = Mapping[str, Any]


class HistoryScores(NamedTuple):
    """The scores of all items for one history of h items."""

    # float32 (n_items,)
    scores: np.ndarray
    # From the row of an item to what each item of the history adds to its score, float64 (h,). They
    # add up to the score.
    addends: Callable[[int], np.ndarray]


class FittedHead(Protocol):
    """What a head has learned. It scores any history, that of a user whom it has not seen too."""

    def score_history(self, positions: np.ndarray, confidences: np.ndarray) -> HistoryScores | None:
        """Score all items for a history of distinct items: their rows (h,) and confidences (h,).
        Return None where the head knows nothing of these items.
        """

    def score_many(self, histories: csr_matrix) -> np.ndarray | csr_matrix:
        """Return the scores of all items, (n, n_items), for histories (n, n_items) of confidences:
        a sparse matrix where most scores are 0.
        """


class Learn(Protocol):
    """Learn a head from confidences (n_users, n_items)."""

    def __call__(
        self, confidences: csr_matrix, settings: Settings, seed: int, callback: Callback | None
    ) -> FittedHead: ...


@dataclass(frozen=True)
class RecommendHead:
    """A head of a recommendation."""

    # Its name for people, in `heads` and in results.
    name: str
    learn: Learn
    # What is reported while it is learned.
    stage: str
    # The names of its parameters by the names that they have among the settings of all heads. The
    # other settings are those of the embeddings.
    parameters: Mapping[str, str] = field(default_factory=dict)
    # Whether a score without an item of the history is lower by exactly what that item adds.
    holds_by_removal: bool = False
