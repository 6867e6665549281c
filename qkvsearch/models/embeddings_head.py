"""The head "collaborative" of a recommendation: a user's embedding times that of each item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkvsearch._utils.callbacks import Callback
from qkvsearch.models.recommend_head import RecommendHead, Settings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from qkvsearch.models.user_vectors import ImplicitFactors


def learn_embeddings(
    confidences: csr_matrix, settings: Settings, seed: int, callback: Callback | None
) -> ImplicitFactors:
    """Fit `ImplicitALS` with these settings to confidences (n_users, n_items)."""
    # It needs numba, which no recommendation needs.
    from qkvsearch.models.implicit_als import AlternatingLeastSquares

    model = AlternatingLeastSquares(**settings, random_state=seed, callback=callback)
    factors: ImplicitFactors = model.fit(confidences).factors_
    return factors


EMBEDDINGS = RecommendHead(
    name="collaborative", learn=learn_embeddings, stage="learning preferences"
)
