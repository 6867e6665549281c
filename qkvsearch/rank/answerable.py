"""Whether a catalog answers a query at all, and which of its items match it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from qkvsearch.heads.answerability import WordStatistics, letters_of
from qkvsearch.heads.lookup import Lookup
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.rank.ranking import Ranking
from qkvsearch.scores.fusion import Scores
from qkvsearch.text.analysis import Token
from qkvsearch.text.encoders import LEARNED
from qkvsearch.text.labelled import LabelledVectors

# A query of few words is answered if one of them is in few texts: one, or this share of them.
FEW_WORDS, RARE_SHARE = 3, 0.01

# `LEAD` and `CERTAIN` were chosen on TED's dev queries, `SURE` on a dozen queries for films; what
# they give is measured by benchmarks/claims/match_grades.py.
LEAD, CERTAIN, SURE = 1.4, 0.96, 0.9

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


class Answerable(NamedTuple):
    """Whether the catalog answers a query. value: the probability by the scores."""

    value: float
    answers: bool


def answerable(
    models: StoredModels,
    words: WordStatistics,
    heads: Mapping[str, Scores | None],
    has_code: bool = False,
) -> Answerable:
    """Decide whether the catalog answers a query, by its words and the scores of its heads.

    heads: None for one that knows no word. words: of the lexical head, corrected. has_code: whether
    the query has an id or another code of an item.

    Codes, and words that the catalog has all, are always answered, as are queries of few words with
    a rare one. Otherwise the build's `Answerability` decides, or `judging_head` alone if an item is
    more similar than to any text that cannot be answered.
    """
    known = models.answerability
    best = {
        name: 0.0 if head is None else float(head.scores.max(initial=0))
        for name, head in heads.items()
        if name in models.head_weights
    }
    evidence = words.evidence(best)
    value = known.probability(known.strength(evidence, models.head_weights))
    if not (words.rarest or any(best.values())):
        return Answerable(value, has_code)
    main = judging_head(models)
    level = known.match_level(main, words.letters)
    answers = (
        has_code
        or words.share == 1
        or (words.n <= FEW_WORDS and 0 < words.rarest <= max(1.0, RARE_SHARE * models.n_items))
        or not value <= known.level  # also for NaN, which a ranking refuses
        or (main not in LEARNED and evidence.values.get(main, 0) > level)
    )
    return Answerable(value, answers)


def grades(
    models: StoredModels,
    query: Lookup,
    fused: Scores,
    positions: np.ndarray,
    codes: Scores | None,
) -> list[str]:
    """Return whether each hit is a strong, a good or a weak match of the query.

    A hit is strong if it has a code or all words of the query. If the query has more than three
    words, it is also strong if no other item's score is within `LEAD` standard deviations, and the
    probability that its own scores are those of a query with an answer is at least `CERTAIN`. Where
    it is below `SURE`, a hit is weak. fused: with the `raw` scores of the heads.
    """
    known, terms = models.answerability, {token.term for token in query.tokens}
    own = {name: head.scores[positions].astype(np.float64) for name, head in fused.raw.items()}
    strengths = known.strength(query.words.evidence(own), models.head_weights)
    probabilities = np.array([known.probability(strength) for strength in strengths])
    is_strong = np.full(len(positions), bool(terms) and query.words.share == 1)
    for term in terms:
        if not is_strong.any():
            break
        items, _ = models.lexical_keys.postings(term)
        slots = np.minimum(items.searchsorted(positions), len(items) - 1)
        is_strong &= items[slots] == positions
    if codes is not None:
        is_strong |= codes.scores[positions] > 0
    if len(query.tokens) > FEW_WORDS and probabilities[0] >= CERTAIN and not is_strong[0]:
        nearest = fused.scores[positions[0]] - LEAD * fused.moments[1]
        is_strong[0] = np.count_nonzero(fused.scores >= nearest) == 1
    return np.where(is_strong, "strong", np.where(probabilities < SURE, "weak", "good")).tolist()


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
