"""Items as points of a plane, by their keys, and the place of a query or a user among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from qkvsearch.engine.export_embeddings import dense_head
from qkvsearch.errors import QkvError
from qkvsearch.recommend.recommend import HEAD as COLLABORATIVE
from qkvsearch.recommend.recommend import Recommender
from qkvsearch.retrieval import DenseKeys, Ranking
from qkvsearch.retrieval.remote_keys import Allowed, RemoteKeys, RemoteRows, scored
from qkvsearch.search.candidates import ranked
from qkvsearch.search.text_search import TextSearch
from qkvsearch.text.labelled import LabelledVectors

# Of more items so many are drawn, always the same ones.
MOST_DRAWN, SEED = 20_000, 0


@dataclass(frozen=True, eq=False)
class MapPoint:
    """A query or a user on a map: where, (2,), the k items whose keys it weighs most by the map's
    head, of all items, and where these are, (k, 2), be they drawn or not.
    """

    position: np.ndarray
    hits: Ranking
    places: np.ndarray


@dataclass(frozen=True, eq=False)
class ItemMap:
    """The items' keys by one dense head on the plane along which they differ most: the first two
    principal components (scikit-learn's `PCA`, the randomized solver by Halko, Martinsson and Tropp
    2011, with a fixed seed).

    items: int64 (n,), the row numbers of the items that are drawn. positions: float32 (n, 2), all
    divided by one number, so that the farthest coordinate is 1. explained: float32 (2,), the share
    of the keys' variance along each axis: their sum is what the picture keeps of how the keys
    differ, and the rest is lost. So items that lie apart are different, and those that lie close
    together need not be alike; which ones are says `similar`. Axes have no meaning of their own.
    `notes` say how many items are not drawn. point: of whom the map was asked for.
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

    def place(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors (n, d) of the head's space, such as `Engine.encode` gives, on this map, float32
        (n, 2). The projection is linear: an item's key comes where the item is, and a sum of keys
        over their number in the middle of them. A vector longer than the keys may lie outside
        [−1, 1]. Raises `QkvError` for another d.
        """
        found = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
        if found.ndim != 2 or found.shape[1] != len(self.center):
            raise QkvError(
                f"`vectors` are (n, {len(self.center)}) by {self.head}, not {found.shape}"
            )
        return np.asarray((found - self.center) @ self.axes.T, dtype=np.float32)


def item_map(recommender: Recommender, head: str | None) -> ItemMap:
    """Of all items of which the head knows anything; drawn by a fixed seed where they are many."""
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


def _keys(recommender: Recommender, head: str) -> DenseKeys | RemoteKeys:
    if head == COLLABORATIVE:
        return DenseKeys(recommender.factors.item_embeddings)
    return recommender.models.dense_keys(head)


def _drawn(keys: np.ndarray | RemoteRows) -> tuple[np.ndarray, list[str]]:
    """Row numbers, ascending, and notes on those left out."""
    notes = []
    if isinstance(keys, RemoteRows) and len(keys) > MOST_DRAWN:  # all would have to be read
        drawn = np.random.default_rng(SEED).choice(len(keys), MOST_DRAWN, replace=False)
        notes.append(f"{MOST_DRAWN:,} of {len(keys):,} items, drawn at random, always the same.")
        return np.sort(drawn), notes
    known = np.flatnonzero(keys[:].any(axis=1))
    if len(known) < len(keys):
        n_unknown = len(keys) - len(known)
        notes.append(f"Not drawn: {n_unknown:,} of {len(keys):,} items, of which nothing is known.")
    if len(known) <= MOST_DRAWN:
        return known, notes
    drawn = np.random.default_rng(SEED).choice(known, MOST_DRAWN, replace=False)
    notes.append(f"{MOST_DRAWN:,} of {len(known):,} items, drawn at random, always the same ones.")
    return np.sort(drawn), notes


def _plane(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Their mean (d,), two axes (2, d) and the share of the variance along each (2,); zeros for an
    axis along which nothing differs.
    """
    n, d = points.shape
    axes, explained = np.zeros((2, d), np.float32), np.zeros(2, np.float32)
    if n < 2 or not np.ptp(points, axis=0).any():
        return points.sum(axis=0) / np.float32(max(n, 1)), axes, explained
    from sklearn.decomposition import PCA

    found = PCA(min(2, n, d), svd_solver="randomized", random_state=SEED).fit(points)
    shares = found.explained_variance_ratio_
    axes[: len(shares)], explained[: len(shares)] = found.components_, shares
    return found.mean_.astype(np.float32), axes, explained


def with_query(found: ItemMap, texts: TextSearch, query: str, k: int) -> ItemMap:
    """The map with the place of a text. Raises `QkvError` where items are placed by their users."""
    if found.head == COLLABORATIVE:
        raise QkvError(f"`query`: a text has no place among {COLLABORATIVE} embeddings; see `head`")
    asked = texts.asked(query, False)
    parts = asked.parts(found.head)
    return _with_point(found, texts, parts, texts.models.dense_keys(found.head), k)


def with_user(
    found: ItemMap, texts: TextSearch, recommender: Recommender, user: object, k: int
) -> ItemMap:
    """The map with the place of a user: their embedding, or by a head of texts the mean of the keys
    of their history, by confidence. Raises `UnknownIdError`.
    """
    history = recommender.histories.of(user)
    if found.head == COLLABORATIVE:
        parts = recommender.embedding(history)
    else:
        parts = recommender.mean_text(history, found.head)
    keys = _keys(recommender, found.head)
    return _with_point(found, texts, parts, keys, k)


def _with_point(
    found: ItemMap,
    texts: TextSearch,
    parts: LabelledVectors,
    keys: DenseKeys | RemoteKeys,
    k: int,
) -> ItemMap:
    if not parts.vectors.any():
        return replace(found, notes=[*found.notes, f"Nothing of it is known by {found.head}."])
    head = next(scored({found.head: keys.head(found.head, parts)}, Allowed(k=k)))[found.head]
    hits = ranked(head, texts.catalog.names, k, None, np.ones(texts.models.n_items, dtype=bool))
    (position,) = found.place(parts.total)
    places = found.place(keys.vectors[hits.positions])
    return replace(found, point=MapPoint(position, hits, places))
