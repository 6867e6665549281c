"""The first lesson: eight of the bundled videos, as the search box and the recommender see them."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch.heads.bm25 import LexicalKeys
from qkvsearch.models.item_neighbours import NeighbourRegression
from qkvsearch.tables.catalog import Catalog
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.sources import read_source
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.vocabulary import Vocabulary

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
    """Return the BM25 number of each word in each of the eight videos (8, n_words).

    They have two decimals, so that a reader can compute on with what is shown.
    """
    return np.column_stack([_scores(word) for word in words])[_rows()].round(2)


def occurrences(word: str) -> tuple[np.ndarray, np.ndarray]:
    """Return how often the text of each of the eight videos has a form of the word, and how many
    words it has, both (8,)."""
    vocabulary, counts = _counts()
    (token,) = Analyzer().query_tokens(word)
    of_videos = counts[_rows()].toarray().astype(int)
    return of_videos[:, vocabulary.row(token.term)], of_videos.sum(axis=1)


def shared_videos(*words: str) -> np.ndarray:
    """Return in how many of the eight videos each two words occur together (n_words, n_words); on
    the diagonal, in how many each occurs."""
    has_word = _has(words)
    return has_word @ has_word.T


def word_rows(*words: str) -> np.ndarray:
    """Return a row for each word (n_words, 8), with 1/√n at each of the n videos that have it,
    else 0.

    The product of two rows is the number of videos that they share, over the root of the product
    of their numbers of videos.
    """
    has_word = _has(words)
    return has_word / np.sqrt(has_word.sum(axis=1, keepdims=True))


def word_categories(*words: str) -> np.ndarray:
    """Return which share of a word's videos is of each category (n_words, n), among the eight."""
    has_word = _has(words)
    return has_word @ categories()[1] / has_word.sum(axis=1, keepdims=True)


def watched(user: str) -> tuple[list[str], np.ndarray]:
    """Return the titles that a user watched, and bool (8,), False for the watched videos."""
    history = _history(user)
    return _column("title")[history].tolist(), ~np.isin(_rows(), history)


def watched_keys(user: str, word: str = "transformer") -> np.ndarray:
    """Return how much each watched video speaks for each of the eight (8, n_watched).

    The weights of `ItemNeighbours`, in a scale in which the user's scores spread as those of the
    word do, among all videos, to two decimals.
    """
    weights = _neighbours()[_history(user)]
    scale = _scores(word).std() / weights.sum(axis=0).std()
    return (weights[:, _rows()].T * scale).round(2)


@cache
def _sample() -> tuple[Catalog, Interactions]:
    dataset = read_source("sample:videos")
    assert isinstance(dataset.interactions, Interactions)
    return dataset.catalog, dataset.interactions


@cache
def _counts() -> tuple[Vocabulary, csr_matrix]:
    """Return the terms of all videos, and how often each video has each."""
    return AnalyzedTexts.of(_sample()[0].texts(), Analyzer()).key_counts()


@cache
def _keys() -> LexicalKeys:
    return LexicalKeys.from_counts(*_counts())


@cache
def _neighbours() -> np.ndarray:
    return NeighbourRegression().fit(_sample()[1]).weights_.matrix().toarray()


def _has(words: Sequence[str]) -> np.ndarray:
    """Return 1 where one of the eight videos has a word, else 0 (n_words, 8)."""
    return np.array([_scores(word)[_rows()] > 0 for word in words], dtype=float)


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
