"""Lesson on searching: keys, scores and rankings of a few texts, by the engine's own functions."""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csc_matrix

from qkvsearch.errors import DataError
from qkvsearch.heads.bm25 import LexicalKeys, inverse_document_frequency
from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.rank.ranking import Ranking, rank
from qkvsearch.scores.fusion import Scores, fuse
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.text_encoder import TextEncoder, item_keys
from qkvsearch.text.vocabulary import Vocabulary

LETTERS = "ABCDE"


def counted(texts: Sequence[str]) -> tuple[Vocabulary, csc_matrix]:
    """Return the terms of the texts, and how often each text has each (n_texts, n_terms)."""
    return AnalyzedTexts.of(texts, Analyzer()).key_counts()


def words_of(texts: Sequence[str]) -> list[str]:
    """Return a word as it is written for each term of the texts."""
    written = {token.term: token.text for text in texts for token in Analyzer().tokens(text)}
    vocabulary, _ = counted(texts)
    return [written[term.decode()] for term in vocabulary.terms]


def query_row(texts: Sequence[str], query: str) -> np.ndarray:
    """Return how often each term of the texts occurs in the query (1, n_terms)."""
    vocabulary, _ = counted(texts)
    rows = vocabulary.rows(token.term for token in Analyzer().query_tokens(query))
    return np.bincount(rows[rows >= 0], minlength=len(vocabulary))[None].astype(float)


def key_rows(texts: Sequence[str]) -> np.ndarray:
    """Return the BM25 number of each term in each text (n_texts, n_terms)."""
    vocabulary, counts = counted(texts)
    keys = LexicalKeys.from_counts(vocabulary, counts)
    shape = (keys.n_items, len(vocabulary))
    return csc_matrix((keys.weights, keys.indices, keys.indptr), shape=shape).toarray()


def number_of(texts: Sequence[str], word: str) -> float:
    """Return the BM25 number of the word in the last text."""
    vocabulary, _ = counted(texts)
    return float(key_rows(texts)[-1, vocabulary.rows([word])[0]])


def idf(texts: Sequence[str], word: str) -> float:
    """Return the inverse document frequency of a word."""
    n_with = sum(word in text.casefold() for text in texts)
    return float(inverse_document_frequency(n_with, len(texts)))


def engine_scores(texts: Sequence[str], query: str) -> Scores:
    """Return the search box's scores by words.

    Raises `DataError` where no text has a word of the query.
    """
    scores = LexicalKeys.from_counts(*counted(texts)).head(Analyzer().query_tokens(query))
    if scores is None:
        raise DataError(
            f"`sentence`: no word of {query!r} is in a title or tag of the lesson's videos; "
            f"use some of: {', '.join(words_of(texts))}"
        )
    return scores


def ranked(texts: Sequence[str], scores: Scores) -> Ranking:
    """Return the ranking that the search box makes of scores; titles are the first lines."""
    titles = [text.partition("\n")[0] for text in texts]
    return rank(
        scores,
        lambda rows: ([LETTERS[i] for i in rows], [titles[i] for i in rows]),
        k=len(texts),
    )


def engine_weights(ranking: Ranking, n: int) -> np.ndarray:
    """Return the weights of a ranking in the order of the n texts; 0 for those not in it."""
    weights = np.zeros(n)
    weights[ranking.positions] = [hit.weight for hit in ranking]
    return weights


def corpus_encoder(texts: Sequence[str]) -> TextEncoder:
    """Return an encoder that learned its embeddings from the texts."""
    from qkvsearch.text.learned.corpus_encoders import CorpusEncoder

    return CorpusEncoder(n_components=2).fit(texts).encoder_


def by_meaning(texts: Sequence[str], query: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the query, the keys and the scores of the texts by meaning."""
    encoder = corpus_encoder(texts)
    columns = list(zip(*(text.split("\n") for text in texts), strict=True))
    q = encoder.encode_many([query])
    keys = item_keys(encoder.encode_many, columns)
    return q, keys, q @ keys.T


def ranked_by_both(texts: Sequence[str], query: str, keys: np.ndarray) -> Ranking:
    """Return the ranking by words and by meaning, each of which counts half."""
    dense = DenseKeys(keys).head("meaning", corpus_encoder(texts).encode(query))
    heads = [engine_scores(texts, query)]
    if dense is not None:
        heads.append(dense)
    return ranked(texts, fuse(heads, [1] * len(heads)))
