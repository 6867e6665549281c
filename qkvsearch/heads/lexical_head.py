"""The lexical head: items that have the query's words, their pairs, and its codes."""

from __future__ import annotations

from qkvsearch.heads.search_head import Asked, TextHead, by_language
from qkvsearch.heads.word_pairs import word_pairs
from qkvsearch.scores.fusion import Scores, summed


class LexicalHead(TextHead):
    """BM25 over the words of items."""

    name = "lexical"
    titles = by_language(en="same words", zh="相同的词")
    colours = ("#2f5fb3", "#7aa7f5")
    reason = "same word"

    def scores(self, asked: Asked) -> Scores | None:
        """Return the sum of words, pairs of words, and codes; None where no item has any."""
        query, models = asked.query, asked.models
        words = models.lexical_keys.head(query.terms)
        pairs = None
        if words is not None:
            pairs = word_pairs(query.tokens, query.words.largest, words, models.words, asked.mask)
        codes = query.codes.head(asked.catalog)
        known = [scores for scores in (words, pairs, codes) if scores is not None]
        return summed(known) if known else None


LEXICAL = LexicalHead()
