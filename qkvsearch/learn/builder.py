"""Build a workspace from data: fit the encoders and the models, store them, publish."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch._utils.files import real_path
from qkvsearch._utils.freed_memory import release_freed_memory
from qkvsearch._utils.version import __version__
from qkvsearch.errors import Count, QkvError, quantity
from qkvsearch.heads.answerability import FACT as ANSWERABILITY
from qkvsearch.heads.common_subjects import SubjectsComponent
from qkvsearch.heads.component import (
    BETTER_ENCODER,
    CATALOG_NAME,
    HEADS_LEFT_OUT,
    LANGUAGE,
    LANGUAGES,
    TUNED,
)
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.registry import FROM_INTERACTIONS
from qkvsearch.heads.search_settings import TUNED_SEARCH, SearchSettings
from qkvsearch.heads.stored_log import LOG_ROWS, SCALE_INFERRED
from qkvsearch.heads.stored_next_item import NextItemComponent
from qkvsearch.learn.calibration import best_scores, calibrate
from qkvsearch.learn.common_subjects import common_subjects
from qkvsearch.learn.head_weights import (
    learn_weights,
    length_weights,
    too_small,
    without_learned,
)
from qkvsearch.learn.spark_build import learn_from_spark, spark_log
from qkvsearch.learn.texts import SplitTexts, analyzed, store_head, store_words, titles_of
from qkvsearch.learn.tuned_search import taken_over
from qkvsearch.store import BuildContents, CatalogRows, Workspace
from qkvsearch.store.remote_collections import FACT as KEYS
from qkvsearch.store.remote_collections import RemoteCollection
from qkvsearch.store.workspace import LOST_SETTINGS, UNREADABLE_SETTINGS
from qkvsearch.tables.catalog import Catalog
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import Dataset, Source
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.sources import read_source
from qkvsearch.tables.synonyms import FACT as SYNONYMS
from qkvsearch.tables.synonyms import Synonyms
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts, JoinedTexts
from qkvsearch.text.encoders import (
    AUTO,
    LEARNED,
    NAMES,
    SECOND_PASS,
    Choice,
    TextEncoder,
    dense_heads,
    fitted_encoder,
    learned_encoder,
    pretrained_encoder,
    prior_weights,
    requested,
)
from qkvsearch.text.languages import NONE, Language, iso_code, languages_in
from qkvsearch.text.languages import chosen as chosen_language
from qkvsearch.text.learned import sample
from qkvsearch.text.passages import LONG, n_words


def build_workspace(
    workspace: Workspace,
    dataset: Dataset,
    *,
    encoder: str = AUTO,
    language: str = AUTO,
    next_item: bool = False,
    synonyms: Synonyms | None = None,
    keys: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Learn everything from `dataset` and publish it, as `engine.build` describes.

    Preferences are learned with the settings that `tune` found for the workspace, if any, and
    searches have those that `tune search` found. keys: `milvus:URI` of a server for the keys.
    Raises `QkvError`.
    """
    fields: Sequence[Sequence[str]] = dataset.catalog.fields()
    # A missing model or language fails here, before any work.
    texts = JoinedTexts(fields)
    spoken = chosen_language(language, texts)
    is_named = language != AUTO and spoken.name != NONE
    languages = [iso_code(spoken.name)] if is_named else languages_in(texts, spoken.name)
    chosen = requested(encoder, fields, languages, in_passages=keys is None)
    encoder = chosen.encoder
    weights = prior_weights(encoder, languages)
    pretrained = {
        name: pretrained_encoder(name, encoder)
        for name in weights
        if name not in ("lexical", *LEARNED)
    }
    if next_item:
        _check_next_item(dataset)
    if encoder not in NAMES:  # a folder, absolute so that it is found from anywhere
        encoder = str(real_path(Path(encoder)))
    progress = progress or silent
    with workspace.writing("build"):
        previous = workspace.current_facts()
        contents = _contents(dataset, chosen._replace(encoder=encoder), spoken, languages)
        if keys is not None:
            contents.facts[KEYS] = RemoteCollection.new(keys, previous).to_fact()
        if synonyms:
            contents.facts[SYNONYMS] = synonyms
        fields, passages = analyzed(fields, Analyzer(spoken.name), with_passages=keys is None)
        learned = [name for name in weights if name in LEARNED]
        if learned and (reason := too_small(fields)) is not None:
            weights = without_learned(weights)
            role = "only order what words leave equal" if not pretrained else "take no part"
            contents.facts[HEADS_LEFT_OUT] = f"{' and '.join(learned)} {role}: {reason}"
        lost = list(previous.get(UNREADABLE_SETTINGS, ()))
        lost += _take_over_search(contents, previous, weights, passages is not None)
        _add_text(contents, dataset.catalog, fields, passages, pretrained, weights, progress)
        contents.facts["rows"] += _passage_lines(passages, fields, keys)
        contents.facts["rows"] += _part_lines(learned, fields)
        if lost:
            contents.facts[LOST_SETTINGS] = lost
        if dataset.interactions is not None and TUNED in previous:
            contents.facts[TUNED] = previous[TUNED]
        _add_interactions(contents, dataset, next_item, progress)
        progress("saving", 0, 1)
        workspace.publish(contents, "build")
        progress("saving", 1, 1)


def _passage_lines(
    passages: SplitTexts | None, fields: Sequence[AnalyzedTexts], keys: str | None
) -> list[str]:
    """Return the line of the report about long texts, none where there are none."""
    if passages is not None:
        n_texts = quantity(int(passages.split.n_long().sum()), "long text")
        n_passages = quantity(len(passages.split), "passage")
        return [f"{n_texts} (of more than {LONG} words): searched in {n_passages}"]
    if keys is None:
        return []
    n_long = Count(sum(n_words(text) > LONG for texts in fields for text in texts))
    if not n_long:
        return []
    texts = quantity(int(n_long), "long text")
    return [
        f"{texts} (of more than {LONG} words) {n_long:is|are} searched whole, not in passages: "
        "the keys are on a server"
    ]


def _part_lines(learned: Sequence[str], fields: Sequence[AnalyzedTexts]) -> list[str]:
    """Return the line of the report about the words that encoders have learned from, none where
    they have learned from all. learned: the heads of these encoders.
    """
    n_in_all = sum(int(column.n_tokens.sum()) for column in fields)
    if not learned or n_in_all <= sample.MAX_WORDS:
        return []
    part = f"{sample.MAX_WORDS:,} of {n_in_all:,} words"
    return [f"{' and '.join(learned)} learned from about {part}"]


def _take_over_search(
    contents: BuildContents,
    previous: Mapping[str, Any],
    heads: Iterable[str],
    has_passages: bool,
) -> list[str]:
    """Take over the settings of searches from the facts of the previous build. Return what is not
    taken over, and why.
    """
    if TUNED_SEARCH not in previous:
        return []
    found = previous[TUNED_SEARCH]
    columns = contents.facts["text_columns"]
    settings, lost = taken_over(SearchSettings.of(previous), list(heads), columns)
    if settings.columns is not None and KEYS in contents.facts:
        settings = replace(settings, columns=None)
        lost.append("the weights of columns that tune search found, as the keys are on a server")
    if settings.columns is not None and has_passages:
        settings = replace(settings, columns=None)
        lost.append("the weights of columns that tune search found, as texts have passages")
    if settings.to_dict():
        contents.facts[TUNED_SEARCH] = {**found, "settings": settings.to_dict()}
    return lost


def _check_next_item(dataset: Dataset) -> None:
    """Raise `QkvError` where a next-item model cannot be learned from a data set."""
    if not isinstance(dataset.interactions, Interactions | None):
        raise QkvError("`next_item` learns on one machine: leave out `engine`, or `next_item`")
    NextItemComponent().check(dataset.interactions)


def _add_interactions(
    contents: BuildContents, dataset: Dataset, next_item: bool, progress: Progress
) -> None:
    """Add the log, if there is one, and what is learned from it."""
    if dataset.interactions is None:
        return
    if not isinstance(dataset.interactions, Interactions):
        notes = learn_from_spark(contents, spark_log(dataset.interactions), progress)
        contents.facts[LOG_ROWS] += notes
        return
    for component in FROM_INTERACTIONS:
        component.learn(contents, dataset.interactions, progress)
    if next_item:
        NextItemComponent().learn(contents, dataset.interactions, progress)


@contextmanager
def reading(
    source: Source | None,
    items: Source | None,
    interactions: Source | None,
    columns: Columns | None,
    engine: str | None = None,
    join: Source | None = None,
) -> Iterator[Dataset]:
    """Read a data set on this machine or with Spark, which holds the log until the block ends.
    join: tables that add columns to the items. Raises `QkvError`.
    """
    if engine is None:
        yield read_source(source, items, interactions, columns, join)
        return
    from qkvsearch.engines.spark.spark_log import read_on_spark

    if source is not None:
        raise QkvError("`engine` takes `items` and `interactions`, not a SOURCE")
    with read_on_spark(engine, items, interactions, columns, join) as dataset:
        yield dataset


def _contents(
    dataset: Dataset, chosen: Choice, spoken: Language, languages: Sequence[str]
) -> BuildContents:
    """Return a build with a catalog and no models. languages: of the texts, by ISO codes."""
    facts = {
        "qkvsearch": __version__,
        "encoder": chosen.encoder,
        "encoder_chosen": chosen.why,
        BETTER_ENCODER: chosen.better,
        LANGUAGES: list(languages),
        LANGUAGE: spoken.name,
        "language_chosen": spoken.why,
        CATALOG_NAME: dataset.name(),
        "n_items": len(dataset.catalog),
        "text_columns": list(dataset.catalog.text_columns),
        "columns": [column.to_record() for column in dataset.catalog.columns],
        "interaction_columns": [column.to_record() for column in dataset.log_columns()],
        "interaction_options": dataset.options,
        "rows": dataset.lines(of_log=False),
    }
    if dataset.interactions is not None:
        facts[LOG_ROWS] = dataset.lines(of_log=True)
        facts[SCALE_INFERRED] = dataset.scale_inferred
    if dataset.catalog.ids.fold:
        facts["fold_ids"] = True
    return BuildContents(CatalogRows.of(dataset.catalog), facts=facts)


def _add_text(
    contents: BuildContents,
    catalog: Catalog,
    fields: Sequence[AnalyzedTexts],
    passages: SplitTexts | None,
    pretrained: Mapping[str, TextEncoder],
    prior: dict[str, float],
    progress: Progress,
) -> None:
    """Add the lexical keys, the encoders and the keys of the dense heads, the weights of heads and
    columns, and the thresholds for queries without an answer.

    fields: the text columns. passages: of long texts, None without any. pretrained: encoders by the
    names of their heads. prior: the weights of heads before anything is learned.
    """
    analyzer = fields[0].runs.analyzer
    names = [name for name in prior if name in LEARNED]
    progress("reading texts", 0, len(names) + 1)
    lexical = store_words(contents, catalog, fields, passages)
    # Looking for codes copies all texts.
    release_freed_memory()
    encoders: dict[str, TextEncoder] = {}
    epochs: dict[str, int | None] = {}
    for name in dense_heads(prior):
        if name in LEARNED:
            progress("reading texts", names.index(name) + 1, len(names) + 1)
            encoders[name], epochs[name] = learned_encoder(name, fields, analyzer.language)
        else:
            encoders[name] = fitted_encoder(name, fields, pretrained=pretrained.get(name))
    progress("reading texts", len(names) + 1, len(names) + 1)
    main = dense_heads(prior)[-1]
    weights = length_weights(fields, analyzer)

    weigh = partial(progress, "weighing the heads")
    weigh(0, len(prior))
    heads, made = learn_weights(fields, encoders, prior, epochs, progress=weigh, analyzer=analyzer)
    weigh(len(prior), len(prior))
    contents.facts["head_weights"] = heads
    tuned = SearchSettings.of(contents.facts).columns
    tuned_weights = None
    if tuned is not None:
        tuned_weights = [tuned[name] for name in contents.facts["text_columns"]]
    keys: dict[str, np.ndarray] = {}
    for name, encoder in encoders.items():
        # Only the main head has tokens, for late interaction.
        has_tokens = name == main and main in SECOND_PASS
        keys[name] = store_head(
            contents, name, encoder, fields, progress, weights, has_tokens, tuned_weights, passages
        )
    if main in pretrained:
        DenseComponent(main).note_texts(contents)
    release_freed_memory()
    scores = best_scores(lexical, encoders, keys, analyzer)
    titles = titles_of(catalog)
    answerability = calibrate(lexical, scores, heads, titles, made, analyzer=analyzer)
    contents.facts[ANSWERABILITY] = answerability.to_fact()
    if main in answerability.relative:
        languages = contents.facts[LANGUAGES]
        subjects = common_subjects(encoders[main], keys[main], titles, analyzer, languages)
        SubjectsComponent(main).store(contents, subjects)
