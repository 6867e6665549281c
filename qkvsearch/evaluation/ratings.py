"""How far predicted ratings are from the ones held out."""

from __future__ import annotations

import numpy as np

from qkvsearch.collaborative.biased_mf import BiasedMF
from qkvsearch.data.interactions import Interactions
from qkvsearch.evaluation.report import OURS
from qkvsearch.evaluation.splits import Split
from qkvsearch.progress import Progress

# A bias is a mean over its ratings and as many zeros: 25 for an item, 10 for a user.
ITEM_DAMPING = 25.0
USER_DAMPING = 10.0
PAIRS_AT_ONCE = 1 << 17


def rating_errors(parts: Split, random_state: int, progress: Progress) -> dict[str, np.ndarray]:
    """r̂ − r of every rating held out (n,), by `BiasedMF` (ours) and by biases alone.

    Users whom training has not seen are placed by the exact solve on their history.
    """
    assert parts.test.ratings is not None
    model = BiasedMF(
        random_state=random_state, callback=lambda i, n: progress("learning ratings", i, n)
    ).fit(parts.train)
    predicted = {OURS: _model_ratings(model, parts), "biases": _bias_ratings(parts)}
    return {system: ratings - parts.test.ratings for system, ratings in predicted.items()}


def _model_ratings(model: BiasedMF, parts: Split) -> np.ndarray:
    biases, embeddings = model.user_biases_, model.user_embeddings_
    if parts.history is not parts.train:
        biases, embeddings = _placed(model, parts.history)
    users, items = parts.test.users, parts.test.items
    blocks = [
        model.factors_.predict(embeddings[users[span]], biases[users[span]], items[span])
        for span in _spans(len(users))
    ]
    return np.concatenate(blocks)


def _placed(model: BiasedMF, history: Interactions) -> tuple[np.ndarray, np.ndarray]:
    """Biases (n_users,) and embeddings (n_users, d) of those who have a history."""
    assert history.ratings is not None
    biases = np.zeros_like(model.user_biases_)
    embeddings = np.zeros_like(model.user_embeddings_)
    users = np.unique(history.users)
    starts, ends = (np.searchsorted(history.users, users, side) for side in ("left", "right"))
    for user, start, end in zip(users, starts, ends, strict=True):
        biases[user], embeddings[user] = model.factors_.fold_in(
            history.items[start:end], history.ratings[start:end]
        )
    return biases, embeddings


def _spans(n_pairs: int) -> list[slice]:
    return [slice(start, start + PAIRS_AT_ONCE) for start in range(0, n_pairs, PAIRS_AT_ONCE)]


def _bias_ratings(parts: Split) -> np.ndarray:
    """μ + bᵢ + bᵤ within the scale, with bᵢ = Σ (r − μ) / (25 + nᵢ) and
    bᵤ = Σ (r − μ − bᵢ) / (10 + nᵤ).

    Koren 2010, "Factor in the neighbors", section 2.1.
    """
    train, history, test = parts.train, parts.history, parts.test
    assert train.ratings is not None
    assert history.ratings is not None
    mean = train.ratings.mean(dtype=float)
    of_items = _damped_means(train.items, train.ratings - mean, len(train.item_ids), ITEM_DAMPING)
    rest = history.ratings - mean - of_items[history.items]
    of_users = _damped_means(history.users, rest, len(history.user_ids), USER_DAMPING)
    predicted = mean + of_items[test.items] + of_users[test.users]
    return np.clip(predicted, train.ratings.min(), train.ratings.max())


def _damped_means(rows: np.ndarray, values: np.ndarray, n_rows: int, damping: float) -> np.ndarray:
    """Means (n_rows,) of the values in each row, the closer to 0 the fewer there are."""
    sums = np.bincount(rows, weights=values, minlength=n_rows)
    return sums / (np.bincount(rows, minlength=n_rows) + damping)
