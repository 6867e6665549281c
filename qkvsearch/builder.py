"""Data in, workspace out: fit the encoder and the models, make the keys, publish."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qkvsearch import __version__
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.readers import Dataset
from qkvsearch.embeddings.encoders import CHOICES, fitted_encoder, item_keys, prior_weights
from qkvsearch.embeddings.feedback import confidences
from qkvsearch.embeddings.text import Analyzer
from qkvsearch.embeddings.vocabulary import count_terms
from qkvsearch.retrieval.keys import LexicalKeys
from qkvsearch.stored import (
    store_encoder,
    store_implicit,
    store_interactions,
    store_lexical,
    store_ratings,
)
from qkvsearch.workspace import BuildContents, Workspace

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
    weights = prior_weights(encoder)  # an encoder that is not there is said before any work
    if encoder not in CHOICES:  # a folder, to be found from anywhere
        encoder = str(Path(encoder).resolve())
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
    _add_text(contents, dataset.catalog.fields(), encoder, weights, report)
    if dataset.interactions is not None:
        _add_interactions(contents, dataset.interactions, report)
    workspace = Workspace(path)
    report("saving", 0, 1)
    workspace.publish(contents)
    report("saving", 1, 1)
    return workspace


def _add_text(
    contents: BuildContents,
    fields: list[list[str]],
    choice: str,
    prior: dict[str, float],
    report: Progress,
) -> None:
    """The lexical keys, each dense head's encoder and keys, and how much every head counts."""
    from qkvsearch.evaluation.head_weights import learn_head_weights

    texts = ["\n".join(column) for column in zip(*fields, strict=True)]
    steps = len(prior) + 1
    report("reading texts", 0, steps)
    store_lexical(contents, LexicalKeys.from_counts(*count_terms(texts, Analyzer().key_terms)))
    encoders = {}
    for step, name in enumerate(list(prior)[1:], start=1):
        report("reading texts", step, steps)
        encoders[name] = fitted_encoder(name, texts, choice)
        store_encoder(contents, name, encoders[name], item_keys(encoders[name].encode_many, fields))
    report("reading texts", steps - 1, steps)
    contents.facts["head_weights"] = learn_head_weights(fields, encoders, prior)
    report("reading texts", steps, steps)


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
