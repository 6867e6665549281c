"""Whether a catalog answers a query at all, and which of its items match it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qkvsearch.index import StoredModels
from qkvsearch.retrieval import Ranking, Scores
from qkvsearch.retrieval.answerability import WORDS, Evidence, letters_of
from qkvsearch.retrieval.keys import inverse_frequency
from qkvsearch.retrieval.remote_keys import Unscored
from qkvsearch.search.answerable_titles import title_terms, titled_so
from qkvsearch.text.analysis import IS_CJK, Token
from qkvsearch.text.encoders import LEARNED

# Words of titles answer a query of which they make up this share, each counted by its idf.
TITLE_SHARE = 1 / 3

UNKNOWN = "No hits: none of these words is in the catalog."
NOTHING = "No hits: nothing in the catalog answers this; `anyway` shows what comes nearest."
NEAREST = "Nothing in the catalog answers this: these hits come nearest to it."


def none_found(fused: Scores | None, ranking: Ranking, k: int) -> list[str]:
    """Why an answer has no hits, where nothing else says so."""
    if not k:
        return []
    if fused is None:
        return [UNKNOWN]
    return ["No hits: no item is left that answers."] if not ranking.n_candidates else []


@dataclass(frozen=True)
class Answerable:
    """value: how likely the catalog answers the query, 0 to 1. level: from where it counts as
    answered by that alone. answers: whether it does, be it for what `why` says.
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
    """What the words of a query and the scores of these heads say; a head is None where it knows no
    word. tokens: as the lexical head is asked for them, corrected ones as corrections. has_code:
    whether the query has an item's id or another code of it.

    Words that only join others are answered by a title of just these; a code, or words that the
    catalog has all, always are; so is a query of which words in titles make up a third. Otherwise
    the build's `Answerability` decides, or the main head alone where some item is as near as no
    text that cannot be answered.
    """
    known = models.answerability
    keys = models.lexical_keys
    best = {name: _best(heads[name]) for name in heads if name in models.head_weights}
    found = Evidence.of(keys, tokens, best)
    value = known.probability(known.strength(found, models.head_weights))
    if has_code:
        return Answerable(value, known.level, True, "an item has this code")
    return Answerable(value, known.level, *_decided(models, tokens, best, found, value))


def _decided(
    models: StoredModels,
    tokens: Sequence[Token],
    best: Mapping[str, float],
    evidence: Evidence,
    value: float,
) -> tuple[bool, str]:
    """Whether a query is answered, and why."""
    known = models.answerability
    letters, share, found = evidence
    if tokens and all(token.is_stop_word for token in tokens):
        return titled_so(models, tokens), "of words that only join others, just a title says more"
    if found[WORDS] == 0 and not any(best.values()):
        return False, "no head knows a word"
    if share == 1:
        return True, "the catalog has all of the words"
    if not value <= known.level:  # so is what is no number, which a ranking refuses
        return True, "the heads are sure enough"
    main = list(models.head_weights)[-1]
    if main not in LEARNED and found.get(main, 0) > known.match_level(main, letters):
        return True, f"by {main} an item is nearer than to what cannot be answered"
    if _title_share(models, tokens) >= TITLE_SHARE:
        return True, "titles have the words"
    return False, "the heads find no more than for what cannot be answered"


def matches(
    models: StoredModels, tokens: Sequence[Token], heads: Mapping[str, Scores | Unscored | None]
) -> np.ndarray:
    """bool (n_items,): the items that the lexical head answers, and those that are nearer by a
    pretrained main head than items are to texts that the catalog cannot answer. An encoder that is
    learned from the catalog tells too little of a single item for that: it counts where no words
    were asked for.
    """
    known, lexical = models.answerability, heads.get("lexical")
    is_match = np.zeros(models.n_items, dtype=bool)
    if lexical is not None:
        is_match |= lexical.above(0)
    main = list(models.head_weights)[-1]
    head = heads.get(main)
    if main in LEARNED and "lexical" in heads:
        return is_match
    if head is not None:
        is_match |= head.above(known.match_level(main, letters_of(tokens)))
    return is_match


def _best(head: Scores | None) -> float:
    return 0.0 if head is None else head.largest()


def _title_share(models: StoredModels, tokens: Sequence[Token]) -> float:
    """Of the words' idf, those that a title has; where words are cut into pairs of characters, most
    of which are none, one is all.
    """
    keys = models.lexical_keys
    if not tokens:
        return 0.0
    idf = inverse_frequency(np.array([keys.n_with(t.term) for t in tokens]), models.n_items)
    in_titles = title_terms(models, {token.term for token in tokens})
    if any(IS_CJK(term) for term in in_titles):
        return 1.0
    return float(idf[[token.term in in_titles for token in tokens]].sum() / idf.sum())
