"""The first lesson: eight of the bundled videos, as the search box and the recommender see them."""

from functools import cache

import numpy as np

from qkvsearch.heads.bm25 import LexicalKeys
from qkvsearch.models.item_neighbours import NeighbourRegression
from qkvsearch.tables.catalog import Catalog
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.sources import read_source
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts

# Toys, the power grid, the model.
VIDEOS = ("v164", "v050", "v093", "v157", "v202", "v001", "v088", "v187")


def titles() -> list[str]:
    """Return the titles of the eight videos."""
    return _column("title")[_rows()].tolist()


def all_titles() -> list[str]:
    """Return the titles of all videos of the sample."""
    return _column("title").tolist()


def categories() -> tuple[list[str], np.ndarray]:
    """Return the categories of the eight videos, and for each video a 1 at its own (8, n)."""
    of_video = _column("category")[_rows()]
    names = np.unique(of_video)
    return names.tolist(), (of_video[:, None] == names).astype(float)


def word_keys(*words: str) -> np.ndarray:
    """Return the BM25 number of each word in each of the eight videos (8, n_words)."""
    return np.column_stack([_scores(word) for word in words])[_rows()]


def word_rows(*words: str) -> np.ndarray:
    """Return each word's BM25 numbers in the videos that have any of them, at length 1."""
    rows = np.array([_scores(word) for word in words])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True))[:, rows.any(axis=0)]


def temperature(word: str) -> float:
    """Return the temperature of the search box: how far the scores of all videos spread."""
    return float(_scores(word).std())


def watched(user: str) -> tuple[list[str], np.ndarray]:
    """Return the titles that a user watched, and bool (8,), False for the watched videos."""
    history = _history(user)
    return _column("title")[history].tolist(), ~np.isin(_rows(), history)


def watched_keys(user: str, word: str = "transformer") -> np.ndarray:
    """Return how much each watched video speaks for each of the eight (8, n_watched).

    The weights of `ItemNeighbours`, in a scale in which the user's scores spread as those of the
    word do.
    """
    weights = _neighbours()[_history(user)]
    return weights[:, _rows()].T * temperature(word) / weights.sum(axis=0).std()


@cache
def _sample() -> tuple[Catalog, Interactions]:
    dataset = read_source("sample:videos")
    assert isinstance(dataset.interactions, Interactions)
    return dataset.catalog, dataset.interactions


@cache
def _keys() -> LexicalKeys:
    texts = AnalyzedTexts.of(_sample()[0].texts(), Analyzer())
    return LexicalKeys.from_counts(*texts.key_counts())


@cache
def _neighbours() -> np.ndarray:
    return NeighbourRegression().fit(_sample()[1]).weights_.matrix().toarray()


def _column(name: str) -> np.ndarray:
    return _sample()[0].frame[name].to_numpy(str)


def _rows() -> np.ndarray:
    return _sample()[0].ids.positions(VIDEOS)


def _history(user: str) -> np.ndarray:
    log = _sample()[1]
    return log.matrix()[log.user_ids.find(user)].indices


def _scores(word: str) -> np.ndarray:
    scores = _keys().head(Analyzer().query_tokens(word))
    assert scores is not None
    return scores.scores.astype(float)
