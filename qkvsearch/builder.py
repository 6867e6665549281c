"""Data in, workspace out: fit the encoder and the models, make the keys, publish."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qkvsearch import __version__
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.readers import Dataset
from qkvsearch.embeddings.feedback import confidences
from qkvsearch.embeddings.text import Analyzer
from qkvsearch.embeddings.vocabulary import count_terms
from qkvsearch.errors import QkvError, suggest
from qkvsearch.retrieval.keys import LexicalKeys
from qkvsearch.stored import (
    store_encoder,
    store_implicit,
    store_interactions,
    store_lexical,
    store_ratings,
)
from qkvsearch.workspace import BuildContents, Workspace

ENCODERS = ("corpus",)

# What is being done, how far, of how much.
Progress = Callable[[str, int, int], None]


def build_workspace(
    path: str | Path,
    dataset: Dataset,
    *,
    encoder: str = "corpus",
    progress: Progress | None = None,
) -> Workspace:
    """Learn everything from `dataset` and publish it at `path`. Raises `QkvError`."""
    if encoder not in ENCODERS:
        close = suggest(encoder, list(ENCODERS))
        raise QkvError(f"no encoder {encoder!r}{close} (there is {', '.join(ENCODERS)})")
    report = progress or (lambda stage, done, total: None)
    contents = BuildContents(
        catalog=dataset.catalog,
        facts={
            "qkvsearch": __version__,
            "encoder": encoder,
            "n_items": len(dataset.catalog),
            "text_columns": list(dataset.catalog.text_columns),
            "rows": [str(line) for line in dataset.reports],
        },
    )
    _add_text(contents, dataset.catalog.texts(), report)
    if dataset.interactions is not None:
        _add_interactions(contents, dataset.interactions, report)
    workspace = Workspace(path)
    report("saving", 0, 1)
    workspace.publish(contents)
    report("saving", 1, 1)
    return workspace


def _add_text(contents: BuildContents, texts: list[str], report: Progress) -> None:
    """The lexical keys, and the corpus encoder with its dense keys."""
    from qkvsearch.embeddings.corpus import CorpusEncoder

    report("reading texts", 0, 2)
    store_lexical(contents, LexicalKeys.from_counts(*count_terms(texts, Analyzer().key_terms)))
    report("reading texts", 1, 2)
    fitted = CorpusEncoder().fit(texts)
    store_encoder(contents, fitted.encoder_, fitted.embeddings_)
    report("reading texts", 2, 2)


def _add_interactions(contents: BuildContents, log: Interactions, report: Progress) -> None:
    """The log itself, embeddings to recommend by, and a model of ratings if there are any."""
    from qkvsearch.embeddings.explicit import BiasedMF
    from qkvsearch.embeddings.implicit import ImplicitALS

    store_interactions(contents, log)
    weights = confidences(log.ratings, len(log), contents.facts.get("rating_scale"))
    tastes = ImplicitALS(random_state=0, callback=lambda i, n: report("learning tastes", i, n))
    store_implicit(contents, tastes.fit(log.matrix(weights)).factors_)
    if len(log.rated()):
        ratings = BiasedMF(random_state=0, callback=lambda i, n: report("learning ratings", i, n))
        store_ratings(contents, ratings.fit(log).factors_)
