"""Other words for a word: the owner's synonyms, or the catalog's words that are near in a table
that was learned from other texts.

Words that occur beside each other in the catalog would flatter the encoders that learn from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.folding import fold
from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.made_queries.static_table import static_table
from qkvsearch.text.analysis import HAS_UNSPACED, Token
from qkvsearch.text.related_words import MIN_PREFIX

# A less similar word says something else.
MIN_COSINE = 0.5
# Shorter words are abbreviations and particles, and a catalog's rarest words are its typos.
SHORTEST, MIN_ITEMS = 4, 2
# More words would take seconds. The most frequent ones are taken.
MAX_WORDS = 20_000
# So many of the nearest words are compared with a word: most are other forms of it.
MAX_COMPARED = 2 * MIN_PREFIX * MIN_PREFIX


@dataclass(frozen=True)
class RelatedWords:
    """Other words for the words of a catalog."""

    source: QueriedCatalog

    def of(self, token: Token) -> str | None:
        """Return another word for a word; None where none is known."""
        models = self.source.build.models
        synonyms = self.source.build.texts.reader.lexicon.synonyms.of(token.text)
        known = [word for word in synonyms if models.lexical_keys.has(self._term(word))]
        if known:
            return known[0]
        if len(token.text) < SHORTEST:
            return None
        if token.text not in self._near_by_word:
            self._near_by_word[token.text] = self._near(token)
        return self._near_by_word[token.text]

    @cached_property
    def _near_by_word(self) -> dict[str, str | None]:
        """What `_near` returned, by word: most sentences have the same words."""
        return {}

    def _near(self, token: Token) -> str | None:
        """Return the nearest word that is no other form of the word."""
        words, vectors = self._table
        if not words or HAS_UNSPACED(token.text):
            return None
        table = static_table()
        assert table is not None
        cosines = vectors @ table.encode(token.text).total.astype(vectors.dtype)
        near = np.flatnonzero(cosines >= MIN_COSINE)
        nearest = near[np.argsort(-cosines[near], kind="stable")]
        for row in nearest[:MAX_COMPARED].tolist():
            other = words[row]
            if other[:MIN_PREFIX] != token.text[:MIN_PREFIX] and self._term(other) != token.term:
                return other
        return None

    @cached_property
    def _table(self) -> tuple[list[str], np.ndarray]:
        """The catalog's words and their vectors, (n_words, d); none without the table."""
        table = static_table()
        if table is None:
            return [], np.zeros((0, 0), np.float32)
        keys = self.source.build.models.lexical_keys
        counts = {
            word: n_with
            for word in self.source.words()
            if len(word) >= SHORTEST
            and word.isalpha()
            and not HAS_UNSPACED(word)
            and (n_with := keys.n_with(self._term(word))) >= MIN_ITEMS
        }
        words = sorted(counts, key=lambda word: (-counts[word], word))[:MAX_WORDS]
        return words, np.asarray(table.encode_many(words))

    def _term(self, word: str) -> str:
        tokens = self.source.analyzer.tokens(fold(word))
        return tokens[0].term if tokens else ""
