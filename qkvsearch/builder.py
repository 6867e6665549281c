"""Data in, workspace out: fit the encoder and the models, make the keys, publish."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch import __version__
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.readers import Dataset
from qkvsearch.embeddings.feedback import confidences
from qkvsearch.embeddings.text import Analyzer
from qkvsearch.embeddings.vocabulary import count_terms
from qkvsearch.errors import QkvError, suggest
from qkvsearch.retrieval.keys import LexicalKeys
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
        _add_interactions(contents, dataset.interactions)
        _add_collaborative(contents, dataset.interactions, report)
        if dataset.interactions.ratings is not None:
            _add_ratings(contents, dataset.interactions, report)
    workspace = Workspace(path)
    report("saving", 0, 1)
    workspace.publish(contents)
    report("saving", 1, 1)
    return workspace


def _add_text(contents: BuildContents, texts: list[str], report: Progress) -> None:
    """The lexical keys, and the corpus encoder with its dense keys."""
    from qkvsearch.embeddings.corpus import CorpusEncoder

    report("reading texts", 0, 2)
    vocabulary, counts = count_terms(texts, Analyzer().key_terms)
    keys = LexicalKeys.from_counts(vocabulary, counts)
    contents.arrays |= {
        "lexical.terms": vocabulary.terms,
        "lexical.indptr": keys.indptr,
        "lexical.indices": keys.indices,
        "lexical.weights": keys.weights,
    }
    report("reading texts", 1, 2)
    fitted = CorpusEncoder().fit(texts)
    contents.arrays |= {
        "corpus.terms": fitted.encoder_.vocabulary.terms,
        "corpus.vectors": fitted.encoder_.vectors,
        "corpus.weights": fitted.encoder_.weights,
        "corpus.embeddings": fitted.embeddings_,
    }
    report("reading texts", 2, 2)


def _add_interactions(contents: BuildContents, log: Interactions) -> None:
    """Each user's history as one span of the arrays, items in ascending order."""
    indptr = np.searchsorted(log.users, np.arange(len(log.user_ids) + 1))
    contents.users = log.user_ids
    contents.arrays |= {"interactions.indptr": indptr, "interactions.items": log.items}
    contents.facts |= {"n_users": len(log.user_ids), "n_interactions": len(log)}
    if log.ratings is not None:
        contents.arrays["interactions.ratings"] = log.ratings
        contents.facts["rating_scale"] = [float(log.ratings.min()), float(log.ratings.max())]
    if log.times is not None:
        contents.arrays["interactions.times"] = log.times
        contents.facts["times_comparable"] = log.times_comparable


def _add_collaborative(contents: BuildContents, log: Interactions, report: Progress) -> None:
    """Embeddings to recommend with, and their directions to compare items by."""
    from qkvsearch.embeddings.implicit import ImplicitALS

    scale = contents.facts.get("rating_scale")
    weights = confidences(log.ratings, len(log), scale)
    model = ImplicitALS(random_state=0, callback=lambda i, n: report("learning tastes", i, n))
    model.fit(log.matrix(weights))
    _add_state(contents, "implicit", model.factors_.state())
    lengths = np.linalg.norm(model.item_embeddings_, axis=1, keepdims=True)
    directions = model.item_embeddings_ / np.where(lengths > 0, lengths, 1)
    contents.arrays["implicit.item_directions"] = directions


def _add_ratings(contents: BuildContents, log: Interactions, report: Progress) -> None:
    from qkvsearch.embeddings.explicit import BiasedMF

    model = BiasedMF(random_state=0, callback=lambda i, n: report("learning ratings", i, n))
    model.fit(log)
    _add_state(contents, "ratings", model.factors_.state())


def _add_state(
    contents: BuildContents, name: str, state: tuple[dict[str, np.ndarray], dict[str, Any]]
) -> None:
    arrays, numbers = state
    contents.arrays |= {f"{name}.{key}": array for key, array in arrays.items()}
    contents.facts[name] = numbers
