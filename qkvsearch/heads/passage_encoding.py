"""Encode passages: a text that many of them share, such as their title, is read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.text.analyzed import AnalyzedTexts, TextParts
from qkvsearch.text.text_encoder import EncodedItems, TextEncoder, encoded_with_tokens

# The number of passages whose embeddings and tokens are in memory at a time.
PASSAGES_PER_BATCH = 4096


def encoded_passages(
    name: str,
    encoder: TextEncoder,
    fields: Sequence[TextParts] | Sequence[AnalyzedTexts],
    progress: Progress,
    longest: int = 0,
) -> Iterator[tuple[EncodedItems, list[np.ndarray]]]:
    """Yield batches of `text_encoder.encoded_with_tokens` of passages.

    fields: the text columns of the passages. longest: how many tokens of each to return.
    """
    n_passages = len(fields[0])
    for start in range(0, n_passages, PASSAGES_PER_BATCH):
        stop = min(start + PASSAGES_PER_BATCH, n_passages)
        columns: list[np.ndarray] = []
        spans: list[list[np.ndarray]] = []
        cut = np.zeros(stop - start, np.uint16)
        for texts in fields:
            distinct, number_of = _distinct(texts, start, stop)
            embeddings, of_texts, tokens = [], [], []
            for items, of_items in encoded_with_tokens(
                name, encoder, [distinct], longest, progress
            ):
                embeddings.append(items.columns[0])
                of_texts.append(items.cut if items.cut is not None else np.zeros(0, np.uint16))
                tokens += of_items
            columns.append(np.concatenate(embeddings)[number_of])
            if encoder.limit is not None:
                cut += np.concatenate(of_texts)[number_of]
            spans.append([tokens[number] for number in number_of.tolist()] if longest else [])
        joined = [np.concatenate(own)[:longest] for own in zip(*spans, strict=True)]
        yield EncodedItems(columns, None if encoder.limit is None else cut), joined


def _distinct(
    column: TextParts | AnalyzedTexts, start: int, stop: int
) -> tuple[Sequence[str], np.ndarray]:
    """Return the distinct ones of column[start:stop], and the number of each text among them."""
    # Texts that are analyzed already are not analyzed again.
    if not isinstance(column, TextParts):
        assert isinstance(column.texts, TextParts)
        rows, number_of = column.texts.distinct(slice(start, stop))
        return column.take(rows), number_of
    rows, number_of = column.distinct(slice(start, stop))
    return [column[row] for row in rows.tolist()], number_of
