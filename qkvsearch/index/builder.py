"""Build a workspace from data: fit the encoders and the models, store them, publish."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch import __version__
from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch.data.catalog import Catalog
from qkvsearch.data.columns import Columns
from qkvsearch.data.dataset import Dataset, Source
from qkvsearch.data.ids import Ids
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.judgements import LEARNED_FROM, Judgements, Queries
from qkvsearch.data.sources import read_source
from qkvsearch.data.synonyms import FACT as SYNONYMS
from qkvsearch.data.synonyms import Synonyms
from qkvsearch.errors import QkvError
from qkvsearch.index.component import LANGUAGE
from qkvsearch.index.dense import DenseComponent
from qkvsearch.index.interaction_log import LogComponent
from qkvsearch.index.learned_models import (
    TUNED,
    USERS,
    NextItemComponent,
    PreferencesComponent,
    RatingsComponent,
)
from qkvsearch.index.registry import FROM_INTERACTIONS
from qkvsearch.index.texts import store_head, store_words
from qkvsearch.retrieval.answerability import FACT as ANSWERABILITY
from qkvsearch.retrieval.calibration import best_scores, calibrate
from qkvsearch.retrieval.column_weights import length_weights
from qkvsearch.retrieval.head_weights import (
    AnsweredQueries,
    JudgedQueries,
    judged_queries,
    learn_columns_from_judgements,
    learn_from_judgements,
    learn_weights,
)
from qkvsearch.retrieval.keys import LexicalKeys
from qkvsearch.storage import BuildContents, CatalogRows, Workspace
from qkvsearch.storage.array_files import ArrayFile
from qkvsearch.storage.workspace import NOT_TAKEN_OVER
from qkvsearch.storage.remote_collections import FACT as KEYS
from qkvsearch.storage.remote_collections import RemoteCollection
from qkvsearch.text.analysis import Analyzer, words
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.encoders import (
    AUTO,
    CHOICES,
    LEARNED,
    SECOND_PASS,
    Choice,
    FittedEncoder,
    TextEncoder,
    choose,
    dense_heads,
    fitted_encoder,
    learned_encoder,
    pretrained_encoder,
    prior_weights,
)
from qkvsearch.text.languages import Language
from qkvsearch.text.languages import chosen as chosen_language

if TYPE_CHECKING:
    from qkvsearch.engines.spark.spark_log import SparkLog

# The default folder in a workspace for checkpoints of Spark.
CHECKPOINT = ".engine"
# The prefix of the names of temporary folders.
UNFINISHED = ".unfinished-"
# Up to this many ratings are copied to this machine, where the model of ratings learns.
MAX_RATINGS = 5_000_000
NO_RATINGS = (
    "Left out: predicted ratings; they are learned on one machine, which takes up to {most:,} of "
    "an engine's ratings, and the log has {n:,}"
)
DTYPES = {"items": np.int32, "ratings": np.float32, "times": np.int64, "weights": np.float32}


def build_workspace(
    workspace: Workspace,
    dataset: Dataset,
    *,
    encoder: str = AUTO,
    language: str = AUTO,
    judged: tuple[Queries, Judgements] | None = None,
    next_item: bool = False,
    synonyms: Synonyms | None = None,
    keys: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Learn everything from `dataset` and publish it, as `engine.build` describes.

    Preferences are learned with the settings that `tune` found for the workspace, if any. judged:
    queries and the items that answer them. keys: `milvus:URI` of a server for the keys. Raises
    `QkvError`.
    """
    fields: Sequence[Sequence[str]] = dataset.catalog.fields()
    chosen = choose(fields) if encoder == AUTO else Choice(encoder, "")
    encoder = chosen.encoder
    # A missing model or language fails here, before any work.
    spoken = chosen_language(language, dataset.catalog.texts(), words)
    weights = prior_weights(encoder)
    pretrained = {
        name: pretrained_encoder(name, encoder)
        for name in weights
        if name not in ("lexical", *LEARNED)
    }
    questions = None if judged is None else judged_queries(*judged, dataset.catalog.ids)
    if next_item:
        if not isinstance(dataset.interactions, Interactions | None):
            raise QkvError("`next_item` learns on one machine: leave out `engine`, or `next_item`")
        NextItemComponent().check(dataset.interactions)
    if encoder not in CHOICES:  # a folder, absolute so that it is found from anywhere
        encoder = str(Path(encoder).resolve())
    progress = progress or silent
    with workspace.writing("build"):
        previous = workspace.current_facts()
        contents = _contents(dataset, encoder, chosen.why, spoken)
        if keys is not None:
            contents.facts[KEYS] = RemoteCollection.new(keys, previous).to_fact()
        if synonyms:
            contents.facts[SYNONYMS] = synonyms
        fields = AnalyzedTexts.of_columns(fields, Analyzer(spoken.name))
        _add_text(
            contents,
            dataset.catalog,
            fields,
            pretrained,
            weights,
            questions,
            workspace.path,
            progress,
        )
        lost = previous.get(NOT_TAKEN_OVER, ())
        contents.facts["rows"] += [f"{NOT_TAKEN_OVER}: {reason}" for reason in lost]
        if dataset.interactions is not None:
            contents.facts |= {name: previous[name] for name in previous.keys() & {TUNED}}
        with ExitStack() as unfinished:
            if isinstance(dataset.interactions, Interactions):
                for component in (*FROM_INTERACTIONS, *[NextItemComponent()] * next_item):
                    component.learn(contents, dataset.interactions, progress)
            elif dataset.interactions is not None:
                folder = Path(unfinished.enter_context(unfinished_files(workspace.path)))
                left_out = learn_distributed(contents, dataset.interactions, folder, progress)
                contents.facts["rows"] += left_out
            progress("saving", 0, 1)
            workspace.publish(contents, "build")
            progress("saving", 1, 1)


@contextmanager
def unfinished_files(workspace: Path) -> Iterator[str]:
    """Create a temporary folder in the workspace, and remove those of killed processes. Requires
    the lock of the workspace.
    """
    for leftover in workspace.glob(f"{UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=workspace) as folder:
        yield folder


@contextmanager
def reading(
    source: Source | None,
    items: Source | None,
    interactions: Source | None,
    columns: Columns | None,
    engine: str | None = None,
    checkpoint: str | Path | None = None,
) -> Iterator[Dataset]:
    """Read a data set on this machine or with Spark, which holds the log until the block ends.
    checkpoint: a folder from which an interrupted run continues. Raises `QkvError`.
    """
    if engine is None:
        yield read_source(source, items, interactions, columns)
        return
    from qkvsearch.engines.spark.spark_log import read_on_spark

    if source is not None:
        raise QkvError("`engine` takes `items` and `interactions`, not a SOURCE")
    with read_on_spark(engine, items, interactions, columns, checkpoint) as dataset:
        yield dataset


def _contents(dataset: Dataset, encoder: str, why: str, spoken: Language) -> BuildContents:
    """Return a build with a catalog and no models. why: the reason for an automatic encoder."""
    facts = {
        "qkvsearch": __version__,
        "encoder": encoder,
        "encoder_chosen": f"automatic: {why}" if why else "your choice",
        LANGUAGE: spoken.name,
        "language_chosen": spoken.why,
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
    fields: Sequence[AnalyzedTexts],
    pretrained: Mapping[str, TextEncoder],
    prior: dict[str, float],
    questions: JudgedQueries | None,
    folder: Path,
    progress: Progress,
) -> None:
    """Add the lexical keys, encoders and keys of the dense heads, weights of heads and columns, and
    the thresholds for queries without an answer.
    """
    analyzer = fields[0].runs.analyzer
    names = [name for name in prior if name in LEARNED]
    progress("reading texts", 0, len(names) + 1)
    counted = store_words(contents, catalog, fields)
    encoders: dict[str, TextEncoder] = {}
    learned: dict[str, FittedEncoder] = {}
    for name in dense_heads(prior):
        if name in LEARNED:
            progress("reading texts", names.index(name) + 1, len(names) + 1)
            learned[name] = learned_encoder(name, fields, analyzer.language)
            encoders[name] = learned[name].encoder
        else:
            encoders[name] = fitted_encoder(name, fields, pretrained=pretrained.get(name))
    progress("reading texts", len(names) + 1, len(names) + 1)
    main = dense_heads(prior)[-1]
    lexical = LexicalKeys.from_counts(*counted)
    learner = _Learner(contents, fields, lexical, encoders, prior, analyzer, folder, progress)
    if questions is None:
        keys, answered = learner.from_made_queries(learned)
    else:
        keys, answered = learner.from_judgements(questions), []
    if main in pretrained:
        DenseComponent(main).note_texts(contents)
    titles = [title for title in catalog.frame["title"].astype(str) if title.strip()]
    judged = [] if questions is None else questions.texts
    scores = best_scores(lexical, encoders, keys, analyzer)
    heads = contents.facts["head_weights"]
    answerability = calibrate(lexical, scores, heads, titles, answered, judged, analyzer=analyzer)
    contents.facts[ANSWERABILITY] = answerability.to_fact()


@dataclass(frozen=True)
class _Learner:
    """Weights of heads and columns, learned before the keys are stored."""

    contents: BuildContents
    fields: Sequence[AnalyzedTexts]
    lexical: LexicalKeys
    encoders: Mapping[str, TextEncoder]
    prior: Mapping[str, float]
    analyzer: Analyzer
    folder: Path
    progress: Progress

    def from_made_queries(
        self, learned: Mapping[str, FittedEncoder]
    ) -> tuple[dict[str, np.ndarray], list[AnsweredQueries]]:
        """Learn from generated queries; return the keys of each dense head, and the queries."""
        weigh, n = partial(self.progress, "weighing the heads"), len(self.prior)
        weigh(0, n)
        learned_weights = learn_weights(
            self.fields, self.encoders, self.prior, learned, progress=weigh, analyzer=self.analyzer
        )
        keys = {name: self._stored(name, learned_weights.columns[name]) for name in self.encoders}
        weigh(n, n)
        self.contents.facts["head_weights"] = learned_weights.heads
        return keys, learned_weights.answered

    def from_judgements(self, questions: JudgedQueries) -> dict[str, np.ndarray]:
        """Learn from judged queries. Return the keys of each dense head."""
        given = length_weights(self.fields, self.analyzer)
        learn = partial(learn_columns_from_judgements, questions, prior=given)
        keys = {
            name: self._stored(name, partial(learn, encoder))
            for name, encoder in self.encoders.items()
        }
        self.progress("weighing the heads", 0, 1)
        heads = learn_from_judgements(
            questions, self.lexical, self.encoders, keys, self.prior, analyzer=self.analyzer
        )
        self.progress("weighing the heads", 1, 1)
        self.contents.facts |= {
            "head_weights": heads,
            "weights_from": questions.summary(),
            LEARNED_FROM: questions.fingerprints(),
        }
        return keys

    def _stored(
        self, name: str, weights: np.ndarray | Callable[[list[np.ndarray]], np.ndarray]
    ) -> np.ndarray:
        encoder = self.encoders[name]
        # Only the main head has tokens, for late interaction.
        folder = self.folder if name in SECOND_PASS and name == list(self.prior)[-1] else None
        return store_head(self.contents, name, encoder, self.fields, self.progress, weights, folder)


# --- a log that Spark has read: its arrays are written block by block, never held in memory ---


def learn_distributed(
    contents: BuildContents, log: SparkLog, folder: Path, progress: Progress
) -> list[str]:
    """Add a log to a build, and the preferences and predicted ratings that are learned from it.

    folder: for temporary files, in the file system of the build. Return notes about what was left
    out.
    """
    _store_log(contents, log, folder, progress)
    settings = contents.facts.get(TUNED, {}).get("settings", {})
    factors = log.learn(settings, progress)
    component = PreferencesComponent()
    component.put_learned(contents, factors, log.blocks.counts.pairs, log.blocks.counts.likes)
    name = component.name_of(USERS)
    shape = log.n_users, factors.item_embeddings.shape[1]
    with ArrayFile(folder / f"{name}.npy", np.float32, shape) as file:
        for directions in log.directions(factors):
            progress("placing users", file.n_rows, log.n_users)
            file.append(directions)
    progress("placing users", log.n_users, log.n_users)
    contents.shared[f"{name}.npy"] = file.stored
    return _learn_ratings(contents, log, progress)


def _store_log(contents: BuildContents, log: SparkLog, folder: Path, progress: Progress) -> None:
    """Write the arrays of `LogComponent` to files."""
    component, n_pairs = LogComponent(), len(log)
    component.drop(contents)
    contents.users = log.user_ids
    component.note_feedback(contents, log.feedback)
    has_times = "times" in log.facts.arrays
    component.note_size(contents, log.n_users, n_pairs, has_times, log.facts.times_comparable)
    files = {
        name: ArrayFile(folder / f"{component.name_of(name)}.npy", DTYPES[name], (n_pairs,))
        for name in ("items", *log.facts.arrays)
    }
    with ArrayFile(
        folder / f"{component.name_of('indptr')}.npy", np.int64, (log.n_users + 1,)
    ) as ends:
        ends.append(np.zeros(1, np.int64))
        for block in log.histories():
            ends.append(block.indptr[1:] + files["items"].n_rows)
            for name, file in files.items():
                file.append(getattr(block, name))
            progress("writing the log", files["items"].n_rows, n_pairs)
    for name, file in files.items():
        file.close()
        contents.shared[f"{component.name_of(name)}.npy"] = file.stored
    contents.shared[f"{component.name_of('indptr')}.npy"] = ends.stored
    component.put(contents, usual_weights=log.feedback.usual_weights)


def _learn_ratings(contents: BuildContents, log: SparkLog, progress: Progress) -> list[str]:
    component = RatingsComponent()
    component.drop(contents)
    if "ratings" not in log.facts.arrays:
        return []
    if len(log) > MAX_RATINGS:
        return [NO_RATINGS.format(n=len(log), most=MAX_RATINGS)]
    pending = partial(LogComponent().pending, contents)
    lengths = np.diff(pending("indptr"))
    local = Interactions(
        users=np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
        items=pending("items"),
        user_ids=Ids(map(str, range(log.n_users)), integer=True),
        item_ids=log.item_ids,
        ratings=pending("ratings"),
        scale=log.feedback.scale,
    )
    component.learn(contents, local, progress)
    return []
