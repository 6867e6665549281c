"""A map of items: similar items are near each other; a query or a user among them."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.engine.export_embeddings import dense_head
from qkvsearch.engines.milvus.remote_rows import RemoteRows
from qkvsearch.errors import DamagedError, QkvError, quantity
from qkvsearch.heads.dense_keys import DenseKeys, ItemKeys
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.imports import leaving_no_trace
from qkvsearch.models.recommend_heads import COLLABORATIVE
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.ranking import Ranking, rank
from qkvsearch.rank.recommender import Recommender
from qkvsearch.scores.approximate import Filter, score_candidates
from qkvsearch.store.checksums import read_checksummed, write_checksummed
from qkvsearch.text.labelled import LabelledVectors
from qkvsearch.text.languages import CODES, ENGLISH, FACTS, languages_of, stop_words

with leaving_no_trace("threadpoolctl"):
    from threadpoolctl import threadpool_limits

log = logging.getLogger("qkvsearch.cache")
# Of more items a random sample is drawn, always the same one.
MAX_DRAWN, SEED = 20_000, 0
SAMPLE_NOTE = "{:,} of {:,} items, a random sample, always the same."
# t-SNE places a sample of at most so many items, and each other item is placed among the nearest of
# them (`benchmarks/claims/map_neighbours.py`).
MAX_EMBEDDED, N_NEAREST = 5_000, 2
PERPLEXITY, ITERATIONS, ANGLE = 30, 500, 0.6
# Neighbours of how many items are compared to say how many the map keeps.
K_COMPARED, N_COMPARED = 10, 500
# Items of a cluster with a label, and clusters at most; characters of a text that are read.
ITEMS_EACH, MAX_CLUSTERS, MAX_CHARACTERS = 25, 14, 300
# A word names a cluster if so many of its items have it.
MIN_NAMED = 4
# Words that begin with the same letters, so many of them, are taken for forms of one word.
ROOT = 4
WORD = re.compile(r"[^\W\d_]{3,}(?:-[^\W_]+)*")
# The share of the items that a language of the catalog has at least.
MIN_LANGUAGE = 0.05
# Decimals of a stored position.
DECIMALS = 4


class ClusterLabel(NamedTuple):
    """The words that a cluster of items has more often than the others, and its middle."""

    words: str
    x: float
    y: float


@dataclass(frozen=True, eq=False)
class MapPoint:
    """A query or a user on a map."""

    # (2,)
    position: np.ndarray
    # The k best of all items by the head of the map.
    hits: Ranking
    # (k, 2), also for items that are not drawn.
    hit_positions: np.ndarray


@dataclass(frozen=True, eq=False)
class ItemMap:
    """The items in two dimensions, so that neighbours in one dense head are neighbours here
    (t-SNE, van der Maaten and Hinton 2008, by scikit-learn, with a fixed seed).

    Distances between clusters mean little, and so do the axes.
    """

    head: str
    # The rows of the items that are drawn, int64 (n,).
    items: np.ndarray
    # float32 (n, 2), divided by the largest coordinate.
    positions: np.ndarray
    # Of the ten items most similar to an item, the share that is among its ten nearest here.
    neighbours_kept: float
    # The words of clusters.
    labels: Sequence[ClusterLabel]
    # How many items are not drawn.
    notes: Sequence[str]
    # The drawn items' keys in the head, at length 1, float32 (n, d).
    keys: np.ndarray = field(repr=False)
    # The query or the user that the map was asked for.
    point: MapPoint | None = None

    def __repr__(self) -> str:
        kept = f"{self.neighbours_kept:.0%} of neighbours kept"
        return f"<ItemMap by {self.head}: {quantity(len(self.items), 'item')}, {kept}>"

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """Return positions, float32 (n, 2), for vectors (n, d) of the head's space, such as those
        of `Engine.encode`: among the most similar items. An item's key comes where the item is.
        Raises `QkvError` for another d.
        """
        rows = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
        if rows.ndim != 2 or rows.shape[1] != self.keys.shape[1]:
            raise QkvError(
                f"`vectors` are (n, {self.keys.shape[1]}) by {self.head}, not {rows.shape}"
            )
        return _among(_normalized(rows), self.keys, self.positions)


def map_head(models: StoredModels, head: str | None) -> str:
    """Return the name of the head of a map, None for the main one. Raises `QkvError`."""
    also = () if models.implicit is None else (COLLABORATIVE,)
    return COLLABORATIVE if head == COLLABORATIVE else dense_head(models, head, also)


def item_map(recommender: Recommender, name: str) -> ItemMap:
    """Return the map of all items that a head knows, or of a fixed sample of many. It is computed
    once for a build and stored beside it, if its folder can be written. name: a `map_head`.
    """
    models = recommender.models
    vectors = _keys(recommender, name).vectors
    rows, notes = _drawn(vectors)
    keys = _normalized(np.asarray(vectors[rows], dtype=np.float32))
    path = models.snapshot.segments[-1].folder / f"map-{name}.json"
    stored = _stored(path)
    if len(stored.get("positions", ())) != len(rows):
        texts = _texts(models, rows)
        languages = [CODES.get(code, code) for code in languages_of(texts)]
        frequent = _frequent(languages)
        positions = positions_of(keys, np.unique(frequent, return_inverse=True)[1])
        stored = {
            "positions": positions.astype(np.float64).round(DECIMALS).tolist(),
            "kept": neighbours_kept(keys, positions),
            "labels": _labels(positions, texts, languages),
        }
        with suppress(OSError):  # a folder that may only be read
            write_checksummed(path, stored)
    positions = np.array(stored["positions"], dtype=np.float32).reshape(-1, 2)
    labels = [ClusterLabel(*label) for label in stored["labels"]]
    return ItemMap(name, rows, positions, stored["kept"], labels, notes, keys)


def _stored(path: Path) -> dict[str, Any]:
    """Return a stored map; an empty one where there is none, or it is damaged."""
    try:
        return dict(read_checksummed(path))
    except FileNotFoundError:
        return {}
    except DamagedError as error:
        log.warning("%s was damaged (%s): the map is computed again", path, error.what)
        return {}


def _keys(recommender: Recommender, head: str) -> ItemKeys[Any]:
    if head == COLLABORATIVE:
        return DenseKeys(recommender.factors.item_embeddings)
    return recommender.models.dense_keys(head)


def _drawn(keys: np.ndarray | RemoteRows) -> tuple[np.ndarray, list[str]]:
    """Return the row numbers to draw, ascending, and notes on those left out."""
    if isinstance(keys, RemoteRows) and len(keys) > MAX_DRAWN:
        # To see which of them are zeros, all would have to be read.
        drawn = np.random.default_rng(SEED).choice(len(keys), MAX_DRAWN, replace=False)
        return np.sort(drawn), [SAMPLE_NOTE.format(MAX_DRAWN, len(keys))]
    rows = np.flatnonzero(keys[:].any(axis=1))
    notes = []
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


def _normalized(keys: np.ndarray) -> np.ndarray:
    """Return the rows with length 1; zeros stay."""
    return keys / np.maximum(np.linalg.norm(keys, axis=1, keepdims=True), np.float32(1e-12))


def _texts(models: StoredModels, rows: np.ndarray) -> list[str]:
    """Return the beginning of what each of these items says."""
    columns = ["title", *models.snapshot.facts["text_columns"]]
    cells = models.snapshot.catalog.cells(rows, list(dict.fromkeys(columns)))
    return [" ".join(str(cell)[:MAX_CHARACTERS] for cell in row if cell) for row in cells]


def _frequent(languages: Sequence[str]) -> list[str]:
    """Return the language of each text, a rare one taken for the most frequent: short texts of one
    language are taken for a dozen.
    """
    counts = Counter(languages).most_common()
    rare = {name: counts[0][0] for name, n in counts if n < MIN_LANGUAGE * len(languages)}
    return [rare.get(name, name) for name in languages]


def positions_of(keys: np.ndarray, languages: np.ndarray) -> np.ndarray:
    """Return positions, float32 (n, 2). Where there are several languages, what all items of one
    have in common is subtracted, so that the languages are not islands.
    """
    if languages.any():
        means = [keys[languages == language].mean(axis=0) for language in range(max(languages) + 1)]
        keys = _normalized(keys - np.array(means)[languages])
    n = len(keys)
    sample = np.arange(n)
    if n > MAX_EMBEDDED:
        sample = np.sort(np.random.default_rng(SEED).choice(n, MAX_EMBEDDED, replace=False))
    plane = _embedded(keys[sample])
    plane -= plane.mean(axis=0)
    plane /= np.abs(plane).max(initial=1e-9)
    positions = _among(keys, keys[sample], plane)
    positions[sample] = plane
    return positions


def _embedded(keys: np.ndarray) -> np.ndarray:
    n = len(keys)
    if n < 5 or not np.ptp(keys, axis=0).any():  # nothing to compare: a circle
        angles = np.linspace(0, 2 * np.pi, n, endpoint=False)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    with leaving_no_trace("sklearn.manifold"):
        from sklearn.manifold import TSNE

    tsne = TSNE(
        perplexity=min(PERPLEXITY, (n - 1) / 3),
        # There is no second principal component of one number.
        init="pca" if keys.shape[1] > 1 else "random",
        max_iter=ITERATIONS,
        angle=ANGLE,
        random_state=SEED,
    )
    with threadpool_limits(1):  # on busy cores, its threads would wait for each other
        return np.asarray(tsne.fit_transform(keys), dtype=np.float32)


def _among(rows: np.ndarray, keys: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return positions, float32 (n, 2), for rows of length 1: the mean of those of the most similar
    keys, the more weight the more similar.
    """
    k = min(N_NEAREST, len(keys))
    placed = np.empty((len(rows), 2), dtype=np.float32)
    for start in range(0, len(rows), 1000):
        cosines = rows[start : start + 1000] @ keys.T
        nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        best = np.take_along_axis(cosines, nearest, axis=1)
        weights = (1 + 1e-5 - np.minimum(best, 1).astype(np.float64)) ** -3
        weights /= weights.sum(axis=1, keepdims=True)
        placed[start : start + 1000] = np.einsum("nk,nkd->nd", weights, positions[nearest])
    return placed


def neighbours_kept(keys: np.ndarray, positions: np.ndarray) -> float:
    """Return the share of the nearest items by keys that are among the nearest in the plane."""
    k = min(K_COMPARED, len(keys) - 1)
    if k < 1:
        return 1.0
    rows = np.random.default_rng(SEED).permutation(len(keys))[:N_COMPARED]
    n_kept = 0
    for row in rows.tolist():
        cosines = keys @ keys[row]
        distances = ((positions - positions[row]) ** 2).sum(axis=1)
        cosines[row], distances[row] = -np.inf, np.inf
        by_key = np.argpartition(-cosines, k - 1)[:k]
        n_kept += len(np.intersect1d(by_key, np.argpartition(distances, k - 1)[:k]))
    return n_kept / (k * len(rows))


def _labels(
    positions: np.ndarray, texts: Sequence[str], languages: Sequence[str]
) -> list[ClusterLabel]:
    """Return the two words that tell each cluster of items best from the others: one, or no label,
    where fewer are in `MIN_NAMED` of its items. languages: of each text.
    """
    n_clusters = min(len(texts) // ITEMS_EACH, MAX_CLUSTERS)
    if n_clusters < 2:
        return []
    with leaving_no_trace("sklearn.cluster"):
        from sklearn.cluster import KMeans

    # The few texts of a rare language would name their cluster by its "with" and "of the". Short
    # ones are taken for a similar language: they have the stop words of all.
    rare = frozenset().union(*map(stop_words, FACTS))
    frequent = set(_frequent(languages))
    common = {
        name: stop_words(name) | stop_words(ENGLISH) if name in frequent else rare
        for name in set(languages)
    }
    words = [
        set(WORD.findall(text.casefold())) - common[name]
        for text, name in zip(texts, languages, strict=True)
    ]
    totals = Counter(word for those in words for word in those)
    with threadpool_limits(1):
        clusters = KMeans(n_clusters, n_init=3, random_state=SEED).fit(positions)
    labels = []
    for cluster, middle in enumerate(clusters.cluster_centers_.tolist()):
        members = np.flatnonzero(clusters.labels_ == cluster).tolist()
        counts = Counter(word for row in members for word in words[row])
        lift = {
            word: (n / len(members)) * np.log(n * len(texts) / (totals[word] * len(members)))
            for word, n in counts.items()
            if n >= MIN_NAMED
        }
        best: list[str] = []
        for word in sorted(lift, key=lambda word: (-lift[word], word)):
            # "shoes, shoe" says one thing twice.
            if len(best) < 2 and not any(word[:ROOT] == other[:ROOT] for other in best):
                best.append(word)
        if best:
            labels.append(ClusterLabel(", ".join(best), *middle))
    return labels


def with_query(base: ItemMap, build: LoadedBuild, query: str, k: int) -> ItemMap:
    """Return the map with the position of a text. Raises `QkvError` for the collaborative head,
    which places no texts.
    """
    if base.head == COLLABORATIVE:
        raise QkvError(f"`query`: {COLLABORATIVE} embeddings have no texts; choose another `head`")
    texts = build.texts
    parts = texts.vectors(texts.reader.read(query)).of_head(base.head)
    return _with_point(base, build, parts, build.models.dense_keys(base.head), k)


def with_user(base: ItemMap, build: LoadedBuild, user: object, k: int) -> ItemMap:
    """Return the map with the position of a user: their embedding, or for a head of texts the mean
    of their history's keys, weighted by confidence. Raises `UnknownIdError`.
    """
    history = build.histories.of(user)
    if base.head == COLLABORATIVE:
        parts = build.recommender.embedding(history)
    else:
        parts = build.recommender.mean_text(history, base.head)
    return _with_point(base, build, parts, _keys(build.recommender, base.head), k)


def _with_point(
    base: ItemMap, build: LoadedBuild, parts: LabelledVectors, keys: ItemKeys[Any], k: int
) -> ItemMap:
    """Return the map with a point at the sum of `parts`, and the k items that are nearest to it."""
    if not parts.vectors.any():
        return replace(base, notes=[*base.notes, f"{base.head} knows nothing about it."])
    head = score_candidates(keys.head(base.head, parts), Filter(k=k))
    hits = replace(rank(head, build.catalog.names, k=k), source=build)
    (position,) = base.project(parts.total)
    hit_positions = base.project(keys.vectors[hits.positions])
    return replace(base, point=MapPoint(position, hits, hit_positions))
