"""Search, recommendation and self-attention as one computation, softmax(QKᵀ/√d + mask)·V.

>>> from qkvsearch.attention import attention
>>> attention([[4.0, 0.0]], [[4.0, 0.0], [0.0, 4.0]], [[1.0], [0.0]]).round(4)
array([[1.]])
"""

from __future__ import annotations

from qkvsearch._utils.version import __version__ as __version__

TYPE_CHECKING = False  # instead of importing `typing`, which takes a tenth of `--version`
if TYPE_CHECKING:
    from typing import Any

    from qkvsearch.engine import Engine, build, repair
    from qkvsearch.engine import Engine as open
    from qkvsearch.errors import QkvError
    from qkvsearch.models.estimators import BiasedMF, ImplicitALS, ItemNeighbours
    from qkvsearch.rank.ranking import Hit, Ranking
    from qkvsearch.tables.columns import Columns
    from qkvsearch.tables.interactions import Interactions
    from qkvsearch.text.learned.corpus_encoders import (
        ContrastiveEncoder,
        CooccurrenceEncoder,
        CorpusEncoder,
    )


# Imported on first use, so that `qkvsearch --help` does not wait for NumPy.
_HOMES = {
    "build": "engine:build",
    "open": "engine:Engine",
    "BiasedMF": "models.estimators:BiasedMF",
    "Columns": "tables.columns:Columns",
    "ContrastiveEncoder": "text.learned.corpus_encoders:ContrastiveEncoder",
    "CooccurrenceEncoder": "text.learned.corpus_encoders:CooccurrenceEncoder",
    "CorpusEncoder": "text.learned.corpus_encoders:CorpusEncoder",
    "Engine": "engine:Engine",
    "Hit": "rank.ranking:Hit",
    "ImplicitALS": "models.estimators:ImplicitALS",
    "Interactions": "tables.interactions:Interactions",
    "ItemNeighbours": "models.estimators:ItemNeighbours",
    "QkvError": "errors:QkvError",
    "Ranking": "rank.ranking:Ranking",
    "repair": "engine:repair",
}

__all__ = [
    "BiasedMF",
    "Columns",
    "ContrastiveEncoder",
    "CooccurrenceEncoder",
    "CorpusEncoder",
    "Engine",
    "Hit",
    "ImplicitALS",
    "Interactions",
    "ItemNeighbours",
    "QkvError",
    "Ranking",
    "build",
    "open",
    "repair",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name].split(":")
    return getattr(import_module(f"{__name__}.{module}"), attribute)


def __dir__() -> list[str]:
    """For tab completion: the public names, also those that are not imported yet."""
    return sorted([*__all__, "__version__"])
