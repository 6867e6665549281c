"""Cold items, placed by their text: does it bring them to those who will like them?

Holds out all interactions of a random tenth of the items, trains on the others, and ranks the held
out ones among each other for everyone who rated one of them 4 or more. Beside: random scores, and
the cosine of the item's text with what the user liked, which needs no placing. "new / known" is the
mean score of held-out items over that of the others: above 1 they would outrank by being new.

QKVSEARCH_DATA=data python benchmarks --only cold_start    (two minutes)
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import roc_auc_score

from benchmarks.support.public_data import data_folder
from benchmarks.support.quality import mean_ndcg
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.models.cold_start import fit_text_map, place_cold_items
from qkvsearch.models.confidences import Feedback
from qkvsearch.models.estimators import ImplicitALS
from qkvsearch.scores.topk import top_k
from qkvsearch.tables.sources import read_movielens
from qkvsearch.text.encoders import fitted_encoder
from qkvsearch.text.text_encoder import item_keys

K, HELD_OUT, LIKED = 10, 0.1, 4


def cold_items(name: str, encoder: str) -> list[Row]:
    data = read_movielens(data_folder() / name)
    log, fields = data.interactions, data.catalog.fields()
    assert log is not None
    assert log.ratings is not None
    keys = item_keys(fitted_encoder(encoder, fields).encode_many, fields)
    rng = np.random.default_rng(0)
    new = rng.random(len(data.catalog)) < HELD_OUT
    train, test = log.take(~new[log.items]), log.take(new[log.items])
    weights = Feedback.of(train).confidences(train.items, train.ratings, None)
    model = ImplicitALS(random_state=0).fit(train.matrix(weights))

    embeddings = model.item_embeddings_
    text_map = fit_text_map(keys, embeddings)
    assert text_map is not None
    everything = place_cold_items(embeddings, keys, text_map, new)
    rated = np.flatnonzero(new & (np.bincount(test.items, minlength=len(new)) > 0))
    liked = test.matrix(test.ratings >= LIKED)[:, rated].astype(bool)
    users = model.factors_.fold_in_many(train.matrix(weights))
    ours, known = users @ everything[rated].T, users @ embeddings[embeddings.any(axis=1)].T
    task = f"{name}, text vectors by {encoder}"
    systems = {
        "placed by text": ours,
        "text alone": train.matrix(weights) @ keys @ keys[rated].T,
        "random scores": rng.random(ours.shape),
    }
    rows = [row for system, scores in systems.items() for row in judge(task, system, scores, liked)]
    ratio = float(ours.mean() / known.mean())
    return [*rows, Row(task, "placed by text", "new / known", ratio)]


def judge(task: str, system: str, scores: np.ndarray, liked: csr_matrix) -> list[Row]:
    """Mean area under the ROC curve and NDCG over the users who liked some of the items."""
    liked.eliminate_zeros()
    n_liked = liked.getnnz(axis=1)
    judged = np.flatnonzero((n_liked > 0) & (n_liked < liked.shape[1]))
    areas = [roc_auc_score(liked[[user]].toarray()[0], scores[user]) for user in judged]
    top = [top_k(scores[user], K).tolist() for user in judged]
    return [
        Row(task, system, "AUC", float(np.mean(areas))),
        Row(task, system, f"NDCG@{K}", mean_ndcg(top, liked[judged], K)),
    ]


PARTS = {
    f"{name}-{encoder}": partial(cold_items, name, encoder)
    for name in ("ml-latest-small", "ml-1m")
    for encoder in ("lsa", "static")
}

if __name__ == "__main__":
    main(__file__, PARTS)
