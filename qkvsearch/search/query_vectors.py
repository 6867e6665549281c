"""The embeddings of a query by the encoders of a build."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.index import StoredModels
from qkvsearch.search.expansion import Lexicon
from qkvsearch.search.query import Label, Query
from qkvsearch.text.analysis import fold
from qkvsearch.text.labelled import NEGLIGIBLE, LabelledVectors
from qkvsearch.text.text_encoder import EncodedQuery


@dataclass(frozen=True)
class QueryVectors:
    """The embeddings of one query. An encoder is loaded when its head is asked for."""

    query: Query
    models: StoredModels
    lexicon: Lexicon

    def of_head(self, head: str) -> LabelledVectors:
        """Return labelled vectors that add up to the query of a dense head."""
        if head == self.models.main_head and self._needs_tokens:
            vectors = self.encoded.parts
        else:
            vectors = self.models.encoder(head).encode(self.query.codes.rest)
        if self.query.unfinished:
            vectors = self._completed(vectors, head)
        return self._boosted(vectors) if self.query.labels else vectors

    @cached_property
    def encoded(self) -> EncodedQuery:
        """The text as the main head's encoder reads it, once."""
        return self.models.encoder(self.models.main_head).read(self.query.codes.rest)

    @property
    def n_unread(self) -> int:
        """How many words are beyond the limit of the main head's encoder."""
        return self.encoded.n_unread if self._needs_tokens else 0

    def token_labels(self) -> list[Label]:
        """Return the name in reasons and the weight of each token of the main head."""
        query, labels = self.query, []
        for token in self.encoded.tokens.labels:
            name, boost = query.label(token)
            if query.unfinished and fold(str(token)) == query.unfinished:
                boost *= query.completions[0][1]
            labels.append((name, boost))
        return labels

    @property
    def _needs_tokens(self) -> bool:
        """Whether the tokens of the text are needed, beside the main head's query."""
        has_limit = self.models.encoder(self.models.main_head).limit is not None
        return has_limit or self.models.has_tokens

    def _completed(self, vectors: LabelledVectors, head: str) -> LabelledVectors:
        """Replace the vector of an unfinished word by the mean of its completions."""
        unfinished = self.query.unfinished
        rows = [row for row, word in enumerate(vectors.labels) if fold(str(word)) == unfinished]
        if not rows:
            return vectors
        length = np.linalg.norm(vectors.vectors[rows].sum(axis=0))
        mean = self.lexicon.meaning(self.query.last_prefix, head)
        replaced = vectors.vectors.copy()
        replaced[rows] = 0
        replaced[rows[0]] = mean * (length / max(float(np.linalg.norm(mean)), NEGLIGIBLE))
        return LabelledVectors(vectors.labels, replaced)

    def _boosted(self, vectors: LabelledVectors) -> LabelledVectors:
        """Scale each word by its boost, with the total as long as before."""
        labels = [self.query.label(label) for label in vectors.labels]
        boosts = np.array([boost for _, boost in labels], dtype=vectors.vectors.dtype)
        boosted = vectors.vectors * boosts[:, None]
        length = np.linalg.norm(boosted.sum(axis=0))
        scale = np.linalg.norm(vectors.total) / length if length > NEGLIGIBLE else 1.0
        boosted = boosted * boosted.dtype.type(scale)
        return LabelledVectors([label for label, _ in labels], boosted)
