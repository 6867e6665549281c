"""Public names of the estimators: collaborative filtering, sequence models and text encoders.

They are imported on first use, since they need scikit-learn and numba, which queries do not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qkvsearch.models.estimators import BiasedMF, ImplicitALS, ItemNeighbours
    from qkvsearch.models.next_item import NextItem
    from qkvsearch.text.analysis import Analyzer
    from qkvsearch.text.learned.corpus_encoders import (
        ContrastiveEncoder,
        CooccurrenceEncoder,
        CorpusEncoder,
    )

__all__ = [
    "Analyzer",
    "BiasedMF",
    "ContrastiveEncoder",
    "CooccurrenceEncoder",
    "CorpusEncoder",
    "ImplicitALS",
    "ItemNeighbours",
    "NextItem",
]

# The module below `qkvsearch` that each name is imported from.
_MODULES = {
    "Analyzer": "text.analysis",
    "BiasedMF": "models.estimators",
    "ContrastiveEncoder": "text.learned.corpus_encoders",
    "CooccurrenceEncoder": "text.learned.corpus_encoders",
    "CorpusEncoder": "text.learned.corpus_encoders",
    "ImplicitALS": "models.estimators",
    "ItemNeighbours": "models.estimators",
    "NextItem": "models.next_item",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"qkvsearch.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
