"""Whether a catalog answers a query at all, and which of its items are near it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.errors import Count
from qkvsearch.heads.answerability import (
    MIN_SPREAD,
    Answerability,
    WordStatistics,
)
from qkvsearch.heads.single_units import SingleUnits
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.unit_phrases import has_unspaced, largest_covered_share
from qkvsearch.rank.named_things import NamedThing, are_named
from qkvsearch.scores.fusion import Scores
from qkvsearch.text.analysis import Token
from qkvsearch.text.encoders import LEARNED

# A query of so few words is answered where one of them is rare.
FEW_WORDS = 3
# A word is rare that one text has, or at most this share of them.
RARE_SHARE = 0.01
# A query of more words is answered where one item has at least this share of them, or in a script
# without spaces of its characters.
ENOUGH = 0.5

# By a head to which all texts are similar, the best item is near if it stands out more than the
# best of as many unrelated items would, by so many standard deviations.
NEAR = 1.0
# A query of which the catalog has a smaller share of words may be in another language. Then it is
# enough to stand out more, since words cannot tell.
KNOWN_SHARE = 0.5

UNKNOWN = "No hits: none of these words is in the catalog."
NOTHING = "No hits: nothing in the catalog answers this; `anyway` shows what comes nearest."
NEAREST = "Nothing in the catalog answers this: these hits come nearest to it."


def none_found(fused: Scores | None, n_candidates: int, k: int) -> list[str]:
    """Return why an answer has no hits, where no other note does. n_candidates: how many items
    could be hits.
    """
    if not k:
        return []
    if fused is None:
        return [UNKNOWN]
    return ["No hits: no item is left that answers."] if not n_candidates else []


def weak_alone(n: int) -> str:
    """Return a note that there are only weak hits, so many, which were not asked for."""
    n_weak = Count(n)
    these = f"{n_weak} {n_weak:item matches|items match} only weakly"
    return f"No hits: {these}; `weak` lists {n_weak:it|them}."


class Answerable(NamedTuple):
    """Whether the catalog answers a query."""

    # The probability by the scores.
    value: float
    # What was decided, by the scores and the words.
    answers: bool


def answerable(
    models: StoredModels,
    words: WordStatistics,
    heads: Mapping[str, Scores | None],
    has_code: bool = False,
    tokens: Sequence[Token] = (),
    things: Sequence[NamedThing] = (),
    answering: np.ndarray | None = None,
) -> Answerable:
    """Decide whether the catalog answers a query, by its words and the scores of its heads.

    heads: None for one that knows no word. words: of the lexical head, corrected. has_code: whether
    the query has an id or another code of an item. tokens: the words themselves. things: what they
    name. answering: of a query whose words the catalog lacks, the items that answer it by
    `CommonSubjects`, bool (n,).
    """
    known = models.answerability
    characters = SingleUnits.of(models.lexical_keys, models.words, tokens)
    if characters is not None:
        words = words._replace(largest={**words.largest, **characters.largest})
    best: dict[str, float] = {}
    for name, head in heads.items():
        if name in models.head_weights:
            best[name] = 0.0 if head is None else _value(known, name, head, None)
    evidence = words.evidence(best)
    value = known.probability(known.strength(evidence, models.head_weights))
    is_known = words.rarest > 0 or any(best.values())
    if has_code or not is_known:
        return Answerable(value, has_code)

    has_all_words = words.share == 1
    is_rare = 0 < words.rarest <= max(1.0, RARE_SHARE * models.n_items)
    has_rare_word = words.n <= FEW_WORDS and is_rare
    # Also where the probability is NaN: a ranking refuses such scores, and silence would hide them.
    # Scores that are compared with common subjects are not those that the curve was fitted to.
    is_probable = answering is None and not value <= known.level
    has_characters = characters is not None and characters.is_answered(tokens)
    if answering is None:
        is_near = _is_near(models, evidence.values, words)
    else:
        is_near = bool(answering.any())
    answers = (
        has_all_words
        or has_rare_word
        or is_probable
        or is_near
        or has_characters
        or _has_enough(models, tokens)
        or bool(are_named(models, things).any())
    )
    return Answerable(value, answers)


def _value(known: Answerability, name: str, head: Scores, positions: np.ndarray | None) -> Any:
    """Return a head's evidence: of the best item, or of each of these items, float64 (n,)."""
    if positions is None:
        score = float(head.scores.max(initial=0))
    else:
        score = head.scores[positions].astype(np.float64)
    if name not in known.relative:
        return score
    mean, deviation = head.moments
    return (score - mean) / max(deviation, MIN_SPREAD)


def _is_near(models: StoredModels, evidence: Mapping[str, Any], words: WordStatistics) -> bool:
    """Return whether an item is more similar to a query than to any text without an answer.

    An encoder that was learned from the catalog tells too little of a single item.
    """
    head = judging_head(models)
    if head in LEARNED:
        return False
    known = models.answerability
    level = known.match_level(head, words.letters)
    if head in known.relative:
        # Most words are unknown where a query is in another language than the catalog: then only
        # this head can tell, and hits that do not stand out are graded as weak.
        deviations = NEAR if words.share >= KNOWN_SHARE else 0.0
        level = known.noise_level(head, words.letters, deviations)
    return evidence.get(head, 0) > level


def _has_enough(models: StoredModels, tokens: Sequence[Token]) -> bool:
    """Return whether one item has enough of a query's words, or of its characters."""
    if len(tokens) <= FEW_WORDS and not has_unspaced(tokens):
        return False
    return largest_covered_share(models.lexical_keys, tokens) >= ENOUGH


def are_near(
    models: StoredModels,
    words: WordStatistics,
    heads: Mapping[str, Scores],
    positions: np.ndarray,
) -> np.ndarray:
    """Return which items are more similar to a query than items are to texts without an answer,
    bool (n,).

    heads: by name, in their own units. An encoder that was learned from the catalog tells too
    little of a single item. positions: the items, whose scores are exact unless these are all
    items.
    """
    head, known = judging_head(models), models.answerability
    if head in LEARNED or head not in heads:
        return np.zeros(len(positions), dtype=bool)
    level = known.match_level(head, words.letters)
    if head in known.relative:
        level = known.noise_level(head, words.letters, NEAR)
    scores = heads[head]
    if scores.exact_above is not None and len(positions) == models.n_items:
        if head in known.relative:
            mean, deviation = scores.moments
            level = mean + level * max(deviation, MIN_SPREAD)
        return scores.exact_above(level)
    return np.asarray(_value(known, head, scores, positions) > level)


def judging_head(models: StoredModels) -> str:
    """Return the dense head whose similarities decide whether an item matches."""
    return models.dense_heads[-1]
