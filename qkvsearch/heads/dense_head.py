"""The dense heads: items whose texts have a similar meaning, by one encoder each."""

from __future__ import annotations

from functools import partial
from typing import Any

from qkvsearch.heads.common_subjects import without_common
from qkvsearch.heads.dense_keys import ItemKeys
from qkvsearch.heads.lookup import Lookup
from qkvsearch.heads.search_head import Asked, SearchHead, TextHead, by_language
from qkvsearch.scores.approximate import ApproximateQuery
from qkvsearch.scores.fusion import Scores
from qkvsearch.text.encoders import DENSE_HEADS

MEANING = "similar meaning"
# The colours on the page by encoder; others have the one of a head without a colour.
COLOURS = {
    "lsa": ("#7c6a00", "#d9c34a"),
    "contrastive": ("#6a4bb0", "#b49bf2"),
    "static": ("#1a7a5e", "#55c9a3"),
    "minilm": ("#00708a", "#5cc6df"),
    "e5": ("#a03f12", "#f0a06a"),
}


class DenseTextHead(TextHead):
    """Cosines between the embeddings of the query and of items."""

    reason = MEANING

    def __init__(self, name: str) -> None:
        self.name = name
        self.colours = COLOURS.get(name, SearchHead.colours)

    def certainty(self, query: Lookup) -> float:
        return query.certainty

    def scores(self, asked: Asked) -> Scores | ApproximateQuery | None:
        """Return the query · each key; None where the encoder knows no word."""
        vectors = asked.vectors.of_head(self.name)
        is_relative = self.name in asked.models.answerability.relative
        keys: ItemKeys[Any]
        if asked.units is None:
            keys = asked.models.search_keys(self.name)
            pieces_of = partial(asked.item_texts.search_pieces, self.name)
        else:
            keys = asked.models.unit_keys(self.name)
            pieces_of = partial(asked.item_texts.unit_pieces, self.name)
        scores = keys.head(self.name, vectors, pieces_of, is_relative)
        if asked.subjects is None or not isinstance(scores, Scores):
            return scores
        if self.name != asked.models.main_head:
            return scores
        return without_common(scores, asked.models.common_to_items(asked.query.words.letters))


class SemanticHeads(SearchHead):
    """All dense heads of a build: requests name them so, and similar items are found by them."""

    name = "semantic"
    titles = by_language(en="Meaning", zh="含义")
    colours = ("#1a7a5e", "#55c9a3")
    reason = MEANING


DENSE = tuple(map(DenseTextHead, DENSE_HEADS))
SEMANTIC = SemanticHeads()
