"""An opened workspace: search, recommend, similar, attend, change, measure and tune, in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from qkvsearch.answers.arguments import as_list, candidates, check, check_model, ranked
from qkvsearch.answers.batch import BatchRecommendations
from qkvsearch.answers.diversity import diverse, pool_size
from qkvsearch.answers.facts import ItemRows, UserRows, build_facts, verified
from qkvsearch.answers.histories import Histories
from qkvsearch.answers.recommend import Recommender, with_facts, with_reasons
from qkvsearch.answers.search import TextSearch
from qkvsearch.answers.similar import Neighbours, similar_users
from qkvsearch.data.ids import Id, id_text
from qkvsearch.progress import Progress
from qkvsearch.retrieval import Head, Ranking
from qkvsearch.stored import StoredModels
from qkvsearch.texts.self_attention import AttentionMap
from qkvsearch.workspace import Snapshot, Workspace

if TYPE_CHECKING:
    from qkvsearch.data.columns import Columns
    from qkvsearch.data.judgements import Judgements, Queries
    from qkvsearch.data.readers import Source
    from qkvsearch.evaluation.report import Evaluation
    from qkvsearch.evaluation.tuning import Trial, Tuning
    from qkvsearch.revision import Revision


class Engine:
    """The workspace at `path`, ready to answer, from the build that is current when it is opened: a
    build published later needs a new `Engine`. Raises `WorkspaceError`.
    """

    def __init__(self, path: str | Path) -> None:
        self.workspace = Workspace(path)
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        self.snapshot: Snapshot = self.workspace.open()
        self.tables = self.snapshot.tables
        self.models = StoredModels(self.snapshot)
        self.texts = TextSearch(self.models, self.tables)
        self.n_items = self.models.n_items

    def _reopen(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        """Let go of the workspace's database."""
        self.snapshot.close()

    def __repr__(self) -> str:
        facts = self.snapshot.facts
        return (
            f"<Engine {self.workspace.path}: {self.n_items:,} items, "
            f"{facts.get('n_users', 0):,} users, encoder {facts['encoder']}>"
        )

    @property
    def items(self) -> ItemRows:
        """The catalog: `items["m042"]` is a row by column, `items.to_frame()` all of them."""
        return ItemRows(self.tables)

    @property
    def users(self) -> UserRows:
        """The users, those recorded since the build as well, in the same way as `items`."""
        return UserRows(Histories(self.models, self.tables))

    # --- questions ---

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        heads: str | Iterable[str] | None = None,
        fusion: str = "scores",
        user: Any = None,
        where: str | None = None,
        temperature: float | None = None,
        explain: bool = False,
    ) -> Ranking:
        """Items ranked for a text query by `heads`: "lexical", those of the build's encoder by
        name, or "semantic" for all of those; by default all.

        With a `user` their preferences are one more head, "collaborative". The score is the heads'
        weighted sum in standard deviations from their means, or by `fusion="ranks"` of 1 / (60 +
        rank). A query of which no head knows a word has no hits. With `explain` each hit carries
        `matches`: the words of each column in which the lexical head finds the query's. `notes`
        say what of the query was not read, and when hits are no better than chance. Raises
        `QkvError` for a head, a user or `where` that cannot be used.
        """

        def preferences() -> Head | None:
            recommender = self._recommender()
            return recommender.head(recommender.histories.of(user))

        names = None if heads is None else as_list(heads)
        mask = candidates(self.tables, self.n_items, where)
        personal = None if user is None else preferences
        fused = self.texts.fused(query, names, fusion, personal, mask)
        ranking = ranked(fused, self.tables.names, k, temperature, mask)
        return self.texts.with_matches(ranking, query) if explain else ranking

    def head(self, name: str, query: str) -> Head | None:
        """One head's scores; None where it knows no word. Raises `QkvError` without its encoder."""
        return self.texts.head(name, query)

    def recommend(
        self,
        *,
        user: Any = None,
        likes: Id | Iterable[Id] = (),
        k: int = 10,
        where: str | None = None,
        only: Iterable[Id] | None = None,
        seen: bool = False,
        model: str = "tastes",
        recent: int | None = None,
        damping: float = 0.0,
        diversity: float = 0.0,
        temperature: float | None = None,
        explain: bool = False,
    ) -> Ranking:
        """Items for a known user, for someone new from what they like, or for both together.

        The score is an exact solve on the current history, near 1 for what is all but sure to be
        wanted; with `model="next-item"` it is the item · the last state of the history that
        attends to itself, which has no such bound. Left out are the items of the history, unless
        `seen`, and all but `only` these ids. An interaction counts half for every `recent` later
        ones; `damping` takes from popular items, `diversity`, 0 to 1, from those that are like the
        hits above. With `explain`, `because`: what the history adds to the score, and without an
        id what damping, diversity and the model's constant do; together they are the score.
        Raises `QkvError` for an argument that cannot be used.
        """
        check(k=k, temperature=temperature, damping=damping, diversity=diversity)
        check_model(model, recent)
        recommender = self._recommender()
        history = recommender.histories.of(user, as_list(likes), recent)
        known = () if seen else history.positions
        mask = candidates(self.tables, self.n_items, where, known, only)
        head = recommender.head(history, model, damping)
        pool = ranked(head, self.tables.names, pool_size(k, diversity), temperature, mask)
        ranking = diverse(pool, self.models, diversity, k)
        if explain:
            ranking = with_reasons(ranking, history, self.tables)
        return with_facts(ranking, history, self.models)

    def recommend_all(
        self,
        path: str | Path,
        *,
        k: int = 10,
        where: str | None = None,
        only: Iterable[Id] | None = None,
        seen: bool = False,
        model: str = "tastes",
        recent: int | None = None,
        damping: float = 0.0,
        format: str | None = None,
        progress: Progress | None = None,
    ) -> tuple[int, int]:
        """`recommend` for all users, to a .parquet, .csv or .jsonl file. Returns how many users
        there are, and how many an interrupted run, which the same call goes on with, had done.
        Raises `QkvError` for an argument that cannot be used.
        """
        recommender = self._recommender()
        mask = candidates(self.tables, self.n_items, where, only=only)
        batch = BatchRecommendations(recommender, k, mask, seen, recent, damping, model)
        state = f"{self.snapshot.folder.name} {self.tables.records.count()}"
        done = batch.write(Path(path), format, state, progress)
        return len(recommender.histories), done

    def similar_users(
        self,
        user: Any,
        *,
        k: int = 10,
        temperature: float | None = None,
        explain: bool = False,
        progress: Progress | None = None,
    ) -> Ranking:
        """Users by the cosine of their embeddings, every one solved now; `shared` is how many
        items both interacted with, `because` what each of the user's own adds.
        """
        check(k=k, temperature=temperature)
        return similar_users(self._recommender(), user, k, temperature, explain, progress)

    def similar(
        self, item: Any, *, k: int = 10, where: str | None = None, temperature: float | None = None
    ) -> Ranking:
        """Neighbours of an item, by its users and by what it is called and tagged."""
        position = self.tables.item_position(item)
        mask = candidates(self.tables, self.n_items, where, [position])
        head = Neighbours(self.texts).fused(position)
        return ranked(head, self.tables.names, k, temperature, mask)

    def attend(
        self, text: str, mask: str = "none", layer: int | None = None, head: int | None = None
    ) -> AttentionMap:
        """The text's own attention: a head's of a transformer, or that of its words' vectors.

        `mask`: "none", "padding", "causal". Layers and heads count from 0; without a head the mean
        of all, without a layer the last. Raises `QkvError` where the encoder has no layers.
        """
        encoder = self.models.encoder(self.models.main_head)
        return encoder.attend(text, mask).map(layer, head)

    # --- changes ---

    def record(self, user: Id, item: Id, rating: float | None = None) -> tuple[Id, str]:
        """One more interaction, on disk when this returns. The next `recommend` knows it, by an
        exact solve on the longer history, without a rebuild. The item's id and title come back.

        A new user is created; of repeated pairs the latest counts; without a rating the interaction
        keeps the one it had, or counts in full. Recorded interactions stay when the workspace is
        built again. Raises `UnknownIdError` for an item that is not in the catalog, `QkvError`
        for a rating outside the scale.
        """
        self._recommender().histories.check_record(user, rating)
        ids, titles = self.tables.names([self.tables.item_position(item)])
        self.workspace.record(id_text(user), id_text(ids[0]), rating)
        return ids[0], titles[0]

    def add(
        self, items: Source, columns: Columns | None = None, *, progress: Progress | None = None
    ) -> Revision:
        """Items of a file or frame join the workspace without a rebuild, in the place of those with
        their ids; this engine finds them at once. Raises `QkvError`.
        """
        from qkvsearch.revision import add_items

        revision = add_items(self.workspace.path, items, columns, progress)
        self._reopen()
        return revision

    def remove(
        self,
        items: Id | Iterable[Id] = (),
        *,
        where: str | None = None,
        progress: Progress | None = None,
    ) -> Revision:
        """Items leave the workspace with their interactions, by id or title or by a condition; all
        of them or, where one is unknown, none.
        """
        from qkvsearch.revision import remove_items

        revision = remove_items(self.workspace.path, items, where=where, progress=progress)
        self._reopen()
        return revision

    # --- measurements ---

    def evaluate_search(
        self,
        queries: str | Path | Queries,
        qrels: str | Path | Judgements,
        *,
        heads: str | Iterable[str] | None = None,
        progress: Progress | None = None,
    ) -> Evaluation:
        """nDCG@10, MRR@10 and Recall@100 of search, beside the lexical head alone.

        queries, qrels: files, or query ids to their texts, and to the grade of each judged item.
        The report's `notes` say what the figures leave out. Raises `QkvError`.
        """
        from qkvsearch.evaluation.search import evaluate_heads

        names = None if heads is None else as_list(heads)
        return evaluate_heads(self.search, queries, qrels, names, self.items.ids, progress)

    def evaluate_recommend(
        self,
        protocol: str = "random",
        *,
        k: int = 10,
        random_state: int = 0,
        next_item: bool = False,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Recommendations judged by interactions held out of training, beside simpler methods.

        protocol: "random", "leave-last-out", "time" or "strong". The models learn anew from the
        train part of the build's log, with the settings that `tune` found, if it did; `next_item`:
        the model of what comes next too (minutes). The report's `notes` say what the figures leave
        out. Raises `QkvError`.
        """
        from qkvsearch.answers import measure

        options = {"protocol": protocol, "next_item": next_item, "progress": progress}
        return measure.evaluate_recommend(self.models, k, random_state, **options)

    def tune(
        self,
        protocol: str = "random",
        *,
        k: int = 10,
        trials: int | None = None,
        minutes: float | None = None,
        random_state: int = 0,
        callback: Callable[[list[Trial]], None] | None = None,
        progress: Progress | None = None,
    ) -> Tuning:
        """Settings of the recommender that suit the log, searched for and, where they are better,
        put in use: the preferences are learned with them, and this engine answers by them.

        trials: how many random settings, by default 27. minutes: when to be done, by default 5, and
        no limit where `trials` says how long. `callback` is given all trials after each. Raises
        `QkvError`.
        """
        from qkvsearch.answers import measure

        options = {"protocol": protocol, "callback": callback, "progress": progress}
        found = measure.search_settings(self.models, k, trials, minutes, random_state, **options)
        if found.worthwhile:
            kept = {"protocol": protocol, "seed": random_state, "settings": found.settings}
            self._learn_preferences(kept if found.settings else None, progress)
        return found

    def reset_tuning(self, *, progress: Progress | None = None) -> None:
        """Back to the default settings, without a search. Raises `WorkspaceError`."""
        self._learn_preferences(None, progress)

    def _learn_preferences(self, tuned: dict[str, Any] | None, progress: Progress | None) -> None:
        """Anew from the whole log, with what was found or the default settings."""
        from qkvsearch.revision import learn_preferences

        learn_preferences(self.workspace.path, tuned, progress)
        self._reopen()

    def info(self, *, verify: bool = False) -> dict[str, Any]:
        """What was built, when, and from what. With `verify` every file is compared with its
        checksum; raises `WorkspaceError` where one is damaged.
        """
        facts = {"workspace": str(self.workspace.path), **build_facts(self.snapshot)}
        return {**facts, "checksums": verified(self.snapshot)} if verify else facts

    def _recommender(self) -> Recommender:
        """Raises `WorkspaceError` where nobody's interactions were given."""
        return Recommender(self.models, self.tables)


def build(
    path: str | Path,
    source: Source | None = None,
    *,
    items: Source | None = None,
    interactions: Source | None = None,
    columns: Columns | None = None,
    encoder: str = "auto",
    queries: str | Path | Queries | None = None,
    qrels: str | Path | Judgements | None = None,
    next_item: bool = False,
    progress: Progress | None = None,
) -> Engine:
    """Build a workspace at `path` from files or data frames, and open it.

    `source`: a folder of a known data set, `sample:movies`, `sample:videos`, or one file; `items`
    and `interactions`: a file or a pandas frame each, with `columns` where their names say too
    little. `encoder`: a name, a model's folder, or "auto", the best that is installed and quick
    enough. `queries` with `qrels`: judged queries to learn the heads' weights from.
    `next_item`: also train the model of what comes next. `progress` is called as (what is done, how
    much is done, how much there is). Raises `QkvError`.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> engine = build(folder, "sample:videos")
    >>> engine.search("sourdough bread", k=1)[0].title
    'Sourdough from nothing, day one to day nine'
    """
    from qkvsearch.builder import build_workspace
    from qkvsearch.data.judgements import judged_by
    from qkvsearch.data.sources import read_source

    judged = judged_by(queries, qrels)
    dataset = read_source(source, items, interactions, columns)
    build_workspace(
        path, dataset, encoder=encoder, judged=judged, next_item=next_item, progress=progress
    )
    return Engine(path)
