"""The parts of a whole build that are made of its catalog alone: words, heads and tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.scratch import give_back, scratch_array
from qkvsearch.heads.bm25 import ListedKeys
from qkvsearch.heads.component import COLUMN_WEIGHTS
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.late_interaction import LONGEST_ITEM, LONGEST_PASSAGE
from qkvsearch.heads.passage_encoding import encoded_passages
from qkvsearch.heads.passage_keys import PassageKeysComponent
from qkvsearch.heads.passage_tokens import PassageTokensComponent
from qkvsearch.heads.passages import Passages, PassagesComponent
from qkvsearch.heads.tokens import TokensComponent
from qkvsearch.heads.words import CodesComponent, LexicalComponent, WordsComponent
from qkvsearch.store import BuildContents
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.spelling import word_rarity
from qkvsearch.text.text_encoder import EncodedItems, TextEncoder, Weights, encoded_with_tokens

if TYPE_CHECKING:
    from qkvsearch.tables.catalog import Catalog


class SplitTexts(NamedTuple):
    """The passages of a catalog's long texts."""

    split: Passages
    # The text columns of the passages.
    fields: Sequence[AnalyzedTexts]


def analyzed(
    fields: Sequence[Sequence[str]], analyzer: Analyzer, with_passages: bool = True
) -> tuple[list[AnalyzedTexts], SplitTexts | None]:
    """Analyze text columns and the passages of long texts, None where there are none."""
    split = Passages.of(fields) if with_passages else None
    if split is None or not len(split):
        return AnalyzedTexts.of_columns(fields, analyzer), None
    columns = AnalyzedTexts.of_columns([*fields, *split.fields(fields)], analyzer)
    return columns[: len(fields)], SplitTexts(split, columns[len(fields) :])


def titles_of(catalog: Catalog) -> list[str]:
    """Return the titles that are texts: neither empty nor ids that stand in for them."""
    rows = zip(catalog.frame["id"].astype(str), catalog.frame["title"].astype(str), strict=True)
    return [title for id_, title in rows if title.strip() and title != id_]


def store_words(
    contents: BuildContents,
    catalog: Catalog,
    fields: Sequence[AnalyzedTexts],
    passages: SplitTexts | None = None,
) -> ListedKeys:
    """Store lexical keys, codes and words of text columns, and passages. Return the lexical keys by
    which a search ranks.
    """
    analyzer = fields[0].runs.analyzer
    rarity = word_rarity(analyzer.language)
    # Nothing else refers to the counts, which are large.
    LexicalComponent().store(contents, *AnalyzedTexts.joined(fields).key_counts(), rarity)
    CodesComponent().store(contents, catalog)
    WordsComponent().store(contents, fields, analyzer)
    if passages is None:
        return LexicalComponent().pending_keys(contents)
    PassagesComponent().store(contents, *passages)
    return PassagesComponent().terms_of(contents)


def store_head(
    contents: BuildContents,
    name: str,
    encoder: TextEncoder,
    fields: Sequence[Sequence[str]],
    progress: Progress,
    weights: Weights = None,
    with_tokens: bool = False,
    tuned_weights: Weights = None,
    passages: SplitTexts | None = None,
) -> np.ndarray:
    """Store a dense head's encoder and keys, and return the keys by which a search ranks: those of
    items, and of passages where there are some. fields: the text columns.
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
    cut = encoded.cut
    if passages is not None:
        of_passages = _passage_keys(
            name, encoder, passages, progress, weights, with_tokens, contents
        )
        if cut is not None and of_passages.cut is not None:
            # Long texts are read passage by passage.
            split = passages.split
            of_long = split.of_passages(of_passages.cut > 0).n_long()
            cut = (np.maximum(cut - split.n_long(), 0) + of_long).astype(np.uint16)
    DenseComponent(name).store(contents, encoder, keys, cut)
    # Those of a large catalog are in a file now.
    keys = DenseComponent(name).pending(contents, "keys")
    if tuned_weights is not None:
        DenseComponent(name).store_tuned(contents, encoded.columns[1])
    if weights is not None and len(fields) > 1:
        shares = dict(zip(contents.facts["text_columns"], map(float, weights), strict=True))
        of_heads = contents.facts.get(COLUMN_WEIGHTS, {})
        contents.facts[COLUMN_WEIGHTS] = {**of_heads, name: shares}
    if passages is None:
        return keys
    short = np.setdiff1d(np.arange(len(keys)), passages.split.items)
    if not len(short):  # a copy is large
        return of_passages.columns[0]
    return np.concatenate([keys[short], of_passages.columns[0]])


def _passage_keys(
    name: str,
    encoder: TextEncoder,
    passages: SplitTexts,
    progress: Progress,
    weights: Weights,
    with_tokens: bool,
    contents: BuildContents,
) -> EncodedItems:
    """Store the keys of passages, and return them as the one column of what is returned."""
    # Pieces, and then their copy, would take twice the memory; many keys are in a file.
    keys = scratch_array((len(passages.split), encoder.n_components), np.float32)
    cuts: list[np.ndarray] = []

    def spans() -> Iterator[np.ndarray]:
        longest = LONGEST_PASSAGE if with_tokens else 0
        n_done = 0
        for items, tokens in encoded_passages(name, encoder, passages.fields, progress, longest):
            of_batch = items.keys(weights)
            keys[n_done : n_done + len(of_batch)] = of_batch
            n_done += len(of_batch)
            give_back(keys)
            if items.cut is not None:
                cuts.append(items.cut)
            yield from tokens

    if with_tokens:
        PassageTokensComponent(name).store(contents, spans())
    else:
        deque(spans(), maxlen=0)
    PassageKeysComponent(name).store(contents, keys)
    stored = PassageKeysComponent(name).pending(contents, "passage_keys")
    return EncodedItems([stored], np.concatenate(cuts) if cuts else None)
