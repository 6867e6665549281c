"""The product in Python: build or open a workspace, search, recommend, change and evaluate it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields as fields_of
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from qkvsearch._utils.forks import fork_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch._utils.validation import (
    check_id,
    check_names,
    check_whole,
    displayed,
    is_whole,
    require,
)
from qkvsearch.engine.arguments import checked_arguments
from qkvsearch.engine.item_maps import ItemMaps
from qkvsearch.errors import DamagedError, DataError, QkvError, quantity, suggest
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.options import head_names, id_list
from qkvsearch.rank.questions import (
    Explain,
    RecommendQuestion,
    SearchQuestion,
    SimilarQuestion,
    check,
    check_page,
)
from qkvsearch.rank.search import search
from qkvsearch.store import Workspace
from qkvsearch.store.segments import BUILDS_FOLDER

# What only one method needs is imported by that method.
if TYPE_CHECKING:
    from qkvsearch._utils.callbacks import Progress
    from qkvsearch.engine.export_embeddings import ExportedEmbeddings
    from qkvsearch.engine.projection import ItemMap
    from qkvsearch.engine.rows import ItemRows, UserRows
    from qkvsearch.evaluation.comparison.compared import Comparison
    from qkvsearch.evaluation.others import Others
    from qkvsearch.evaluation.results import Evaluation
    from qkvsearch.evaluation.search_tuning import SearchTuning
    from qkvsearch.evaluation.tuning import Trial, Tuning
    from qkvsearch.heads.stored_models import StoredModels
    from qkvsearch.learn.add import Revision
    from qkvsearch.learn.erase import Forgotten
    from qkvsearch.learn.learn_again import Learned
    from qkvsearch.learn.merge import Merged
    from qkvsearch.learn.repair import Repaired
    from qkvsearch.learn.sync import Synced
    from qkvsearch.rank.batch import AllRecommendations
    from qkvsearch.rank.listing import Listing
    from qkvsearch.rank.ranking import Ranking
    from qkvsearch.rank.text_search import TextSearch
    from qkvsearch.scores.components import Components
    from qkvsearch.scores.fusion import Scores
    from qkvsearch.store import BuildEntry, Snapshot, StoredCatalog
    from qkvsearch.tables.columns import Columns
    from qkvsearch.tables.dataset import Source
    from qkvsearch.tables.ids import Id
    from qkvsearch.tables.judgements import Judgements, Queries
    from qkvsearch.tables.synonyms import Synonyms
    from qkvsearch.text.encoded_text import AttentionMap, Hidden
    from qkvsearch.where import Where

log = logging.getLogger("qkvsearch.engine")
# The default limits of tuning.
TRIALS, MINUTES = 27, 5.0
P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def _damage_explained(build: LoadedBuild) -> Iterator[None]:
    """Say in an error what to do about damaged files of a build."""
    try:
        yield
    except DamagedError as error:
        from qkvsearch.engine.info import explain_damage

        raise explain_damage(error, build.snapshot) from None


def _parts_of_build(build: LoadedBuild, scores: Scores, position: int) -> Components:
    """Return the parts of an item's score. `build` stays open as long as somebody can ask."""
    return scores.parts(position)


def _recommend_question(
    *,
    likes: Id | Iterable[Id] = (),
    without: Id | Iterable[Id] = (),
    exclude: Id | Iterable[Id] = (),
    only: Iterable[Id] | None = None,
    fields: str | Iterable[str] = (),
    heads: str | Iterable[str] | None = None,
    **options: Any,
) -> RecommendQuestion:
    """Return the question that the arguments of `Engine.recommend` ask."""
    return RecommendQuestion(
        likes=id_list("likes", likes),
        without=id_list("without", without),
        exclude=id_list("exclude", exclude),
        only=None if only is None else id_list("only", only),
        fields=check_names("fields", fields),
        heads=head_names(heads),
        **options,
    )


class Engine:
    """An opened workspace. It answers from the build that was current when it was opened, or that
    its own last change made.

    Questions: `search`, `recommend`, `recommend_many`, `recommend_all`, `similar`, `attend`,
    `encode`, `map`, `export_embeddings`; `items`, `users`, `show`, `history`, `records`, `info` and
    `builds` list what is stored, and `searches` what people searched for. Changes: `record`,
    `record_many`, `undo_record`, `add`, `sync`, `remove`, `learn`, `compact`, `rollback`,
    `forget`, `add_rule`, `remove_rule`, which `rules` lists. Measurements: `evaluate_search`,
    `evaluate_recommend`, `compare`, `tune`, `tune_search`, `reset_tuning`. Several threads may
    use an engine.

    path: the folder of the workspace.
    follow: answer each question from the build that is current then.
    wait: how many seconds a change waits for another writer, by default as long as it takes.
    notify: called with a message that names that writer.

    Raises `WorkspaceError`.

    >>> import tempfile
    >>> import pandas as pd
    >>> items = pd.DataFrame({"id": [1, 2], "title": ["Red lamp", "Blue kettle"]})
    >>> folder = tempfile.mkdtemp()
    >>> build(folder, items, encoder="corpus").close()
    >>> [hit.title for hit in Engine(folder).search("kettle", k=1)]
    ['Blue kettle']
    """

    @checked_arguments
    def __init__(
        self,
        path: str | Path,
        *,
        follow: bool = False,
        wait: float | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.workspace = Workspace(path, wait=wait, notify=notify)
        self._follows = follow
        self._maps = ItemMaps()
        # Held while another build is opened.
        self._lock = fork_lock()
        # Whether a change is published that could not be opened: the next question opens it.
        self._must_open = False
        self._open()

    def _open(self) -> None:
        # Read first, so that a build that is published meanwhile is noticed next time.
        state = self.workspace.state()
        self._build = LoadedBuild.open(self.workspace)
        self._state, self._must_open = state, False

    def _reopen(self) -> None:
        """Switch to the newest build. Running questions keep theirs, and the last one closes it."""
        with self._lock:
            self._open()

    def _opened_build(self) -> LoadedBuild:
        """Return the build that answers the next question."""
        if self._follows or self._must_open:
            with self._lock:
                if self._must_open or self.workspace.state() != self._state:
                    self._open()
        return self._build

    @property
    def current_build(self) -> LoadedBuild:
        """The build that answers the next question, with what is recorded now. Its files stay open
        as long as somebody has it, whatever is published meanwhile.
        """
        return self._opened_build().for_question()

    @contextmanager
    def _question(self) -> Iterator[LoadedBuild]:
        """Lend a build to one question. An error says what to do about damaged files."""
        build = self.current_build
        with _damage_explained(build):
            yield build

    @contextmanager
    def _named_build(self, name: str) -> Iterator[LoadedBuild]:
        """Lend the build of this name, which is closed afterwards unless it is the current one.
        Raises `WorkspaceError`.
        """
        build = self.current_build
        if name == build.snapshot.name:
            with _damage_explained(build):
                yield build
            return
        build = LoadedBuild.open(self.workspace, name)
        try:
            with _damage_explained(build):
                yield build
        finally:
            build.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files of the workspace."""
        self._build.close()

    def __repr__(self) -> str:
        return f"<Engine {self.current_build.summary}>"

    # Parts of the build that answers now. A change closes them, and so does the end of the engine:
    # to go on with them after it, keep `current_build`.

    @property
    def snapshot(self) -> Snapshot:
        """The build's files."""
        return self._opened_build().snapshot

    @property
    def catalog(self) -> StoredCatalog:
        """The catalog of the build."""
        return self._opened_build().catalog

    @property
    def models(self) -> StoredModels:
        """The models of the build."""
        return self._opened_build().models

    @property
    def texts(self) -> TextSearch:
        """The heads of a search."""
        return self._opened_build().texts

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self._opened_build().n_items

    @property
    def items(self) -> ItemRows:
        """The catalog: `items["m042"]` is a row as a dict, `items.to_frame()` all rows."""
        from qkvsearch.engine.rows import ItemRows

        return ItemRows(self.current_build)

    @property
    def users(self) -> UserRows:
        """The users, including those recorded since the build, in the same way as `items`."""
        from qkvsearch.engine.rows import UserRows

        return UserRows(self.current_build)

    # --- questions: each takes one build when it starts, and lets go of it when it ends ---

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        heads: str | Iterable[str] | None = None,
        user: Any = None,
        strict_user: bool = False,
        where: Where | None = None,
        fields: str | Iterable[str] = (),
        distinct: str | None = None,
        offset: int = 0,
        temperature: float | None = None,
        prefix: bool = False,
        facets: str | Iterable[str] = (),
        snippet: bool = False,
        passages: int = 0,
        explain: Explain = False,
        anyway: bool = False,
        rules: bool = True,
        weak: bool | None = None,
        sort: str | None = None,
    ) -> Ranking:
        """Rank items for a text query.

        A query may have operators: an item must match "a phrase", -word, field:word and word*;
        word^2 counts twice. All other words rank the results. Nothing is a syntax error. An empty
        query lists all items, the most popular first. A word that no item has is read as the word
        that it may be a misspelling of; `corrections` and `notes` say so.

        query: the text.
        k, offset: the number of hits, after the first `offset`.
        heads: "lexical", names of encoders, or "semantic" for all encoders; by default all heads.
        user: their preferences are one more head, "collaborative". An unknown user has none, and
            `notes` say so; with `strict_user` that is an `UnknownIdError`.
        where: an SQL condition on columns.
        fields: columns to show with each hit.
        distinct: a column; only the best hit of each value of it, the whole cell, is listed, and
            every item with an empty cell. Weights and facets are those of all items.
        temperature: of the softmax; by default one standard deviation of the scores.
        prefix: the user is still typing the last word.
        facets: columns whose values are counted among all matching items.
        snippet: add to each hit the passage of its longest text that answers best.
        passages: add to each hit of a long text its best passages, so many. Such a hit has the best
            one as `passage` anyway.
        explain: add to each hit `matches`, the words of each column that the lexical head matches;
            with "smallest" also `smallest`, the fewest words of the query without which it would
            not be among the hits.
        anyway: also rank items for a query that the catalog does not answer, which otherwise has
            no hits.
        rules: whether the owner's rules (`add_rule`) apply.
        weak: True lists weak matches below all others, and False leaves them out. By default all
            hits are ranked by their scores alone.
        sort: a column, ascending, or descending after "-"; "users": most users first. All hits that
            are not weak are put in its order, empty cells last and equal ones by their scores; with
            `weak`, weak ones follow in the same order.

        `total` of the ranking is the number of hits on all pages without weak ones, and
        `total_weak` the number of the others. Facets count the hits of `total`, and with `weak` the
        others too. Where there is none, `no_hits` says why.

        An item that no head scores higher than the average item is no hit. The `notes` say what was
        changed in the query or not read, and that nothing answers it. Raises `QkvError` for a head,
        a user or `where` that cannot be used.
        """
        question = SearchQuestion(
            query=query,
            k=k,
            offset=offset,
            where=where,
            fields=check_names("fields", fields),
            distinct=distinct,
            temperature=temperature,
            heads=head_names(heads),
            user=user,
            strict_user=strict_user,
            prefix=prefix,
            facets=check_names("facets", facets),
            snippet=snippet,
            passages=passages,
            explain=explain,
            anyway=anyway,
            rules=rules,
            weak=weak,
            sort=sort,
        )
        with self._question() as build:
            return search(build, question)

    @checked_arguments
    def head(self, name: str, query: str) -> Scores | None:
        """Return the scores of one head of a search; None where it knows no word of the query.
        Raises `QkvError` for a name that is no head, and where the head's encoder is missing.
        """
        with self._question() as build:
            scores = build.texts.head(name, query)
        if scores is None:
            return None
        # The parts read the texts of items, so they keep the files of the build open.
        return replace(scores, parts=partial(_parts_of_build, build, scores))

    def recommend(
        self,
        *,
        user: Any = None,
        strict_user: bool = False,
        likes: Id | Iterable[Id] = (),
        ratings: Mapping[Id, float] | None = None,
        without: Id | Iterable[Id] = (),
        exclude: Id | Iterable[Id] = (),
        k: int = 10,
        where: Where | None = None,
        only: Iterable[Id] | None = None,
        seen: bool = False,
        model: str = "preferences",
        heads: str | Iterable[str] | None = None,
        recent: float | None = None,
        damping: float = 0.0,
        diversity: float = 0.0,
        fields: str | Iterable[str] = (),
        distinct: str | None = None,
        offset: int = 0,
        temperature: float | None = None,
        rules: bool = True,
        explain: Explain = False,
        because: int | None = None,
    ) -> Ranking:
        """Recommend items to a known user, to a new one by what they like, or by both together.

        user: an id of the log or of the records. An unknown user gets the most popular items, by
            the number of users who interacted with them, as `weak` hits, and `notes` say so; with
            `strict_user` that is an `UnknownIdError`.
        likes: items that the user likes.
        ratings: ratings of items, or weights where the log has weights, as if recorded now.
        without: leave these items out of the history.
        exclude: do not recommend these items.
        only: recommend only items with these ids.
        seen: also recommend items of the history.
        model: "preferences" predicts 1 for an item that the user has, and 0 for others; "next-item"
            scores by the last state of a history that attends to itself, without such a scale.
        heads: of preferences. "collaborative" scores by the user's embedding, solved exactly for
            the history; "neighbours" by how much each item of the history speaks for an item. By
            default their mean, in the shares that the build learned.
        recent: an interaction counts half as much after `recent` later ones.
        damping: how much popularity is subtracted.
        diversity: from 0 to 1, how much hits should differ from those above.
        rules: whether the owner's boosts (`add_rule`) apply.
        explain: add `because` to each hit: what each item of the history adds to the score, and,
            without an id, what damping, diversity, a boost and a constant add. With "smallest" also
            `smallest`, the fewest items of the history without which it would not be among the
            first `offset` + `k`, where these items may not be recommended themselves.
        because: list at most this many items, and the others as one entry.

        The other arguments are those of `search`. Where no interactions were learned from, items
        with similar texts are recommended, and `notes` say so. Hits are `weak` if the history tells
        too little, and `notes` say why. Raises `QkvError` for an argument that cannot be used.
        """
        from qkvsearch.rank.recommend import recommend

        if isinstance(user, list | tuple):
            raise DataError(
                f"`user` must be an id, not {displayed(user)}: `recommend_many` takes several"
            )
        question = _recommend_question(
            user=user,
            strict_user=strict_user,
            likes=likes,
            ratings=ratings,
            without=without,
            exclude=exclude,
            only=only,
            k=k,
            offset=offset,
            where=where,
            fields=fields,
            distinct=distinct,
            temperature=temperature,
            seen=seen,
            model=model,
            heads=heads,
            recent=recent,
            damping=damping,
            diversity=diversity,
            rules=rules,
            explain=explain,
            because=because,
        )
        with self._question() as build:
            return recommend(build, question)

    def recommend_many(self, users: Iterable[Id], **options: Any) -> list[Ranking]:
        """Recommend items to several users: a ranking for each of them, in this order, as
        `recommend` gives it. All are answered by the same build.

        users: their ids. options: those of `recommend`, but `user`; the same for all.

        `recommend_all` is faster for very many users, and has no reasons. Raises `QkvError` for an
        argument that cannot be used, and with `strict_user` for an unknown user.
        """
        from qkvsearch.rank.recommend import recommend

        known = [field.name for field in fields_of(RecommendQuestion) if field.name != "user"]
        for name in options.keys() - set(known):
            hint = suggest(name, known)
            raise TypeError(f"recommend_many() got an unexpected keyword argument {name!r}{hint}")
        questions = [_recommend_question(user=user, **options) for user in id_list("users", users)]
        with self._question() as build:
            return [recommend(build, question) for question in questions]

    @checked_arguments
    def recommend_all(
        self,
        path: str | Path | None = None,
        *,
        k: int = 10,
        where: Where | None = None,
        only: Iterable[Id] | None = None,
        seen: bool = False,
        model: str = "preferences",
        heads: str | Iterable[str] | None = None,
        recent: float | None = None,
        damping: float = 0.0,
        rules: bool = True,
        fields: str | Iterable[str] = (),
        format: str | None = None,
        raw: bool = False,
        progress: Progress | None = None,
    ) -> AllRecommendations:
        """Recommend to all users, block by block: `recommend_all(k=3).to_frame()` is a table with
        the columns user, rank, id, title and score. The notes say how many recommendations are
        weak.

        path: write the table to this .parquet, .csv or .jsonl file instead, however long it is.
        format: "parquet", "csv" or "jsonl", if the name of the file does not say it.
        raw: in CSV, do not put an apostrophe before texts that a spreadsheet would run as formulas.
        progress: called with the name of a step, the amount done and the total.

        The other arguments are those of `recommend`. Raises `QkvError` for an argument that cannot
        be used.
        """
        from qkvsearch.rank.recommend import recommend_all

        if path is None and (format is not None or raw):
            raise QkvError("`format` and `raw` are of a file: give a `path`, or leave them out")
        question = RecommendQuestion(
            k=k,
            where=where,
            only=None if only is None else id_list("only", only),
            seen=seen,
            model=model,
            heads=head_names(heads),
            recent=recent,
            damping=damping,
            rules=rules,
            fields=check_names("fields", fields),
        )
        with self._question() as build:
            file = None if path is None else Path(path)
            return recommend_all(build, question, file, format, raw, progress)

    def similar(
        self,
        items: Id | Iterable[Id],
        *,
        exclude: Id | Iterable[Id] = (),
        k: int = 10,
        where: Where | None = None,
        fields: str | Iterable[str] = (),
        distinct: str | None = None,
        offset: int = 0,
        temperature: float | None = None,
    ) -> Ranking:
        """Rank the neighbours of an item, by its users and its texts; of several items, by the mean
        of their keys. These items and those in `exclude` are left out. The other arguments are
        those of `search`. Raises `QkvError`.
        """
        from qkvsearch.rank.similar import similar

        question = SimilarQuestion(
            items=id_list("items", items),
            exclude=id_list("exclude", exclude),
            k=k,
            offset=offset,
            where=where,
            fields=check_names("fields", fields),
            distinct=distinct,
            temperature=temperature,
        )
        with self._question() as build:
            return similar(build, question)

    def show(self, item: Any) -> dict[str, Any]:
        """Return one item by id or title: all its columns, and `users`, the number of users who
        interacted with it. `original`, if any, has the cells that are not shown as they were in the
        file, by column, as they were there. Raises `UnknownIdError`.
        """
        from qkvsearch.engine.rows import item_card

        check_id("item", item)
        with self._question() as build:
            return item_card(build.histories, build.catalog.titles.item_position(item))

    def history(self, user: Any, *, k: int | None = None, offset: int = 0) -> Listing:
        """Return a user's interactions, the latest first: each item with its rating, time and
        confidence, and whether it was recorded since the build. The notes name recorded items that
        are not in the catalog. The listing has `k` rows, all by default, from row `offset` on.
        Raises `UnknownIdError`.
        """
        from qkvsearch.learn.recording import history_rows

        check_page(k, offset)
        with self._question() as build:
            return history_rows(build.histories, user).page(k, offset)

    def records(self, user: Any = None, *, k: int | None = None, offset: int = 0) -> Listing:
        """Return the recorded interactions of all users or of one, the last first: each with its
        `number`, the `batch` that one `undo_record` removes, and whether the build has `learned`
        from it. The listing has `k` rows, all by default, from row `offset` on. Raises
        `UnknownIdError`.
        """
        from qkvsearch.learn.recording import record_rows

        check_page(k, offset)
        if user is not None:
            check_id("user", user)
        with self._question() as build:
            return record_rows(build.snapshot, user, k, offset)

    @checked_arguments
    def searches(
        self, *, only: str | None = None, k: int | None = None, offset: int = 0
    ) -> Listing:
        """Return what people searched for, the most frequent queries first: how often, the hits of
        the last time, clicks, and what would help. This is read from the log that `serve
        --log-searches` writes beside the workspace. A log that is not there is empty.

        only: "no_hits", or "no_clicks" for queries whose first three hits nobody clicked on. The
        listing has `k` rows, all by default, from row `offset` on.
        """
        from qkvsearch.evaluation.clicks.queries import PROBLEMS, query_rows
        from qkvsearch.store.logged_searches import read_log

        check_page(k, offset)
        require(only is None or only in PROBLEMS, "only", only, f"one of {', '.join(PROBLEMS)}")
        log = read_log(self.workspace.path)
        with self._question() as build:
            catalog = build.catalog

            def titles(items: Sequence[str]) -> dict[str, str]:
                found = catalog.ids_and_titles(items)
                return {item: title for item, (_, title) in found.items()}

            return query_rows(log, titles, only=only, k=k, offset=offset)

    @checked_arguments
    def attend(
        self,
        text: str,
        mask: str = "none",
        layer: int | None = None,
        head: int | None = None,
        *,
        hide: Hidden = (),
    ) -> AttentionMap:
        """Return the attention of a text to itself: of a transformer, or of its words' vectors.

        mask: "none", "padding" or "causal". hide: words that nothing attends to either, or their
        positions from 0. layer, head: counted from 0; by default the last layer, and the mean of
        all heads. Raises `QkvError` where the encoder has no layers, and for a word that is not in
        the text.
        """
        for name, index in (("layer", layer), ("head", head)):
            require(index is None or is_whole(index), name, index, "a whole number")
        with self._question() as build:
            encoder = build.models.encoder(build.models.main_head)
            return encoder.attend(text, mask, hide).map(layer, head)

    @checked_arguments
    def encode(self, texts: str | Iterable[str], *, head: str | None = None) -> np.ndarray:
        """Return the embeddings of texts by the encoder of a dense head, by default the main one:
        float32 (n, d), rows of length 1, or zeros for a text without a known word. Raises
        `QkvError`.
        """
        from qkvsearch.engine.export_embeddings import dense_head

        with self._question() as build:
            encoder = build.models.encoder(dense_head(build.models, head))
            return encoder.encode_many(check_names("texts", texts))

    @checked_arguments
    @one_blas_thread()
    def map(
        self, head: str | None = None, *, query: str | None = None, user: Any = None, k: int = 10
    ) -> ItemMap:
        """Return the items in two dimensions, by the keys of a dense head, by default the main one,
        or with "collaborative" by the embeddings learned from interactions. A `query` or a `user`
        is placed among them, with its `k` best items by this head. Raises `QkvError`.
        """
        from qkvsearch.engine.projection import with_query, with_user

        check(k=k)
        if query is not None and user is not None:
            raise QkvError("a map has the place of one: leave out `query` or `user`")
        with self._question() as build:
            item_map = self._maps.of(build, head)
            if query is not None:
                return with_query(item_map, build, query, k)
            if user is not None:
                return with_user(item_map, build, user, k)
            return item_map

    @checked_arguments
    def export_embeddings(
        self,
        path: str | Path,
        *,
        of: str = "items",
        head: str | None = None,
        progress: Progress | None = None,
    ) -> ExportedEmbeddings:
        """Write embeddings and ids to a .safetensors, .parquet or .npz file, atomically.

        of: "items" for the keys of a dense `head`, by default the main one, or with "collaborative"
        for the item embeddings learned from interactions; "users" for the user embeddings, solved
        from their current histories. Raises `QkvError`.
        """
        from qkvsearch.engine.export_embeddings import export_embeddings

        with self._question() as build:
            return export_embeddings(build.recommender, Path(path), of, head, progress)

    @checked_arguments
    def info(self, *, verify: bool = False) -> dict[str, Any]:
        """Return facts about the build: when it was made, from what, and its models.

        verify: compare every file of the workspace, previous builds included, with its checksum.
        Raises `DamagedError`, which lists the damaged files, and says what to do.
        """
        from qkvsearch.engine.info import build_facts
        from qkvsearch.engine.info import verify as verify_files

        checked = {"checksums": verify_files(self.workspace)} if verify else {}
        with self._question() as build:
            facts = build_facts(build.snapshot)
        return {"workspace": str(self.workspace.path), **facts, **checked}

    @checked_arguments
    def builds(self) -> Listing:
        """List the builds that `rollback` can return to, the latest first: `id`, when it was
        `created`, by which `command`, the number of `items` and `segments`, the `megabytes` that it
        added on disk, and whether it is `current`. The notes name damaged builds.
        """
        from qkvsearch.engine.info import build_rows

        return build_rows(self.workspace)

    # --- changes ---

    @checked_arguments
    def record(
        self,
        user: Id,
        item: Id,
        rating: float | None = None,
        *,
        weight: float | None = None,
        event: str | None = None,
    ) -> Listing:
        """Write one more interaction to disk, and return it with its `batch`. The next `recommend`
        counts it, without a rebuild.

        A new user is created. If a pair is recorded again, the latest counts; without a rating it
        keeps its previous one, or counts in full. A log has ratings, or weights, such as
        quantities, of which a negative one takes back; the other is refused. Recorded interactions
        stay when the workspace is built again.

        event: what it is, such as "purchase", where the log has events. It has the weight that the
        build gave such events; with a `weight`, such as a quantity, the product of both.

        Raises `UnknownIdError` for an item that is not in the catalog, and `QkvError` for a rating
        or a weight that cannot be used, and for an event without a weight.
        """
        from qkvsearch.learn.recording import NewRow, Recording

        row = NewRow(user, item, rating, weight, event)
        with self._question() as build:
            return Recording(self.workspace, build.histories).record([row])

    @checked_arguments
    def record_many(
        self, source: Source, columns: Columns | None = None, *, again: bool = False
    ) -> Listing:
        """Write the interactions of a file or frame to disk, all or none, and return them with
        their `batch`. The notes count skipped rows. `learn` makes them a part of the build.

        again: record the same content once more. Raises `QkvError` if no row is usable, and for
        content that is recorded already.
        """
        from qkvsearch.learn.record_file import record_file
        from qkvsearch.learn.recording import Recording

        with self._question() as build:
            return record_file(Recording(self.workspace, build.histories), source, columns, again)

    @checked_arguments
    def undo_record(self, batch: int | None = None) -> Listing:
        """Delete a batch, which one `record` or `record_many` wrote, and return it: by default the
        last one that this user of the operating system recorded, and not over HTTP. The next call
        deletes the one before. Raises `QkvError` if there is none, or if the build has learned from
        it.
        """
        from qkvsearch.learn.recording import Recording

        with self._question() as build:
            return Recording(self.workspace, build.histories).undo(batch)

    def rules(self) -> Listing:
        """List the owner's rules by their `number`: the `kind`, pin, bury or boost, its `query` and
        `items`, or its condition (`where`) and what it adds (`by`), its `name`, and the `problem`
        for which the build skips it or a part of it, if any. Raises `DamagedError`.
        """
        from qkvsearch.learn.rule_changes import rule_rows

        with self._question() as build:
            return rule_rows(self.workspace, build)

    @checked_arguments
    def add_rule(
        self,
        *,
        pin: str | None = None,
        bury: str | None = None,
        items: Id | Iterable[Id] = (),
        boost: str | None = None,
        by: float | None = None,
        name: str | None = None,
    ) -> Listing:
        """Store a rule, and return it. It counts in the next question, and stays when items are
        added or the workspace is built again. `search`, `recommend` and `compare` apply the rules
        of the workspace, and leave them out with `rules=False`; `evaluate_search` counts them too.

        pin, bury: a query, in any case and with accents or without. Its `items`, ids or titles,
            come first in this order, also where nothing else is found, or last. `where` and other
            filters of a question are obeyed.
        boost: a condition as in `where`. The scores of items for which it holds are higher by `by`
            standard deviations: of the heads in a search, so that `by` itself is added, and of all
            scores in a recommendation and for an empty query. No item becomes a hit by that.
        name: what the reasons of a hit call it, by default the condition.

        A rule whose items or columns the catalog lacks is skipped, and `notes` of answers say so.
        Raises `QkvError` for what cannot be used, and where another rule does the same.
        """
        from qkvsearch.learn.rule_changes import added_rule

        with self._question() as build:
            return added_rule(
                self.workspace, build, pin, bury, id_list("items", items), boost, by, name
            )

    @checked_arguments
    def remove_rule(self, number: int) -> Listing:
        """Remove a rule by its number, and return it. Raises `QkvError` for an unknown number."""
        from qkvsearch.learn.rule_changes import removed_rule

        return removed_rule(self.workspace, number)

    @checked_arguments
    def add(
        self,
        items: Source,
        columns: Columns | None = None,
        *,
        join: Source | None = None,
        update: bool = False,
        progress: Progress | None = None,
    ) -> Revision:
        """Add the items of a file or frame without a rebuild. They replace items with the same
        ids. Raises `QkvError`.

        join: tables that add columns to these items, by id, as in a build. update: only change the
        columns that the file has, of items that are there; all their other cells stay. An empty
        cell empties. A new id is an `UnknownIdError`, and nothing is changed.
        """
        from qkvsearch.learn.add import add_items
        from qkvsearch.learn.change_rules import REPLACE, UPDATE

        rule = UPDATE if update else REPLACE
        return self._changed(add_items, items, columns, progress, join=join, rule=rule)

    @checked_arguments
    def sync(
        self,
        items: Source,
        columns: Columns | None = None,
        *,
        join: Source | None = None,
        keep_missing: bool = False,
        yes: bool = False,
        progress: Progress | None = None,
    ) -> Synced:
        """Make the items those of a file or frame, such as a nightly export, in one new build: add
        what is new, change what differs, and remove what the file lacks, with its interactions.

        Return how many items that were; where nothing differs, no build is made. A column that the
        file lacks stays as it is. join: tables that add columns to these items, by id, as in a
        build. keep_missing: remove none. yes: also remove more than a fifth of the items, which is
        a `QkvError` otherwise. Raises `QkvError`.
        """
        from qkvsearch.learn.sync import sync_items

        return self._changed(
            sync_items,
            items,
            columns,
            join=join,
            keep_missing=keep_missing,
            yes=yes,
            progress=progress,
        )

    @checked_arguments
    def remove(
        self,
        items: Id | Iterable[Id] = (),
        *,
        where: Where | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Revision:
        """Remove items with their interactions, by id, title or condition; if one of them is
        unknown, none. dry_run: change nothing, only return what would be removed.
        """
        from qkvsearch.learn.add import remove_items

        return self._changed(
            remove_items, id_list("items", items), where=where, dry_run=dry_run, progress=progress
        )

    @checked_arguments
    def learn(self, *, progress: Progress | None = None) -> Learned:
        """Learn preferences, ratings and the next-item model again, from the log and the records
        since, with the current settings. This does not need the files of the build. Records stay,
        so that `rollback` loses none. Raises `WorkspaceError`.
        """
        from qkvsearch.learn.learn_again import learn

        return self._changed(learn, progress=progress)

    @checked_arguments
    def compact(self, *, drop_builds: bool = False, progress: Progress | None = None) -> Merged:
        """Merge the segments that `add` and `remove` left; answers stay the same to the last bit.

        drop_builds: also remove all previous builds, so that `rollback` has none. Builds that
        others have open are removed by the next change. Raises `WorkspaceError`.
        """
        from qkvsearch.learn.merge import merge_segments

        with self.workspace.writing("compact"):
            done = self._changed(merge_segments, progress=progress)
            if drop_builds:  # after this engine has closed them
                done = replace(done, dropped=self.workspace.drop_builds())
        return done

    @checked_arguments
    def rollback(self, id: str | None = None) -> BuildEntry:
        """Return to the previous build, or to the build `id`, as listed by `builds`. Later builds
        and records stay. Raises `WorkspaceError`, and `DamagedError` for a damaged build.
        """
        return self._changed(Workspace.rollback, id)

    @checked_arguments
    def forget(
        self, user: Id, *, dry_run: bool = False, progress: Progress | None = None
    ) -> Forgotten:
        """Erase a user's data: their part of the log, their records, and every previous build, even
        if others have it open. Afterwards no file of the workspace contains the id. The notes
        describe what stays. dry_run: change nothing. Raises `UnknownIdError`.
        """
        from qkvsearch.learn.erase import forget_user

        return self._changed(
            forget_user, check_id("user", user), dry_run=dry_run, progress=progress
        )

    def _changed(
        self, change: Callable[Concatenate[Workspace, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a change, and answer from its result afterwards. Where that cannot be opened, the
        change is done all the same: the log says so, and the next question tries again.
        """
        done = change(self.workspace, *args, **kwargs)
        try:
            self._reopen()
        except (OSError, QkvError) as error:
            self._must_open = True
            log.warning("the change is done, but its build could not be opened: %s", error)
        return done

    # --- measurements ---

    @checked_arguments
    def evaluate_search(
        self,
        queries: str | Path | Queries | None = None,
        qrels: str | Path | Judgements | None = None,
        *,
        from_clicks: bool = False,
        heads: str | Iterable[str] | None = None,
        rules: bool = True,
        random_state: int = 0,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Measure search by judged queries, by clicks, or by queries made of the catalog.

        queries, qrels: files; or the texts of queries by id, and the grades of judged items by
        query. With them: nDCG@10, MRR@10 and Recall@100, compared with the lexical head alone. The
        notes describe what is left out.

        from_clicks: instead by the clicks in the log of searches: a `ClickEvaluation`, with what it
        assumes.

        Otherwise: a `MadeEvaluation`, with how often the right item is first by kind of query,
        examples, and what such queries cannot measure. random_state: which queries are made.

        rules: whether the owner's rules count. Where there are any, the same heads without them are
        one more baseline for judged queries and clicks. Baselines have no rules.

        Raises `QkvError`.
        """
        check(random_state=random_state)
        names = head_names(heads)
        if from_clicks and (queries is not None or qrels is not None):
            raise QkvError("either `from_clicks`, or `queries` and `qrels`")
        if (queries is None) != (qrels is None):
            raise QkvError(
                "judged queries are `queries` and `qrels`: give both, or neither for queries made "
                "of the catalog"
            )
        with self._question() as current:
            build = current if rules else current.without_rules()
            if from_clicks:
                from qkvsearch.evaluation.clicks.evaluated import evaluate_build

                return evaluate_build(build, self.workspace.path, names, progress)
            if queries is None or qrels is None:
                from qkvsearch.evaluation.made_queries.report import evaluate_made_queries

                return evaluate_made_queries(
                    build, heads=names, random_state=random_state, progress=progress
                )
            from qkvsearch.evaluation.search_protocol import evaluate_heads

            def ask(query: str, *, k: int, heads: list[str] | None, rules: bool = True) -> Ranking:
                return search(build, SearchQuestion(query=query, k=k, heads=heads, rules=rules))

            ids, has_rules = build.catalog.ids("items"), build.rules is not None
            return evaluate_heads(ask, queries, qrels, names, ids, progress, has_rules)

    @checked_arguments
    def compare(
        self,
        before: str | None = None,
        after: str | None = None,
        *,
        queries: str | Path | Queries | Sequence[str] | None = None,
        heads: str | Iterable[str] | None = None,
        before_heads: str | Iterable[str] | None = None,
        rules: bool = True,
        before_rules: bool | None = None,
        random_state: int = 0,
        progress: Progress | None = None,
    ) -> Comparison:
        """Compare the ten hits of queries in two builds: how many stayed, which queries have other
        hits, and which items rose and fell by which reason. Nothing is changed.

        before, after: builds, as `builds` lists them. By default `after` is the current build, and
            `before` the one before it, or the current one where only heads or rules differ. After a
            rollback to the first build, `before` is the newest one.
        queries: a file, with a text or id<TAB>text in each line; or texts, by id or in a list. By
            default queries are made of the catalog of `before`, by `random_state`.
        heads: the heads by which `after` answers, as in `search`; before_heads: those of `before`.
        rules: whether the owner's rules apply to `after`; before_rules: to `before`, by default as
            for `after`. The rules are those of today on both sides.

        The notes describe what is left out. Raises `QkvError` for what cannot be used, and
        `WorkspaceError` for an unknown build.
        """
        from qkvsearch.evaluation.comparison.compared import compare_sides, queries_for
        from qkvsearch.evaluation.comparison.sides import Side

        check(random_state=random_state)
        current = self.current_build.snapshot.name
        if after is None:
            after = current
        if before is None:
            has_heads = heads is not None or before_heads is not None
            are_other_rules = before_rules is not None and before_rules != rules
            is_same_build = has_heads or are_other_rules
            before = current if is_same_build else self.workspace.previous_build(current)
        with self._named_build(before) as earlier, self._named_build(after) as later:
            texts = queries_for(earlier, queries, random_state)
            old = Side(
                earlier,
                head_names(before_heads, "before_heads"),
                rules=rules if before_rules is None else before_rules,
            )
            new = Side(later, head_names(heads), rules=rules)
            return compare_sides(old, new, texts, progress)

    @checked_arguments
    def evaluate_recommend(
        self,
        protocol: str = "random",
        *,
        k: int = 10,
        users: int | None = None,
        random_state: int = 0,
        next_item: bool = False,
        test: Source | None = None,
        recommendations: Others = (),
        progress: Progress | None = None,
    ) -> Evaluation:
        """Evaluate recommendations on held-out interactions, compared with simpler methods.

        protocol: "random", "leave-last-out", "time" or "strong". The models learn again from the
        training part of the log, with the settings that `tune` found, if any. next_item: also train
        and evaluate the next-item model (minutes). users: how many users to evaluate, drawn at
        random, by default 2,000; 0 for all.

        test: your own held-out interactions instead of a `protocol`: a file or a frame like the log
        of the build. The build is judged as it is, since its log is the training part; by default
        for all users of the test. recommendations: somebody else's, judged beside ours by the same
        `test`. A file or several, each with its own name; or files and frames by other names. They
        have the columns user, rank and id, as `recommend_all` writes them.

        The notes describe what is left out. Raises `QkvError`.
        """
        from qkvsearch.evaluation.recommend_protocol import evaluate_build

        check_whole("k", k)
        check(random_state=random_state, users=users)
        with self._question() as build:
            evaluation = evaluate_build(
                build.models,
                protocol,
                k=k,
                users=users,
                random_state=random_state,
                next_item=next_item,
                test=test,
                others=recommendations,
                progress=progress,
            )
        n_recorded = build.snapshot.records.count()
        n_boosts = 0 if build.rules is None else len(build.rules.boosts)
        left_out = [(n_recorded, "recorded interaction"), (n_boosts, "owner's boost")]
        notes = [f"Left out: {quantity(n, what)}." for n, what in left_out if n]
        return replace(evaluation, notes=[*notes, *evaluation.notes])

    @checked_arguments
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
        """Search for settings of the recommender that suit the log. If they are better than those
        in use, learn the preferences with them.

        trials: how many random settings to try, by default 27. minutes: the time limit, by default
        5; none if `trials` is given. callback: called with all trials after each one. Raises
        `QkvError`.
        """
        from qkvsearch.evaluation import tuning as evaluation
        from qkvsearch.heads.component import TUNED

        check_whole("k", k)
        check(trials=trials, minutes=minutes, random_state=random_state)
        with self._question() as build:
            models = build.models
            tuning = evaluation.tune(
                models.log("learn from"),
                protocol,
                k=k,
                trials=trials or TRIALS,
                minutes=MINUTES if minutes is None and trials is None else minutes,
                keys=np.asarray(models.dense_keys(models.main_head).vectors),
                in_use=models.snapshot.facts.get(TUNED, {}).get("settings"),
                random_state=random_state,
                callback=callback,
                progress=progress,
            )
        if tuning.worthwhile:
            fact = {"protocol": protocol, "seed": random_state, "settings": tuning.settings}
            from qkvsearch.learn.learn_again import learn_preferences

            self._changed(learn_preferences, fact if tuning.settings else None, progress)
        return tuning

    @checked_arguments
    def tune_search(
        self,
        *,
        minutes: float | None = None,
        random_state: int = 0,
        queries: str | Path | Queries | None = None,
        qrels: str | Path | Judgements | None = None,
        progress: Progress | None = None,
    ) -> SearchTuning:
        """Search for settings of searches by queries that the catalog makes of itself. If they are
        better than those in use by more than chance, use them.

        The settings are the weights of heads and of text columns, the second pass, and words of the
        same family. minutes: the time limit, by default 5. queries, qrels: judged queries, as in
        `evaluate_search`, which are asked beside the made ones. Raises `QkvError`.
        """
        from qkvsearch.evaluation.search_tuning import tune_search
        from qkvsearch.learn.tuned_search import use_in_search
        from qkvsearch.tables.judgements import judged_by

        check(minutes=minutes, random_state=random_state)
        if (queries is None) != (qrels is None):
            raise QkvError("`queries` and `qrels` go together: give both, or none")
        judged = None
        if queries is not None and qrels is not None:
            judged = judged_by(queries, qrels)
        with self._question() as build:
            tuning = tune_search(
                build,
                judged,
                minutes=MINUTES if minutes is None else minutes,
                random_state=random_state,
                progress=progress,
            )
        if tuning.worthwhile:
            self._changed(use_in_search, tuning.found, random_state, tuning.keys, progress)
        return tuning

    @checked_arguments
    def reset_tuning(self, *, progress: Progress | None = None) -> list[str]:
        """Return to the default settings of recommendations and searches.

        Return which of them had others. Raises `WorkspaceError`.
        """
        from qkvsearch.learn.learn_again import reset_tuning

        return self._changed(reset_tuning, progress)


@checked_arguments
def build(
    path: str | Path,
    source: Source | None = None,
    *,
    items: Source | None = None,
    interactions: Source | None = None,
    join: Source | None = None,
    columns: Columns | None = None,
    encoder: str = "auto",
    language: str = "auto",
    next_item: bool = False,
    synonyms: str | Path | Synonyms | None = None,
    keys: str | None = None,
    engine: str | None = None,
    wait: float | None = None,
    progress: Progress | None = None,
) -> Engine:
    """Build a workspace at `path` from files or data frames, and open it.

    source: the folder of a known data set, `sample:movies`, `sample:videos`, or one file. items,
    interactions: a file, a pandas frame, or a list of them each; `book.xlsx#*` is all sheets; items
    may be a folder or a pattern of .srt, .vtt, .txt, .md and .html, one item a file. join: tables
    that add columns to the items, by id. columns: the names of columns that
    cannot be recognized. encoder: a name, the folder of a model, "auto", the best one for the
    texts' languages that is installed and fast enough, or "best", all that are installed for them,
    however long they take. language: of the texts, for stems and stop words: an ISO code such as
    "de", Snowball's name, "none", or "auto", detected. next_item: also train the next-item model.
    synonyms: a file with one rule per line (`sweater, jumper`; in one direction `tv =>
    television`), or a mapping from texts to their synonyms. keys: `milvus:URI`, a server or a file
    of Milvus Lite that ends in .db, to store the items' keys there instead of in the workspace.
    engine: "spark", the cores of this machine, or "spark://HOST:PORT", a cluster that reads
    `interactions` from a path. wait: as in `Engine`. progress: called with the name of a step, the
    amount done and the total. Raises `QkvError`.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> engine = build(folder, "sample:videos")
    >>> engine.search("sourdough bread", k=1)[0].title
    'Sourdough from nothing, day one to day nine'
    """
    from qkvsearch.learn.builder import build_workspace, reading
    from qkvsearch.tables.synonyms import as_synonyms

    parsed_synonyms = as_synonyms(synonyms)
    workspace = Workspace(path, wait=wait)
    with reading(source, items, interactions, columns, engine, join) as dataset:
        build_workspace(
            workspace,
            dataset,
            encoder=encoder,
            language=language,
            next_item=next_item,
            synonyms=parsed_synonyms,
            keys=keys,
            progress=progress,
        )
    return Engine(path, wait=wait)


@checked_arguments
def repair(
    path: str | Path,
    *,
    wait: float | None = None,
    notify: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> Repaired:
    """Repair a damaged workspace: derive damaged files again from undamaged ones, and list those
    that are lost. Raises `WorkspaceError` if no build can be saved.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> build(folder, "sample:videos").close()
    >>> repair(folder)
    Repaired(rebuilt=[], lost=[], notes=[])
    """
    from qkvsearch.learn.repair import repair as repair_workspace

    workspace = Workspace(path, wait=wait, notify=notify)
    if not (workspace.path / BUILDS_FOLDER).is_dir():
        workspace.open().close()  # raises the error for a missing workspace
    return repair_workspace(workspace, progress)
