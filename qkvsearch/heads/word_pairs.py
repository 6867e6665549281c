"""Neighbouring words of a query that are neighbours in an item, as addends of the lexical score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from qkvsearch.heads.word_index import WordIndex
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores
from qkvsearch.scores.topk import top_k
from qkvsearch.text.analysis import Token

# A pair adds this share of the most that the lesser of its words adds alone. With .4, TED's dev
# queries are better, but Cranfield's .005 worse.
PAIR_SHARE = 0.25
# Pairs count among so many best items by single words.
DEPTH = 100
# Later pairs of a long query are not looked up.
MAX_PAIRS = 10


def word_pairs(
    tokens: Sequence[Token],
    largest: Mapping[str, float],
    words: Scores,
    index: WordIndex,
    mask: np.ndarray | None = None,
) -> Scores | None:
    """Return what pairs of neighbouring words of a query, in either order, add to the scores of its
    single words; None where no item has a pair.

    tokens: the words in order, without stop words. largest: by term, the most that it adds to a
    score. words: their scores. mask: bool (n_items,), the items that may be ranked.
    """
    tokens = tokens[: MAX_PAIRS + 1]
    # The terms of each pair, with its name in reasons.
    pairs: dict[tuple[str, str], str] = {}
    for first_word, second_word in pairwise(tokens):
        terms_of_pair = (first_word.term, second_word.term)
        are_known = all(largest.get(term) for term in terms_of_pair)
        if are_known and first_word.term != second_word.term:
            pairs[terms_of_pair] = f"{first_word.text} {second_word.text}"
    if not pairs:
        return None
    terms = list(dict.fromkeys(token.term for token in tokens))
    numbers = {term: number for number, term in enumerate(terms)}
    # The number of the pair that two terms are, in either order; −1 for none.
    pair_of = np.full((len(terms), len(terms)), -1)
    for row, (a, b) in enumerate(pairs):
        pair_of[numbers[a], numbers[b]] = row
        pair_of[numbers[b], numbers[a]] = row
    best = np.sort(top_k(words.scores, DEPTH, words.allowed(mask)))
    items, first, second = index.neighbours(terms, best)
    # An item counts each pair once.
    neighbours = zip(items.tolist(), pair_of[first, second].tolist(), strict=True)
    found = {(item, row) for item, row in neighbours if row >= 0}
    if not found:
        return None
    items, of_pair = np.array(sorted(found)).T
    labels = list(pairs.values())
    values = PAIR_SHARE * np.array([min(largest[a], largest[b]) for a, b in pairs])
    scores = np.bincount(items, values[of_pair], len(words.scores)).astype(np.float32)

    def parts(position: int) -> Components:
        matching = of_pair[slice(*items.searchsorted([position, position + 1]))]
        return Components.of(
            ScoreComponent(words.name, labels[row], labels[row], float(values[row]))
            for row in matching.tolist()
        )

    return Scores(words.name, scores, parts, covered=scores > 0)
