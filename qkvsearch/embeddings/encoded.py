"""Items through an encoder: their keys, with progress, and how many of their texts were cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qkvsearch.embeddings.encoders import Encoder, item_keys
from qkvsearch.embeddings.static import StaticEncoder
from qkvsearch.embeddings.transformer import TransformerEncoder
from qkvsearch.progress import Progress


class EncodedItems(NamedTuple):
    """keys: float32 (n_items, d). cut: uint16 (n_items,), how many of each one's texts were longer
    than the model's limit, or None for an encoder without one.
    """

    keys: np.ndarray
    cut: np.ndarray | None


def encode_items(
    name: str, encoder: Encoder, fields: Sequence[Sequence[str]], report: Progress
) -> EncodedItems:
    """Items given as columns of texts, by the encoder of the dense head `name`.

    Of a pretrained one `report` is called as ("encoding with NAME", texts done, texts in all).
    """
    done, total = 0, sum(map(len, fields))
    cut = np.zeros(len(fields[0]), dtype=np.uint16)

    def encode(texts: Sequence[str]) -> np.ndarray:
        nonlocal done
        start = done

        def progress(_: str, n: int, __: int) -> None:
            report(f"encoding with {name}", start + n, total)

        done += len(texts)
        if isinstance(encoder, TransformerEncoder):
            encoded = encoder.encode_batch(texts, progress)
            cut[encoded.cut] += 1
            return encoded.embeddings
        if isinstance(encoder, StaticEncoder):
            return encoder.encode_many(texts, progress)
        return encoder.encode_many(texts)

    keys = item_keys(encode, fields)
    return EncodedItems(keys, cut if isinstance(encoder, TransformerEncoder) else None)
