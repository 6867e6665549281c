"""The parts of a whole build that are made of its catalog alone: words, heads and tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.heads.bm25 import LexicalKeys
from qkvsearch.heads.component import COLUMN_WEIGHTS
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.late_interaction import LONGEST_ITEM
from qkvsearch.heads.tokens import TokensComponent
from qkvsearch.heads.words import CodesComponent, LexicalComponent, WordsComponent
from qkvsearch.store import BuildContents
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.spelling import word_rarity
from qkvsearch.text.text_encoder import EncodedItems, TextEncoder, Weights, encoded_with_tokens

if TYPE_CHECKING:
    from qkvsearch.tables.catalog import Catalog


def store_words(
    contents: BuildContents, catalog: Catalog, fields: Sequence[AnalyzedTexts]
) -> LexicalKeys:
    """Store lexical keys, codes and words of text columns. Return the lexical keys."""
    analyzer, counted = fields[0].runs.analyzer, AnalyzedTexts.joined(fields).key_counts()
    keys = LexicalKeys.from_counts(*counted, word_rarity(analyzer.language))
    LexicalComponent().store(contents, *counted, keys.rarity)
    CodesComponent().store(contents, catalog)
    WordsComponent().store(contents, fields, analyzer)
    return keys


def store_head(
    contents: BuildContents,
    name: str,
    encoder: TextEncoder,
    fields: Sequence[Sequence[str]],
    progress: Progress,
    weights: Weights = None,
    with_tokens: bool = False,
    tuned_weights: Weights = None,
) -> np.ndarray:
    """Store a dense head's encoder and keys, and return the keys. fields: the text columns.
    weights: of the columns. with_tokens: store the items' tokens, too. tuned_weights: of the
    columns, that `tune search` found; None where it found none.
    """
    pieces: list[EncodedItems] = []

    def spans() -> Iterator[np.ndarray]:
        longest = LONGEST_ITEM if with_tokens else 0
        for items, tokens in encoded_with_tokens(name, encoder, fields, longest, progress):
            # Keys instead of columns, of which there may be many.
            made = [items.keys(weights)]
            if tuned_weights is not None:
                made.append(items.keys(tuned_weights))
            pieces.append(EncodedItems(made, items.cut))
            yield from tokens

    if with_tokens:
        TokensComponent(name).store(contents, spans())
    else:
        deque(spans(), maxlen=0)
    encoded = EncodedItems.joined(pieces)
    keys = encoded.columns[0]
    DenseComponent(name).store(contents, encoder, keys, encoded.cut)
    if tuned_weights is not None:
        DenseComponent(name).store_tuned(contents, encoded.columns[1])
    if weights is not None and len(fields) > 1:
        shares = dict(zip(contents.facts["text_columns"], map(float, weights), strict=True))
        of_heads = contents.facts.get(COLUMN_WEIGHTS, {})
        contents.facts[COLUMN_WEIGHTS] = {**of_heads, name: shares}
    return keys
