"""Whether a catalog answers a query at all, and which of its items match it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from qkvsearch.index import StoredModels
from qkvsearch.retrieval import Ranking, Scores
from qkvsearch.retrieval.answerability import WORDS, Evidence, letters_of
from qkvsearch.text.analysis import Token
from qkvsearch.text.encoders import LEARNED
from qkvsearch.text.labelled import LabelledVectors

# A query of few words is answered if one of them is in few texts: one, or this share of them.
FEW_WORDS, RARE_SHARE = 3, 0.01

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

    Codes, and words that the catalog has all, are always answered, as are queries of few words with
    a rare one. Otherwise the build's `Answerability` decides, or `judging_head` alone if an item is
    more similar than to any text that cannot be answered.
    """
    known, keys = models.answerability, models.lexical_keys
    best = {
        name: 0.0 if head is None else float(head.scores.max(initial=0))
        for name, head in heads.items()
        if name in models.head_weights
    }
    letters, share, values = evidence = Evidence.of(keys, tokens, best)
    value = known.probability(known.strength(evidence, models.head_weights))
    decided = partial(Answerable, value, known.level)
    if has_code:
        return decided(True, "an item has this code")
    if values[WORDS] == 0 and not any(best.values()):
        return decided(False, "no head knows a word")
    if share == 1:
        return decided(True, "the catalog has all of the words")
    n_rare = max(1.0, RARE_SHARE * models.n_items)
    if len(tokens) <= FEW_WORDS and any(0 < keys.n_with(t.term) <= n_rare for t in tokens):
        return decided(True, "few texts have one of the few words")
    if not value <= known.level:  # also for NaN, which a ranking refuses
        return decided(True, "the heads are sure enough")
    main = judging_head(models)
    if main not in LEARNED and values.get(main, 0) > known.match_level(main, letters):
        return decided(True, f"by {main} an item is more similar than to queries without an answer")
    return decided(False, "the heads find no more than for queries without an answer")


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
