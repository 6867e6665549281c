"""Where queries, keys and values come from: collaborative filtering and text encoders.

Imported on first use: the estimators need scikit-learn and numba, which answering does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qkvsearch.embeddings.contrastive import ContrastiveEncoder
    from qkvsearch.embeddings.cooccurrence import CooccurrenceEncoder
    from qkvsearch.embeddings.corpus import CorpusEncoder
    from qkvsearch.embeddings.explicit import BiasedMF
    from qkvsearch.embeddings.implicit import ImplicitALS
    from qkvsearch.embeddings.next_item import NextItem
    from qkvsearch.embeddings.text import Analyzer

__all__ = [
    "Analyzer",
    "BiasedMF",
    "ContrastiveEncoder",
    "CooccurrenceEncoder",
    "CorpusEncoder",
    "ImplicitALS",
    "NextItem",
]

_HOMES = {
    "Analyzer": "text",
    "BiasedMF": "explicit",
    "ContrastiveEncoder": "contrastive",
    "CooccurrenceEncoder": "cooccurrence",
    "CorpusEncoder": "corpus",
    "ImplicitALS": "implicit",
    "NextItem": "next_item",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
