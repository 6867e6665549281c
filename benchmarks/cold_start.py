"""Items that nobody met, placed by their text: does it bring them to those who will like them?

Holds out all interactions of a random tenth of the items, trains on the others, and ranks the held
out ones among each other for everyone who rated one of them 4 or more. Beside: chance, and the
cosine of the item's text with what the user liked, which needs no placing. "new / known" is the
mean score of held-out items over that of the others: above 1 they would outrank by being new.

QKVSEARCH_DATA=data python benchmarks/cold_start.py
"""

from __future__ import annotations

import numpy as np
from common import data_folder
from scipy.stats import rankdata

from qkvsearch.collaborative.cold_start import fit_text_map, place_cold_items
from qkvsearch.collaborative.confidences import confidences, rating_scale
from qkvsearch.data.movielens import read_movielens
from qkvsearch.embeddings import ImplicitALS
from qkvsearch.texts.encoders import fitted_encoder
from qkvsearch.texts.item_keys import item_keys

K, HELD_OUT, LIKED = 10, 0.1, 4


def main() -> None:
    print(
        f"{'data, text vectors':28}{'ranked by':14}{'AUC':>8}{f'NDCG@{K}':>10}{'new / known':>14}"
    )
    for name in ("ml-latest-small", "ml-1m"):
        for encoder in ("lsa", "static"):
            compare(name, encoder)


def compare(name: str, encoder: str) -> None:
    data = read_movielens(data_folder() / name)
    log, fields = data.interactions, data.catalog.fields()
    assert log is not None
    assert log.ratings is not None
    keys = item_keys(fitted_encoder(encoder, fields).encode_many, fields)
    rng = np.random.default_rng(0)
    new = rng.random(len(data.catalog)) < HELD_OUT
    train, test = log.take(~new[log.items]), log.take(new[log.items])
    weights = confidences(train.ratings, len(train), rating_scale(log.ratings))
    model = ImplicitALS(random_state=0).fit(train.matrix(weights))

    embeddings = model.item_embeddings_
    text_map = fit_text_map(keys, embeddings)
    assert text_map is not None
    everything = place_cold_items(embeddings, keys, text_map, new)
    rated = np.flatnonzero(new & (np.bincount(test.items, minlength=len(new)) > 0))
    liked = test.matrix(test.ratings >= LIKED)[:, rated].toarray() > 0
    users = model.factors_.fold_in_many(train.matrix(weights))
    ours, known = users @ everything[rated].T, users @ embeddings[embeddings.any(axis=1)].T
    ratio = f"{ours.mean() / known.mean():.2f}"
    for system, scores, beside in (
        ("placed", ours, ratio),
        ("text alone", train.matrix(weights) @ keys @ keys[rated].T, ""),
        ("chance", rng.random(ours.shape), ""),
    ):
        area, gain = figures(scores, liked)
        print(
            f"{f'{name}, {encoder}':28}{system:14}{area:8.3f}{gain:10.3f}{beside:>14}", flush=True
        )


def figures(scores: np.ndarray, liked: np.ndarray) -> tuple[float, float]:
    """Mean area under the ROC curve and NDCG@10 over the users who liked one of the items."""
    discounts = 1 / np.log2(np.arange(2, K + 2))
    areas, gains = [], []
    for row, hits in zip(scores, liked, strict=True):
        n = hits.sum()
        if 0 < n < len(hits):
            low = n * (n + 1) / 2
            areas.append((rankdata(row)[hits].sum() - low) / (n * (len(hits) - n)))
            top = np.argsort(-row, kind="stable")[:K]
            gains.append(hits[top] @ discounts / discounts[: min(n, K)].sum())
    return float(np.mean(areas)), float(np.mean(gains))


if __name__ == "__main__":
    main()
