"""The lexical head: items that have the query's words, their pairs, its Chinese characters, and its
codes.
"""

from __future__ import annotations

from qkvsearch.heads.bm25 import TermKeys
from qkvsearch.heads.search_head import Asked, TextHead, by_language
from qkvsearch.heads.single_units import SingleUnits
from qkvsearch.heads.word_pairs import word_pairs
from qkvsearch.scores.fusion import Scores, summed


class LexicalHead(TextHead):
    """BM25 over the words of items."""

    name = "lexical"
    titles = by_language(en="Words", zh="词语")
    colours = ("#2f5fb3", "#7aa7f5")
    reason = "same word"

    def scores(self, asked: Asked) -> Scores | None:
        """Return the sum of words, pairs of words, characters and codes; None where no item has
        any."""
        query, models, units = asked.query, asked.models, asked.units
        keys: TermKeys = models.lexical_keys
        index, mask, largest = models.words, asked.mask, query.words.largest
        if units is not None:
            keys, index = units.terms, units.words
            mask = None if mask is None else mask[units.item_of]
            largest = {term: keys.largest(term) for term in largest}
        words = keys.head(query.terms)
        pairs = None
        if words is not None:
            pairs = word_pairs(query.tokens, largest, words, index, mask)
        characters = None
        # Single characters of a query in other letters than the catalog's tell less than its
        # meaning: the 袋 of 睡袋, "sleeping bag", is in a tea bag, too.
        if not asked.is_in_other_letters:
            units_of_query = SingleUnits.of(keys, index, query.tokens)
            if units_of_query is not None:
                characters = units_of_query.scores(self.name)
        codes = query.codes.head(asked.catalog)
        if codes is not None and units is not None:
            codes = units.expanded(codes)
        known = [scores for scores in (words, pairs, characters, codes) if scores is not None]
        return summed(known) if known else None


LEXICAL = LexicalHead()
