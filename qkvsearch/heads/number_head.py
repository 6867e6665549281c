"""A bonus for items with a number of the query: whoever asks for 25 m does not want 15 m."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkvsearch.heads.bm25 import QueryTerm, TermKeys
from qkvsearch.heads.first_head import FirstHead, QueryWording
from qkvsearch.heads.search_head import Asked, by_language
from qkvsearch.text.analysis import NUMBER, Token

# Longer queries are prose, in which a number is one of many words.
MAX_WORDS = 8


class NumberHead(FirstHead):
    """Of the items with the most other words of a query, those with its numbers. It is added to
    other heads: a similar meaning tells hardly anything about numbers.
    """

    name = "number"
    titles = by_language(en="Same number", zh="相同的数字")
    reason = "it has this number"
    # More than the second pass gives.
    lead = 1.0

    def items(self, asked: Asked, wording: QueryWording) -> np.ndarray | None:
        """Return the items that get the bonus, bool (n_items,); None where there are none.

        A number with a unit counts more where the item has that unit, too.
        """
        query, keys = asked.query, asked.models.lexical_keys
        tokens = query.tokens
        has_number = any(NUMBER(token.term) for token in tokens)
        if not has_number or len(tokens) > MAX_WORDS:
            return None
        terms = query.terms[: len(tokens)]
        units = {letters for token in tokens for letters in _letters_beside(token)}
        numbers: list[QueryTerm] = []
        words: list[QueryTerm] = []
        for place, (token, term) in enumerate(zip(tokens, terms, strict=True)):
            is_unfinished = wording.is_typing and place == len(tokens) - 1
            if not NUMBER(token.term):
                if token.text not in units:
                    words.append(term)
            elif not is_unfinished:
                numbers.append(term)
        n_words = _counts(words, keys, is_weighed=False)
        n_numbers = _counts(numbers, keys, is_weighed=True)
        n_numbers[n_words < n_words.max(initial=0)] = 0
        most = n_numbers.max(initial=0)
        return n_numbers == most if most > 0 else None


NUMBERS = NumberHead()


def _letters_beside(token: Token) -> list[str]:
    """Return the letters that are typed beside a number: "m" of 25 m; none for a word."""
    if not NUMBER(token.term):
        return []
    return [whole.replace(token.text, "", 1) for whole in token.variants]


def _counts(terms: Sequence[QueryTerm], keys: TermKeys, is_weighed: bool) -> np.ndarray:
    """Return how many of the terms each item has, float64 (n_items,).

    is_weighed: whether a term counts by the weight of its best expansion.
    """
    counts = np.zeros(keys.n_items)
    for term in terms:
        best = np.zeros(keys.n_items)
        for expansion in term.expansions:
            items, _ = keys.postings(expansion.term)
            best[items] = np.maximum(best[items], expansion.weight if is_weighed else 1.0)
        counts += best
    return counts
