"""Items through an encoder: their keys, and how many of their texts were cut.

An item's key is the sum of its columns' embeddings at length 1: a title of three words counts as
much as a description of three hundred, and the key remains a sum of words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.labelled import NEGLIGIBLE, LabelledVectors, unit_rows
from qkvsearch.progress import Progress
from qkvsearch.texts.text_encoder import TextEncoder


class EncodedItems(NamedTuple):
    """keys: float32 (n_items, d). cut: uint16 (n_items,), how many of each one's texts were longer
    than the model's limit, or None for an encoder without one.
    """

    keys: np.ndarray
    cut: np.ndarray | None


def encode_items(
    name: str, encoder: TextEncoder, fields: Sequence[Sequence[str]], progress: Progress
) -> EncodedItems:
    """Items given as columns of texts, by the encoder of the dense head `name`.

    Of a pretrained one `progress` is called as ("encoding with NAME", texts done, texts in all).
    """
    done, total = 0, sum(map(len, fields))
    cut = np.zeros(len(fields[0]), dtype=np.uint16)

    def encode(texts: Sequence[str]) -> np.ndarray:
        nonlocal done
        start = done
        done += len(texts)
        found = encoder.encode_texts(
            texts, lambda _, n, __: progress(f"encoding with {name}", start + n, total)
        )
        cut[found.cut] += 1
        return found.embeddings

    keys = item_keys(encode, fields)
    return EncodedItems(keys, None if encoder.limit is None else cut)


def item_keys(encode_many: Callable[[Sequence[str]], np.ndarray], fields: Iterable[Any]) -> Any:
    """Keys (n_items, d) float32 of items given as columns of texts: each the sum of its columns'
    embeddings at length 1; zeros where no column has a known word."""
    total = sum(encode_many(column) for column in fields)
    return unit_rows(np.asarray(total), NEGLIGIBLE).astype(np.float32)


def item_pieces(encoder: TextEncoder, fields: Sequence[str]) -> LabelledVectors:
    """One item's key as the labelled sum that it is."""
    return LabelledVectors.joined([encoder.encode(field) for field in fields])
