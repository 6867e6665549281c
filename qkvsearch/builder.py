"""Data in, workspace out: fit the encoders and the models, store each part, publish."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from qkvsearch import __version__
from qkvsearch.data.catalog import Catalog
from qkvsearch.data.judgements import Judgements, Queries
from qkvsearch.data.readers import Dataset
from qkvsearch.data.synonyms import Synonyms
from qkvsearch.learning.column_weights import length_weights
from qkvsearch.learning.head_weights import (
    JudgedQueries,
    judged_queries,
    learn_columns_from_judgements,
    learn_from_judgements,
    learn_weights,
)
from qkvsearch.progress import Progress, silent
from qkvsearch.retrieval.keys import LexicalKeys
from qkvsearch.stored import (
    FROM_INTERACTIONS,
    TUNED,
    DensePart,
    NextItemPart,
)
from qkvsearch.stored.texts import store_head, store_tokens, store_words
from qkvsearch.texts.choice import AUTO, Choice, choose
from qkvsearch.texts.encoders import (
    CHOICES,
    LEARNED,
    SECOND_PASS,
    TextEncoder,
    fitted_encoder,
    learned_encoder,
    pretrained_encoder,
    prior_weights,
)
from qkvsearch.workspace import BuildContents, CatalogRows, Workspace

# Among the facts of a former build: what one in its place has to do without, and why.
NOT_TAKEN_OVER = "not taken over"


def build_workspace(
    workspace: Workspace,
    dataset: Dataset,
    *,
    encoder: str = AUTO,
    judged: tuple[Queries, Judgements] | None = None,
    next_item: bool = False,
    synonyms: Synonyms | None = None,
    progress: Progress | None = None,
) -> None:
    """Learn everything from `dataset` and publish it, as `engine.build` says.

    Nobody else changes the workspace meanwhile: preferences are learned with the settings that
    `tune` found for it, if it did. judged: queries and which items answer them. synonyms: what
    texts may be called as well. Raises `QkvError`.
    """
    fields = dataset.catalog.fields()
    chosen = choose(fields) if encoder == AUTO else Choice(encoder, "")
    encoder = chosen.encoder
    # What is not there is said before any work.
    weights = prior_weights(encoder)
    pretrained = {
        name: pretrained_encoder(name, encoder)
        for name in weights
        if name not in ("lexical", *LEARNED)
    }
    questions = None if judged is None else judged_queries(*judged, dataset.catalog.ids)
    if next_item:
        NextItemPart().check(dataset.interactions)
    if encoder not in CHOICES:  # a folder, to be found from anywhere
        encoder = str(Path(encoder).resolve())
    progress = progress or silent
    with workspace.writing("build"):
        contents = _contents(dataset, encoder, chosen.why)
        if synonyms:
            contents.facts["synonyms"] = synonyms
        _add_text(contents, dataset.catalog, pretrained, weights, questions, progress)
        former = current_facts(workspace)
        lost = former.get(NOT_TAKEN_OVER, ())
        contents.facts["rows"] += [f"{NOT_TAKEN_OVER}: {reason}" for reason in lost]
        if dataset.interactions is not None:
            contents.facts |= {name: former[name] for name in former.keys() & {TUNED}}
            for part in (*FROM_INTERACTIONS, *[NextItemPart()] * next_item):
                part.learn(contents, dataset.interactions, progress)
        progress("saving", 0, 1)
        workspace.publish(contents, "build")
        progress("saving", 1, 1)


def current_facts(workspace: Workspace) -> dict[str, Any]:
    """What the current build knows of itself, whatever its format; as `NOT_TAKEN_OVER`, what a
    build in its place has to do without.
    """
    facts, lost = workspace.known_facts()
    return facts | ({NOT_TAKEN_OVER: lost} if lost else {})


def _contents(dataset: Dataset, encoder: str, why: str) -> BuildContents:
    """A build of a catalog without models. why: reasons for an encoder taken by itself."""
    facts = {
        "qkvsearch": __version__,
        "encoder": encoder,
        "encoder_chosen": f"by itself: {why}" if why else "as asked for",
        "n_items": len(dataset.catalog),
        "text_columns": list(dataset.catalog.text_columns),
        "columns": [column.to_record() for column in dataset.catalog.columns],
        "interaction_columns": [column.to_record() for column in dataset.log_columns()],
        "rows": [line for report in dataset.reports for line in report.lines()],
    }
    if dataset.catalog.ids.fold:
        facts["fold_ids"] = True
    return BuildContents(CatalogRows.of(dataset.catalog), facts=facts)


def _add_text(
    contents: BuildContents,
    catalog: Catalog,
    pretrained: Mapping[str, TextEncoder],
    prior: dict[str, float],
    questions: JudgedQueries | None,
    progress: Progress,
) -> None:
    """The lexical keys, each dense head's encoder and keys, and how heads and columns count."""
    fields = catalog.fields()
    learned = [name for name in prior if name in LEARNED]
    progress("reading texts", 0, len(learned) + 1)
    counted = store_words(contents, catalog)
    encoders: dict[str, TextEncoder] = {}
    epochs: dict[str, int | None] = {}
    for name in list(prior)[1:]:
        if name in LEARNED:
            progress("reading texts", learned.index(name) + 1, len(learned) + 1)
            encoders[name], epochs[name] = learned_encoder(name, fields)
        else:
            encoders[name] = fitted_encoder(name, fields, pretrained=pretrained.get(name))
    progress("reading texts", len(learned) + 1, len(learned) + 1)
    main = list(prior)[-1]
    weigh = partial(progress, "weighing the heads")
    if questions is None:
        weigh(0, len(prior))
        weights = learn_weights(fields, encoders, prior, epochs, progress=weigh)
        for name, encoder in encoders.items():
            store_head(contents, name, encoder, fields, progress, weights.columns[name])
        weigh(len(prior), len(prior))
        contents.facts["head_weights"] = weights.heads
    else:
        learn = partial(learn_columns_from_judgements, questions, given=length_weights(fields))
        keys = {
            name: store_head(contents, name, encoder, fields, progress, partial(learn, encoder))
            for name, encoder in encoders.items()
        }
        weigh(0, 1)
        lexical = LexicalKeys.from_counts(*counted)
        heads = learn_from_judgements(questions, lexical, encoders, keys, prior)
        weigh(1, 1)
        contents.facts |= {"head_weights": heads, "weights_from": questions.summary()}
    if main in pretrained:
        DensePart(main).note_texts(contents)
    if main in SECOND_PASS:
        store_tokens(contents, main, encoders[main], fields, progress)
