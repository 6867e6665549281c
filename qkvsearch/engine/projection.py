"""A map of items: their keys projected to a plane, and a query or a user among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qkvsearch.collaborative.preferences import COLLABORATIVE
from qkvsearch.engine.export_embeddings import dense_head
from qkvsearch.errors import QkvError
from qkvsearch.recommend.recommend import Recommender
from qkvsearch.retrieval import DenseKeys, Ranking
from qkvsearch.retrieval.approximate import Filter, score_candidates
from qkvsearch.retrieval.dense_keys import ItemKeys
from qkvsearch.retrieval.remote_keys import RemoteRows
from qkvsearch.search.candidates import ranked
from qkvsearch.search.text_search import TextSearch
from qkvsearch.text.labelled import LabelledVectors

# Of more items a random sample is drawn, always the same one.
MAX_DRAWN, SEED = 20_000, 0
SAMPLE_NOTE = "{:,} of {:,} items, a random sample, always the same."


@dataclass(frozen=True, eq=False)
class MapPoint:
    """A query or a user on a map.

    position: (2,). hits: its k best items of all by the head of the map. hit_positions: (k, 2),
    also for items that are not drawn.
    """

    position: np.ndarray
    hits: Ranking
    hit_positions: np.ndarray


@dataclass(frozen=True, eq=False)
class ItemMap:
    """The items' keys in one dense head, projected to their first two principal components
    (scikit-learn's `PCA`, with the randomized solver by Halko, Martinsson and Tropp 2011 and a
    fixed seed).

    items: int64 (n,), the rows of the items that are drawn. positions: float32 (n, 2), divided by
    the largest coordinate. explained: float32 (2,), the share of the keys' variance along each
    axis; the rest is lost. So items that are far apart differ, but items that are close need not be
    similar; `similar` tells which ones are. The axes have no meaning. notes: how many items are not
    drawn. point: the query or user that the map was requested for.
    """

    head: str
    items: np.ndarray
    positions: np.ndarray
    explained: np.ndarray
    notes: Sequence[str]
    center: np.ndarray = field(repr=False)
    axes: np.ndarray = field(repr=False)
    point: MapPoint | None = None

    def __repr__(self) -> str:
        return f"<ItemMap by {self.head}: {len(self.items):,} items, {self.explained.sum():.0%}>"

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """Return the positions, float32 (n, 2), of vectors (n, d) of the head's space, such as
        those of `Engine.encode`. The projection is linear: an item's key is projected to the item,
        and the mean of keys to the mean of their positions. Vectors longer than the keys may be
        outside of [−1, 1]. Raises `QkvError` for another d.
        """
        rows = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
        if rows.ndim != 2 or rows.shape[1] != len(self.center):
            raise QkvError(
                f"`vectors` are (n, {len(self.center)}) by {self.head}, not {rows.shape}"
            )
        return np.asarray((rows - self.center) @ self.axes.T, dtype=np.float32)


def item_map(recommender: Recommender, head: str | None) -> ItemMap:
    """Return the map of all items that the head knows, or of a fixed sample of many."""
    name = COLLABORATIVE if head == COLLABORATIVE else dense_head(recommender.models, head)
    keys = _keys(recommender, name).vectors
    rows, notes = _drawn(keys)
    points = np.asarray(keys[rows], dtype=np.float32)
    center, axes, explained = _plane(points)
    positions = (points - center) @ axes.T
    scale = float(np.abs(positions).max(initial=0)) or 1.0
    axes = axes / np.float32(scale)
    positions = np.clip(positions / np.float32(scale), -1, 1)
    return ItemMap(name, rows, positions, explained, notes, center, axes)


def _keys(recommender: Recommender, head: str) -> ItemKeys[Any]:
    if head == COLLABORATIVE:
        return DenseKeys(recommender.factors.item_embeddings)
    return recommender.models.dense_keys(head)


def _drawn(keys: np.ndarray | RemoteRows) -> tuple[np.ndarray, list[str]]:
    """Return the row numbers to draw, ascending, and notes on those left out."""
    notes = []
    if isinstance(keys, RemoteRows) and len(keys) > MAX_DRAWN:  # all would have to be read
        drawn = np.random.default_rng(SEED).choice(len(keys), MAX_DRAWN, replace=False)
        notes.append(SAMPLE_NOTE.format(MAX_DRAWN, len(keys)))
        return np.sort(drawn), notes
    rows = np.flatnonzero(keys[:].any(axis=1))
    if len(rows) < len(keys):
        n_unknown = len(keys) - len(rows)
        notes.append(
            f"Not drawn: {n_unknown:,} of {len(keys):,} items that this head does not know."
        )
    if len(rows) <= MAX_DRAWN:
        return rows, notes
    drawn = np.random.default_rng(SEED).choice(rows, MAX_DRAWN, replace=False)
    notes.append(SAMPLE_NOTE.format(MAX_DRAWN, len(rows)))
    return np.sort(drawn), notes


def _plane(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean (d,), two axes (2, d), and their shares of variance, (2,), or zeros."""
    n, d = points.shape
    axes, explained = np.zeros((2, d), np.float32), np.zeros(2, np.float32)
    if n < 2 or not np.ptp(points, axis=0).any():
        return points.sum(axis=0) / np.float32(max(n, 1)), axes, explained
    from sklearn.decomposition import PCA

    pca = PCA(min(2, n, d), svd_solver="randomized", random_state=SEED).fit(points)
    shares = pca.explained_variance_ratio_
    axes[: len(shares)], explained[: len(shares)] = pca.components_, shares
    return pca.mean_.astype(np.float32), axes, explained


def with_query(base: ItemMap, texts: TextSearch, query: str, k: int) -> ItemMap:
    """Return the map with a text. Raises `QkvError` for the collaborative head, which has none."""
    if base.head == COLLABORATIVE:
        raise QkvError(f"`query`: {COLLABORATIVE} embeddings have no texts; choose another `head`")
    parts = texts.vectors(texts.reader.read(query)).of_head(base.head)
    return _with_point(base, texts, parts, texts.models.dense_keys(base.head), k)


def with_user(
    base: ItemMap, texts: TextSearch, recommender: Recommender, user: object, k: int
) -> ItemMap:
    """Return the map with the position of a user: their embedding, or for a head of texts the mean
    of their history's keys, weighted by confidence. Raises `UnknownIdError`.
    """
    history = recommender.histories.of(user)
    if base.head == COLLABORATIVE:
        parts = recommender.embedding(history)
    else:
        parts = recommender.mean_text(history, base.head)
    keys = _keys(recommender, base.head)
    return _with_point(base, texts, parts, keys, k)


def _with_point(
    base: ItemMap,
    texts: TextSearch,
    parts: LabelledVectors,
    keys: ItemKeys[Any],
    k: int,
) -> ItemMap:
    if not parts.vectors.any():
        return replace(base, notes=[*base.notes, f"{base.head} knows nothing about it."])
    head = score_candidates(keys.head(base.head, parts), Filter(k=k))
    hits = ranked(head, texts.catalog.names, k, None, np.ones(texts.models.n_items, dtype=bool))
    (position,) = base.project(parts.total)
    hit_positions = base.project(keys.vectors[hits.positions])
    return replace(base, point=MapPoint(position, hits, hit_positions))
