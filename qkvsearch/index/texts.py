"""The parts of a whole build that are made of its catalog alone: words, heads and tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.index.component import COLUMN_WEIGHTS
from qkvsearch.index.dense import DenseComponent
from qkvsearch.index.lexical import CodesComponent, LexicalComponent, WordsComponent
from qkvsearch.index.tokens import TokensComponent
from qkvsearch.retrieval import LexicalKeys
from qkvsearch.retrieval.late_interaction import LONGEST_ITEM, item_tokens
from qkvsearch.storage import BuildContents
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.spelling import word_rarity
from qkvsearch.text.text_encoder import EncodedItems, TextEncoder, Weights, encoded_with_tokens

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog


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
    folder: Path | None = None,
) -> np.ndarray:
    """Store a dense head's encoder and keys, and return the keys. fields: the text columns.
    weights: of the columns. folder: for a temporary file of the items' tokens, which are stored
    too; None to store no tokens.
    """

    def in_memory(items: EncodedItems) -> EncodedItems:
        """Return keys instead of columns, of which there may be many."""
        return EncodedItems([items.keys(weights)], items.cut)

    longest = 0 if folder is None else LONGEST_ITEM
    batches = encoded_with_tokens(name, encoder, fields, longest, progress)
    if folder is None:
        encoded = EncodedItems.joined([in_memory(items) for items, _ in batches])
    else:
        encoded = _with_tokens(contents, name, batches, in_memory, folder)
    keys = encoded.columns[0]
    DenseComponent(name).store(contents, encoder, keys, encoded.cut)
    if weights is not None and len(fields) > 1:
        shares = dict(zip(contents.facts["text_columns"], map(float, weights), strict=True))
        of_heads = contents.facts.get(COLUMN_WEIGHTS, {})
        contents.facts[COLUMN_WEIGHTS] = {**of_heads, name: shares}
    return keys


def _with_tokens(
    contents: BuildContents,
    name: str,
    batches: Iterator[tuple[EncodedItems, list[np.ndarray]]],
    in_memory: Callable[[EncodedItems], EncodedItems],
    folder: Path,
) -> EncodedItems:
    """Store the tokens of encoded items, and return the items."""
    pieces: list[EncodedItems] = []

    def spans() -> Iterator[np.ndarray]:
        for items, item_spans in batches:
            pieces.append(in_memory(items))
            yield from item_spans

    tokens = spans()
    TokensComponent(name).write(contents, tokens, folder)
    # Encode the rest where the disk was too full for all tokens.
    deque(tokens, maxlen=0)
    return EncodedItems.joined(pieces)


def store_tokens(
    contents: BuildContents,
    name: str,
    encoder: TextEncoder,
    fields: Sequence[Sequence[str]],
    folder: Path,
    progress: Progress,
) -> None:
    """Store the tokens of every item by way of a file in `folder`."""
    progress("reading tokens", 0, sum(map(len, fields)))
    TokensComponent(name).write(contents, item_tokens(encoder, fields, progress), folder)
