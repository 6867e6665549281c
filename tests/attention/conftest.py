"""Attention as its definition says it: every score at once, in float64, by none of our own code."""

import numpy as np
import pytest


def definition(query, key, value, bias=None, **options):
    """softmax(QKᵀ·scale + bias, hidden where told)·V, with the options of `attention`."""
    q, k, v = (np.asarray(x, np.float64) for x in (query, key, value))
    if min(q.ndim, k.ndim) > 2 and k.shape[-3] not in (1, q.shape[-3]):
        k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
    score, scale = options.get("score", "dot"), options.get("scale")
    if score == "dot":
        scores = np.einsum("...id,...jd->...ij", q, k) / (1 if scale else np.sqrt(q.shape[-1]))
    elif score == "cosine":
        lengths = [np.sqrt((x**2).sum(axis=-1)) for x in (q, k)]
        scores = np.einsum("...id,...jd->...ij", q, k)
        scores = scores / lengths[0][..., :, None] / lengths[1][..., None, :]
    else:
        hidden = (q @ score.w_query)[..., :, None, :] + (k @ score.w_key)[..., None, :, :]
        scores = np.tanh(hidden) @ score.w
    scores = scores * (scale or 1)
    if options.get("softcap"):
        scores = options["softcap"] * np.tanh(scores / options["softcap"])
    if bias is not None:
        scores = scores + bias
    i, j = np.ogrid[: q.shape[-2], : k.shape[-2]]
    distance = j - i - options.get("causal_offset", 0)  # to the right of where a query stands
    left, right = options.get("window") or (None, None)
    hidden = np.zeros(scores.shape, bool)
    if options.get("mask") is not None:
        hidden = hidden | ~np.asarray(options["mask"])
        scores = np.broadcast_to(scores, hidden.shape)
    if options.get("is_causal"):
        hidden = hidden | (distance > 0)
    if left is not None:
        hidden = hidden | (distance < -left)
    if right is not None:
        hidden = hidden | (distance > right)
    hidden = hidden | (scores == -np.inf)
    seen = np.where(hidden, -np.inf, scores)
    normalize = options.get("normalize", "softmax")
    if normalize == "softmax":
        top = np.max(seen, axis=-1, keepdims=True, initial=-1e300)
        weights = np.exp(seen - top)
    else:
        weights = np.where(hidden, 0, np.maximum(scores, 0) if normalize == "relu" else scores)
    total = weights.sum(axis=-1, keepdims=True)
    empty = hidden.all(axis=-1, keepdims=True) if normalize == "none" else total == 0
    fill = {"zero": 0, "uniform": 1 / k.shape[-2], "nan": np.nan}[options.get("empty_rows", "zero")]
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = np.where(empty, fill, weights if normalize == "none" else weights / total)
    if min(v.ndim, weights.ndim) > 2 and v.shape[-3] not in (1, weights.shape[-3]):
        v = np.repeat(v, weights.shape[-3] // v.shape[-3], axis=-3)
    return np.einsum("...ij,...jd->...id", weights, v)


@pytest.fixture(scope="session")
def dense():
    return definition
