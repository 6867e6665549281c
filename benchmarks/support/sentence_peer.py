"""The minilm model that is installed, run by sentence-transformers."""

from __future__ import annotations

from functools import cache
from typing import Any

from benchmarks.support.results import installed
from qkvsearch.text.pretrained.fetch import find

NAME = "sentence-transformers"


def is_here() -> bool:
    return installed(NAME) and find("minilm") is not None


@cache
def sentence_transformer() -> Any:
    from sentence_transformers import SentenceTransformer, models

    parts = [models.Transformer(str(find("minilm")), max_seq_length=256)]
    parts += [models.Pooling(parts[0].get_word_embedding_dimension()), models.Normalize()]
    return SentenceTransformer(modules=parts, device="cpu")
