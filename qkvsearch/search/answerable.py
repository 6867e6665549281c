"""Whether a catalog answers a query at all, and which of its items match it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qkvsearch.index import StoredModels
from qkvsearch.retrieval import Ranking, Scores
from qkvsearch.retrieval.answerability import WORDS, Evidence, letters_of
from qkvsearch.retrieval.bm25 import inverse_document_frequency
from qkvsearch.text.analysis import IS_CJK, Token
from qkvsearch.text.encoders import LEARNED
from qkvsearch.text.labelled import LabelledVectors

# Words of titles answer a query of which they make up this share, each counted by its idf.
TITLE_SHARE = 1 / 3
# The titles that are read for a word: those of the items in which it has most weight. No title has
# a third of a query with more words than this.
MAX_TITLES, MAX_TERMS = 200, 32

UNKNOWN = "No hits: none of these words is in the catalog."
NOTHING = "No hits: nothing in the catalog answers this; `anyway` shows what comes nearest."
NEAREST = "Nothing in the catalog answers this: these hits come nearest to it."


def none_found(fused: Scores | None, ranking: Ranking, k: int) -> list[str]:
    """Return why an answer has no hits, where no other note does."""
    if not k:
        return []
    if fused is None:
        return [UNKNOWN]
    return ["No hits: no item is left that answers."] if not ranking.n_candidates else []


@dataclass(frozen=True)
class Answerable:
    """Whether the catalog answers a query, and why.

    value: the probability by the scores. level: the probability from which on scores alone decide.
    """

    value: float
    level: float
    answers: bool
    why: str


def answerable(
    models: StoredModels,
    tokens: Sequence[Token],
    heads: Mapping[str, Scores | None],
    has_code: bool = False,
) -> Answerable:
    """Decide whether the catalog answers a query, by its words and the scores of its heads.

    heads: None for one that knows no word. tokens: of the lexical head, corrected. has_code:
    whether the query has an id or another code of an item.

    Stop words are answered by a title that consists of them. Codes, and words that the catalog has
    all, are always answered, as are queries with a third of their words in titles. Otherwise the
    build's `Answerability` decides, or `judging_head` alone if an item is more similar than to any
    text that cannot be answered.
    """
    known, keys = models.answerability, models.lexical_keys
    best = {
        name: 0.0 if head is None else float(head.scores.max(initial=0))
        for name, head in heads.items()
        if name in models.head_weights
    }
    evidence = Evidence.of(keys, tokens, best)
    value = known.probability(known.strength(evidence, models.head_weights))
    if has_code:
        return Answerable(value, known.level, True, "an item has this code")
    return Answerable(value, known.level, *_decided(models, tokens, best, evidence, value))


def _decided(
    models: StoredModels,
    tokens: Sequence[Token],
    best: Mapping[str, float],
    evidence: Evidence,
    value: float,
) -> tuple[bool, str]:
    """Return whether a query is answered, and why."""
    known = models.answerability
    letters, share, values = evidence
    if tokens and all(token.is_stop_word for token in tokens):
        return has_title(models, tokens), "only stop words: a title alone answers them"
    if values[WORDS] == 0 and not any(best.values()):
        return False, "no head knows a word"
    if share == 1:
        return True, "the catalog has all of the words"
    if not value <= known.level:  # also for NaN, which a ranking refuses
        return True, "the heads are sure enough"
    main = judging_head(models)
    if main not in LEARNED and values.get(main, 0) > known.match_level(main, letters):
        return True, f"by {main} an item is more similar than to queries without an answer"
    if _title_share(models, tokens) >= TITLE_SHARE:
        return True, "titles have the words"
    return False, "the heads find no more than for queries without an answer"


def matches(
    models: StoredModels,
    tokens: Sequence[Token],
    lexical: Scores | None,
    vectors: LabelledVectors | None,
) -> np.ndarray:
    """Return which items match a query, bool (n_items,): those that have a word of it, and those
    that are more similar by `judging_head` than items are to texts that cannot be answered.

    lexical: scores of the lexical head, None where it knows no word. vectors: the query of the
    other head, None where it does not count.
    """
    is_match = np.zeros(models.n_items, dtype=bool)
    if lexical is not None:
        is_match |= lexical.scores > 0
    if vectors is None or not len(vectors):
        return is_match
    head = judging_head(models)
    threshold = models.answerability.match_level(head, letters_of(tokens))
    return is_match | models.dense_keys(head).above(vectors, threshold)


def judging_head(models: StoredModels) -> str:
    """Return the dense head whose similarities decide whether an item matches."""
    return models.dense_heads[-1]


def _title_share(models: StoredModels, tokens: Sequence[Token]) -> float:
    """Return the share of the words' idf that is in titles. Where words are pairs of characters,
    most of which are no words, it is 1 if a title has one of them.
    """
    keys = models.lexical_keys
    if not tokens:
        return 0.0
    idf = inverse_document_frequency(
        np.array([keys.n_with(t.term) for t in tokens]), models.n_items
    )
    in_titles = title_terms(models, {token.term for token in tokens})
    if any(IS_CJK(term) for term in in_titles):
        return 1.0
    return float(idf[[token.term in in_titles for token in tokens]].sum() / idf.sum())


def title_terms(models: StoredModels, terms: Collection[str]) -> set[str]:
    """Return which of the terms are in titles; none of more than 32."""
    if len(terms) > MAX_TERMS:
        return set()
    return {term for term in terms if any(term in title for title in _titles_with(models, term))}


def has_title(models: StoredModels, tokens: Sequence[Token]) -> bool:
    """Return whether a title consists of these words, numbers aside, as in "Up (2009)", or begins
    with several of them, as in "The Who, live".
    """
    terms = [token.term for token in tokens]
    rarest = min(terms, key=models.lexical_keys.n_with)
    return any(
        [term for term in title if not term.isdecimal()] == terms
        or (len(terms) > 1 and title[: len(terms)] == terms)
        for title in _titles_with(models, rarest)
    )


def _titles_with(models: StoredModels, term: str) -> list[list[str]]:
    """Return the terms of the titles of items that have a term, the best by BM25 first."""
    items, weights = models.lexical_keys.postings(term)
    if not len(items):
        return []
    best = items[np.argsort(-weights, kind="stable")[:MAX_TITLES]]
    _, titles = models.snapshot.catalog.names(best)
    return [models.analyzer.key_terms(title) for title in titles]
