"""The embeddings of a query, one for each dense head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.heads.lookup import Label, Lookup
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.text.labelled import NEGLIGIBLE, LabelledVectors
from qkvsearch.text.text_encoder import EncodedQuery


@dataclass(frozen=True)
class QueryVectors:
    """The embeddings of one query. An encoder is loaded when its head is asked for."""

    query: Lookup
    models: StoredModels
    # meaning(prefix, head): the mean embedding (d,) of the words that a prefix may become.
    meaning: Callable[[str, str], np.ndarray]

    def of_head(self, head: str) -> LabelledVectors:
        """Return labelled vectors that add up to the query of a dense head."""
        if head == self.models.main_head and self._needs_tokens:
            vectors = self.encoded.parts
        else:
            vectors = self.models.encoder(head).encode(self.query.codes.rest)
        if self.query.unfinished is not None:
            vectors = self._completed(vectors, head)
        if self.query.labels:
            vectors = self._boosted(vectors)
        return vectors

    @cached_property
    def encoded(self) -> EncodedQuery:
        """The text as the main head's encoder reads it, once."""
        return self.models.encoder(self.models.main_head).read(self.query.codes.rest)

    @property
    def n_unread(self) -> int:
        """How many words are beyond the limit of the main head's encoder."""
        return self.encoded.n_unread if self._needs_tokens else 0

    def token_labels(self) -> list[Label]:
        """Return the label of each token of the main head."""
        labels = []
        for token in self.encoded.tokens.labels:
            name, boost = self.query.label(token)
            if self.query.unfinished is not None and self.query.is_unfinished(token):
                boost *= self.query.unfinished.likelihood
            labels.append(Label(name, boost))
        return labels

    @property
    def _needs_tokens(self) -> bool:
        """Whether the tokens of the text are needed, beside the main head's query."""
        has_limit = self.models.encoder(self.models.main_head).limit is not None
        return has_limit or self.models.has_tokens

    def _completed(self, vectors: LabelledVectors, head: str) -> LabelledVectors:
        """Replace the vector of an unfinished word by the mean of its completions."""
        assert self.query.unfinished is not None
        rows = [row for row, word in enumerate(vectors.labels) if self.query.is_unfinished(word)]
        if not rows:
            return vectors
        length = np.linalg.norm(vectors.vectors[rows].sum(axis=0))
        mean = self.meaning(self.query.unfinished.prefix, head)
        replaced = vectors.vectors.copy()
        replaced[rows] = 0
        replaced[rows[0]] = mean * (length / max(float(np.linalg.norm(mean)), NEGLIGIBLE))
        return LabelledVectors(vectors.labels, replaced)

    def _boosted(self, vectors: LabelledVectors) -> LabelledVectors:
        """Scale each word by its boost, with the total as long as before.

        So the similarity to an item does not depend on the sum of the boosts.
        """
        labels = [self.query.label(label) for label in vectors.labels]
        boosts = np.array([label.boost for label in labels], dtype=vectors.vectors.dtype)
        boosted = vectors.vectors * boosts[:, None]
        length = np.linalg.norm(boosted.sum(axis=0))
        scale = np.linalg.norm(vectors.total) / length if length > NEGLIGIBLE else 1.0
        boosted = boosted * boosted.dtype.type(scale)
        return LabelledVectors([label.name for label in labels], boosted)
