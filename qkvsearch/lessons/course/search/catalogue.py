"""Of lesson 4: five videos, with the keys that the package makes of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.errors import DataError
from qkvsearch.retrieval import Head, LexicalKeys, Ranking
from qkvsearch.retrieval.ranking import rank
from qkvsearch.texts.analysis import Analyzer
from qkvsearch.texts.item_keys import item_keys
from qkvsearch.texts.vocabulary import count_terms

if TYPE_CHECKING:
    from qkvsearch.texts.token_encoder import TokenEncoder

QUERY = "transformer"
TITLES = (
    "Transformer code",
    "Attention query",
    "Power transformer",
    "Oven power",
    "Bread oven",
)
TAGS = ("attention query", "code", "transformer", "oven power", "bread")
LETTERS = "ABCDE"
# Directions that the meaning of so few words has.
WIDTH = 2


class Catalogue:
    """The videos, and a query to them. Raises `DataError` where no video has a word of it."""

    def __init__(self, query: str = QUERY) -> None:
        self.query = query
        self.texts = [f"{title}\n{tags}" for title, tags in zip(TITLES, TAGS, strict=True)]
        self.vocabulary, self.counts = count_terms(self.texts, Analyzer().key_terms)
        self.lexical = LexicalKeys.from_counts(self.vocabulary, self.counts)
        self.tokens = Analyzer().query_tokens(query)
        head = self.lexical.head(self.tokens)
        if head is None:
            raise DataError(
                f"--sentence: no word of {query!r} is in a title or tag of the lesson's videos; "
                f"use some of: {', '.join(self.words)}"
            )
        self.head: Head = head

    @cached_property
    def words(self) -> list[str]:
        """Of each term, a word as it is written."""
        written = {t.term: t.text for text in self.texts for t in Analyzer().tokens(text)}
        return [written[term.decode()] for term in self.vocabulary.terms]

    @cached_property
    def keys(self) -> np.ndarray:
        """How much each word says of each video (n_videos, n_words)."""
        from scipy.sparse import csc_matrix

        found = self.lexical
        shape = (found.n_items, len(self.vocabulary))
        return csc_matrix((found.weights, found.indices, found.indptr), shape=shape).toarray()

    @cached_property
    def asked(self) -> np.ndarray:
        """How often the query has each word (1, n_words)."""
        rows = self.vocabulary.rows(token.term for token in self.tokens)
        return np.bincount(rows[rows >= 0], minlength=len(self.vocabulary))[None].astype(float)

    @cached_property
    def encoder(self) -> TokenEncoder:
        """Words as short vectors, learned from the videos' own texts."""
        from qkvsearch.embeddings import CorpusEncoder

        found: TokenEncoder = CorpusEncoder(n_components=WIDTH).fit(self.texts).encoder_
        return found

    @cached_property
    def meanings(self) -> np.ndarray:
        """Of each video (n_videos, d)."""
        found: np.ndarray = item_keys(self.encoder.encode_many, [TITLES, TAGS])
        return found

    def ranked(self, head: Head) -> Ranking:
        """What the search box does with the scores of a head."""
        return rank(
            head,
            lambda found: ([LETTERS[i] for i in found], [TITLES[i] for i in found]),
            k=len(TITLES),
        )
