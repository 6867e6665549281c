"""The estimators under one name: collaborative filtering, sequences and encoders of texts.

Imported on first use: they need scikit-learn and numba, which answering does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qkvsearch.collaborative.estimators import BiasedMF, ImplicitALS
    from qkvsearch.collaborative.sequences.next_item import NextItem
    from qkvsearch.text.analysis import Analyzer
    from qkvsearch.text.learned.contrastive import ContrastiveEncoder
    from qkvsearch.text.learned.svd import CooccurrenceEncoder, CorpusEncoder

__all__ = [
    "Analyzer", "BiasedMF", "ContrastiveEncoder", "CooccurrenceEncoder", "CorpusEncoder",
    "ImplicitALS", "NextItem",
]  # fmt: skip

_HOMES = {
    "Analyzer": "text.analysis",
    "BiasedMF": "collaborative.estimators",
    "ContrastiveEncoder": "text.learned.contrastive",
    "CooccurrenceEncoder": "text.learned.svd",
    "CorpusEncoder": "text.learned.svd",
    "ImplicitALS": "collaborative.estimators",
    "NextItem": "collaborative.sequences.next_item",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"qkvsearch.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
