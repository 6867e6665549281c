"""The token head: a second pass, in which the best items are compared word by word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from qkvsearch.heads.late_interaction import (
    NAME,
    LateInteraction,
    late_interaction,
    rerank,
    token_labels,
)
from qkvsearch.heads.search_head import Asked, SearchHead, by_language
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.scores.fusion import Scores
from qkvsearch.text.encoders import SECOND_PASS


class TokenHead(SearchHead):
    """Late interaction between the tokens of the query and of the best items.

    It ranks hits of other heads again, and finds none by itself.
    """

    name = NAME
    titles = by_language(en="Close reading", zh="细读")
    colours = ("#c65a11", "#f2a365")
    reason = "word by word"
    ranks_alone = False

    def is_in(self, models: StoredModels, has_user: bool) -> bool:
        return models.has_tokens and models.main_head in SECOND_PASS

    def is_default(self, models: StoredModels) -> bool:
        return models.search_weights[models.main_head] > 0 and models.second_pass > 0

    def rerank(self, first: Scores, asked: Asked, weights: Mapping[str, float]) -> Scores:
        """Return the first pass with the second pass added. weights: of the first pass's heads."""
        models = asked.models
        main_weight = models.search_weights[models.main_head] or weights.get(models.main_head, 0.0)
        best = None if first.best is None else first.best.of_items
        return rerank(first, self._query(asked, best), models.second_pass * main_weight, asked.mask)

    def _query(self, asked: Asked, best: np.ndarray | None) -> LateInteraction | None:
        """Return the query's words, to attend over those of items; None where there are none.

        best: the number of each item's best passage, int64 (n_items,), whose words are attended
        over; None where there are no passages.
        """
        models = asked.models
        encoder = models.encoder(models.main_head)
        keys = models.token_keys if best is None else models.unit_token_keys.renumbered(best)

        def labels_of(position: int) -> Sequence[str]:
            texts = asked.item_texts
            if best is not None:
                return token_labels(encoder, texts.of_unit(int(best[position])))
            return token_labels(encoder, texts.of(position))

        labels = asked.vectors.token_labels()
        late = late_interaction(
            asked.vectors.encoded.tokens,
            keys,
            models.lexical_keys,
            labels_of,
            boosts=np.array([label.boost for label in labels]),
            analyzer=models.analyzer,
        )
        if late is None:
            return None
        names = [label.name for label in labels]
        return replace(
            late,
            query=replace(late.query, labels=names),
            is_relative=models.main_head in models.answerability.relative,
        )


TOKENS = TokenHead()
