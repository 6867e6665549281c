"""The head "neighbours" of a recommendation: how much each item of a history speaks for an item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkvsearch._utils.callbacks import Callback
from qkvsearch.models.recommend_head import RecommendHead, Settings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from qkvsearch.models.item_neighbours import NeighbourWeights


def learn_neighbours(
    confidences: csr_matrix, settings: Settings, seed: int, callback: Callback | None
) -> NeighbourWeights:
    """Fit `ItemNeighbours` with these settings to confidences (n_users, n_items). Nothing about it
    is random.
    """
    from qkvsearch.models.item_neighbours import NeighbourRegression

    model = NeighbourRegression(**settings, callback=callback)
    return model.fit(confidences).weights_


ITEM_NEIGHBOURS = RecommendHead(
    name="neighbours",
    learn=learn_neighbours,
    stage="learning neighbours",
    parameters={"n_neighbours": "n_neighbours", "neighbour_reg": "reg"},
    holds_by_removal=True,
)
