"""An opened workspace: search, recommend, similar, attend, change, measure and tune, in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from qkvsearch._utils.validation import check_id
from qkvsearch.engine.index import Index
from qkvsearch.errors import DamagedError, QkvError
from qkvsearch.search.candidates import as_list, id_list
from qkvsearch.storage import Workspace
from qkvsearch.storage.segments import BUILDS_FOLDER

if TYPE_CHECKING:
    from qkvsearch._utils.progress import Progress
    from qkvsearch.data.columns import Columns
    from qkvsearch.data.ids import Id
    from qkvsearch.data.judgements import Judgements, Queries
    from qkvsearch.data.readers import Source
    from qkvsearch.data.synonyms import Synonyms
    from qkvsearch.engine.rows import ItemRows, UserRows
    from qkvsearch.evaluation.results import Evaluation
    from qkvsearch.evaluation.tuning import Trial, Tuning
    from qkvsearch.index import StoredModels
    from qkvsearch.index.add import Revision
    from qkvsearch.index.erase import Forgotten
    from qkvsearch.index.learn import Learned
    from qkvsearch.index.merge import Merged
    from qkvsearch.index.repair import Repaired
    from qkvsearch.query.where import Where
    from qkvsearch.recommend.recording import Recording
    from qkvsearch.search.listing import Listing
    from qkvsearch.search.text_search import TextSearch
    from qkvsearch.storage import BuildEntry, Snapshot, StoredCatalog

P = ParamSpec("P")
T = TypeVar("T")


def _question(
    question: Callable[Concatenate[Index, P], T],
) -> Callable[Concatenate[Engine, P], T]:
    """Return the method of `Engine` that asks `question` of one index from its beginning to its
    end, whatever is published meanwhile.
    """

    @wraps(question)
    def ask(engine: Engine, /, *args: P.args, **kwargs: P.kwargs) -> T:
        index = engine.index
        try:
            return question(index, *args, **kwargs)
        except DamagedError as error:
            from qkvsearch.engine.info import explained

            raise explained(error, index.snapshot) from None

    return ask


class Engine:
    """The workspace at `path`, ready to answer from the build that is current when it is opened,
    as long as the engine lives, whatever is published later; with `follow` each question is
    answered from the build that is current when it is asked.

    trust: read files without comparing them with their checksums first. wait: for how many seconds
    a change waits for another writer of the workspace, by default as long as it takes; `say` is
    told whom it waits for. Engines may be asked by several threads. Raises `WorkspaceError`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        follow: bool = False,
        trust: bool = False,
        wait: float | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.workspace = Workspace(path, trust=trust, wait=wait, notify=say)
        self._follows, self._lock = follow, Lock()
        self._open()

    def _open(self) -> None:
        # Looked at first: what is published while a build is opened is noticed next time.
        state = self.workspace.state()
        self._index = Index(self.workspace)
        self._state = state

    def _reopen(self) -> None:
        """The newest build from now on; a question that runs keeps the one it began with."""
        with self._lock:
            self._open()

    @property
    def index(self) -> Index:
        """The build that the next question is answered from."""
        if self._follows:
            with self._lock:
                if self.workspace.state() != self._state:
                    self._open()
        return self._index

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the workspace's files."""
        self._index.close()

    def __repr__(self) -> str:
        return repr(self.index)

    @property
    def snapshot(self) -> Snapshot:
        """The build's files."""
        return self.index.snapshot

    @property
    def catalog(self) -> StoredCatalog:
        """Look-ups in the catalog."""
        return self.index.catalog

    @property
    def models(self) -> StoredModels:
        """What was learned."""
        return self.index.models

    @property
    def texts(self) -> TextSearch:
        """The heads that a text is answered by."""
        return self.index.texts

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return self.index.n_items

    @property
    def items(self) -> ItemRows:
        """The catalog: `items["m042"]` is a row by column, `items.to_frame()` all of them."""
        return self.index.items

    @property
    def users(self) -> UserRows:
        """The users, those recorded since the build as well, in the same way as `items`."""
        return self.index.users

    # --- questions ---

    search = _question(Index.search)
    head = _question(Index.head)
    recommend = _question(Index.recommend)
    recommend_all = _question(Index.recommend_all)
    similar = _question(Index.similar)
    similar_users = _question(Index.similar_users)
    show = _question(Index.show)
    history = _question(Index.history)
    records = _question(Index.records)
    attend = _question(Index.attend)
    encode = _question(Index.encode)
    map = _question(Index.map)
    export_embeddings = _question(Index.export_embeddings)
    _facts = _question(Index.info)

    def info(self, *, verify: bool = False) -> dict[str, Any]:
        """What was built, when, and from what. With `verify` every file of the workspace, of former
        builds too, is compared with its checksum; raises `DamagedError`, which lists those that
        are not as they were written, what still works, and what to do.
        """
        from qkvsearch.engine.info import verified

        checked = {"checksums": verified(self.workspace)} if verify else {}
        return {**self._facts(), **checked}

    def builds(self) -> Listing:
        """The builds that `rollback` can return to, the latest first: the `id` of each, when it was
        `created` and by which `command`, its `items`, of how many `segments` it is, how many
        `megabytes` it added on disk, and which one is `current`. The notes name damaged ones.
        """
        from qkvsearch.engine.info import build_rows

        return build_rows(self.workspace)

    # --- changes ---

    def record(self, user: Id, item: Id, rating: float | None = None) -> Listing:
        """One more interaction, on disk when this returns. The next `recommend` knows it, by an
        exact solve on the longer history, without a rebuild. What was recorded comes back.

        A new user is created; of repeated pairs the latest counts; without a rating the interaction
        keeps the one it had, or counts in full. Where the log has weights in place of ratings,
        `rating` is a weight, and a negative one takes back. Recorded interactions stay when the
        workspace is built again. Raises `UnknownIdError` for an item that is not in the catalog,
        `QkvError` for a rating outside the scale.
        """
        return self._recording().record(user, item, rating)

    def record_many(self, source: Source, columns: Columns | None = None) -> Listing:
        """The interactions of a file or frame, all of them on disk when this returns, or none. They
        come back; the notes say what became of every row. `learn` makes them a part of the build.
        Raises `QkvError` where no row can be used.
        """
        from qkvsearch.recommend.recording import record_file

        return record_file(self._recording(), source, columns)

    def undo_record(self) -> Listing:
        """Take back what the last `record` or `record_many` wrote; that comes back. Again, it takes
        back what was recorded before. Raises `QkvError` where nothing is left, or where the build
        has learned from it.
        """
        return self._recording().undo()

    def _recording(self) -> Recording:
        from qkvsearch.recommend.recording import Recording

        return Recording(self.workspace, self.index.histories)

    def add(
        self, items: Source, columns: Columns | None = None, *, progress: Progress | None = None
    ) -> Revision:
        """Items of a file or frame join the workspace without a rebuild, in the place of those with
        their ids; this engine finds them at once. Raises `QkvError`.
        """
        from qkvsearch.index.add import add_items

        return self._changed(add_items, items, columns, progress)

    def remove(
        self,
        items: Id | Iterable[Id] = (),
        *,
        where: Where | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Revision:
        """Items leave the workspace with their interactions, by id or title or by a condition; all
        of them or, where one is unknown, none. With `dry_run` nothing changes: the revision says
        what would.
        """
        from qkvsearch.index.add import remove_items

        return self._changed(
            remove_items, id_list("items", items), where=where, dry_run=dry_run, progress=progress
        )

    def learn(self, *, progress: Progress | None = None) -> Learned:
        """Preferences, ratings and what comes next are learned again, from the log and what was
        recorded since, with the settings in use; no file of the build is needed, and texts are not
        read again. Records stay, so that `rollback` loses none. Raises `WorkspaceError`.
        """
        from qkvsearch.index.learn import learn

        return self._changed(learn, progress=progress)

    def compact(self, *, drop_builds: bool = False, progress: Progress | None = None) -> Merged:
        """Merge what `add` and `remove` left into one base; answers stay as they are to the last
        bit. drop_builds: remove former builds too, but for those that others have open, which the
        next change removes; `rollback` then has none. Raises `WorkspaceError`.
        """
        from qkvsearch.index.merge import merge_segments

        with self.workspace.writing("compact"):
            done = self._changed(merge_segments, progress=progress)
            if drop_builds:  # once this engine has let go of them
                done = replace(done, dropped=self.workspace.drop_builds())
        return done

    def rollback(self, id: str | None = None) -> BuildEntry:
        """Return to the build that was current before, or to the one of this `id`, as `builds`
        lists them; those after it stay. What was recorded stays recorded. Raises `WorkspaceError`,
        `DamagedError` for a build that is damaged.
        """
        return self._changed(Workspace.rollback, id)

    def forget(
        self, user: Id, *, dry_run: bool = False, progress: Progress | None = None
    ) -> Forgotten:
        """Delete a person: what the log and the records have of them, and every former build,
        whoever has it open. Afterwards no file of the workspace holds the id. With `dry_run`
        nothing changes. The notes say what stays. Raises `UnknownIdError`.
        """
        from qkvsearch.index.erase import forget_user

        return self._changed(
            forget_user, check_id("user", user), dry_run=dry_run, progress=progress
        )

    def _changed(
        self, change: Callable[Concatenate[Workspace, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """From now on the engine answers from what is current after the change."""
        done = change(self.workspace, *args, **kwargs)
        self._reopen()
        return done

    # --- measurements ---

    def evaluate_search(
        self,
        queries: str | Path | Queries,
        qrels: str | Path | Judgements | None = None,
        *,
        heads: str | Iterable[str] | None = None,
        against: str | None = None,
        progress: Progress | None = None,
    ) -> Evaluation:
        """nDCG@10, MRR@10 and Recall@100 of search, beside the lexical head alone.

        queries, qrels: files, or query ids to their texts, and to the grade of each judged item.
        The report's `notes` say what the figures leave out, and whether they are training scores:
        "learned_from" is how many of the judged queries the build learned its weights from.

        against: "local" compares in place of judging, where keys are elsewhere (`keys` of `build`):
        how many of the ten best hits are found that this machine would find with all keys in its
        memory, and how far scores differ. `qrels` are not needed then. Raises `QkvError`.
        """
        from qkvsearch.data.judgements import LEARNED_FROM
        from qkvsearch.evaluation.search_protocol import evaluate_heads

        names = None if heads is None else as_list(heads)
        index = self.index
        if against is not None:
            from qkvsearch.engine.measure import evaluate_against

            return evaluate_against(index, against, queries, names, progress)
        if qrels is None:
            raise QkvError("`qrels`: give the right answers, or compare with `against`")
        known = index.snapshot.facts.get(LEARNED_FROM, "")
        return evaluate_heads(index.search, queries, qrels, names, index.items.ids, progress, known)

    def evaluate_recommend(
        self,
        protocol: str = "random",
        *,
        k: int = 10,
        users: int | None = None,
        random_state: int = 0,
        next_item: bool = False,
        engine: str | None = None,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Recommendations judged by interactions held out of training, beside simpler methods.

        protocol: "random", "leave-last-out", "time" or "strong". The models learn anew from the
        train part of the build's log, with the settings that `tune` found, if it did; `next_item`:
        the model of what comes next too (minutes). users: how many are judged, drawn where there
        are more, by default 2,000; 0 for all. engine: where the preferences learn, as in `build`.
        The report's `notes` say what the figures leave out. Raises `QkvError`.
        """
        from qkvsearch.engine import measure

        options = {"protocol": protocol, "next_item": next_item, "progress": progress}
        with measure.learner(engine) as options["estimator"]:
            return measure.evaluate_recommend(self.models, k, random_state, users, **options)

    def tune(
        self,
        protocol: str = "random",
        *,
        k: int = 10,
        trials: int | None = None,
        minutes: float | None = None,
        random_state: int = 0,
        engine: str | None = None,
        callback: Callable[[list[Trial]], None] | None = None,
        progress: Progress | None = None,
    ) -> Tuning:
        """Settings of the recommender that suit the log, searched for and, where they are better,
        put in use: the preferences are learned with them, and this engine answers by them.

        trials: how many random settings, by default 27. minutes: when to be done, by default 5, and
        no limit where `trials` says how long. engine: where the preferences learn, as in `build`.
        `callback` is given all trials after each. Raises
        `QkvError`.
        """
        from qkvsearch.engine import measure

        options = {"protocol": protocol, "callback": callback, "progress": progress}
        with measure.learner(engine) as learner:
            options["estimator"] = learner
            found = measure.search_settings(
                self.models, k, trials, minutes, random_state, **options
            )
            if found.worthwhile:
                kept = {"protocol": protocol, "seed": random_state, "settings": found.settings}
                self._learn_preferences(kept if found.settings else None, progress, learner)
        return found

    def reset_tuning(self, *, progress: Progress | None = None) -> None:
        """Back to the default settings, without a search. Raises `WorkspaceError`."""
        self._learn_preferences(None, progress)

    def _learn_preferences(
        self,
        tuned: dict[str, Any] | None,
        progress: Progress | None,
        estimator: Callable[..., Any] | None = None,
    ) -> None:
        """Anew from the whole log, with what was found or the default settings."""
        from qkvsearch.index.learn import learn_preferences

        self._changed(learn_preferences, tuned, progress, estimator)


def build(
    path: str | Path,
    source: Source | None = None,
    *,
    items: Source | None = None,
    interactions: Source | None = None,
    columns: Columns | None = None,
    encoder: str = "auto",
    language: str = "auto",
    queries: str | Path | Queries | None = None,
    qrels: str | Path | Judgements | None = None,
    next_item: bool = False,
    synonyms: str | Path | Synonyms | None = None,
    keys: str | None = None,
    engine: str | None = None,
    checkpoint: str | Path | None = None,
    wait: float | None = None,
    progress: Progress | None = None,
) -> Engine:
    """Build a workspace at `path` from files or data frames, and open it.

    `source`: a folder of a known data set, `sample:movies`, `sample:videos`, or one file; `items`
    and `interactions`: a file or a pandas frame each, with `columns` where their names say too
    little. `encoder`: a name, a model's folder, or "auto", the best that is installed and quick
    enough. `language`: of the texts, for their endings and stop words: an ISO code such as "de",
    Snowball's name, "none", or "auto", guessed. `queries` with `qrels`: judged queries to learn the
    heads' weights from. `next_item`: also train the model of what comes next. `synonyms`: a file
    with a rule a line (`sweater, jumper` both ways, `tv => television` one way), or texts to what
    each is called as well. `keys`: where the items' keys go, as milvus:URI, a server or a file of
    Milvus Lite that ends in .db; by default to the workspace. `engine`: "spark", the cores of this
    machine, or "spark://HOST:PORT", a cluster that reads `interactions` from a path; an interrupted
    build goes on from `checkpoint`, a folder that all of it share, by default in the workspace.
    `wait`: as in `Engine`. `progress` is
    called as (what is done, how much is done, how much there is). Raises `QkvError`.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> engine = build(folder, "sample:videos")
    >>> engine.search("sourdough bread", k=1)[0].title
    'Sourdough from nothing, day one to day nine'
    """
    from qkvsearch.data.judgements import judged_by
    from qkvsearch.data.synonyms import as_synonyms
    from qkvsearch.index.builder import CHECKPOINT, build_workspace, reading

    judged, meant = judged_by(queries, qrels), as_synonyms(synonyms)
    workspace = Workspace(path, wait=wait)
    kept = checkpoint or workspace.path / CHECKPOINT
    with reading(source, items, interactions, columns, engine, kept) as dataset:
        build_workspace(
            workspace,
            dataset,
            encoder=encoder,
            language=language,
            judged=judged,
            next_item=next_item,
            synonyms=meant,
            keys=keys,
            progress=progress,
        )
    return Engine(path, wait=wait)


def repair(
    path: str | Path,
    *,
    wait: float | None = None,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> Repaired:
    """Mend a workspace that is damaged: what can be derived from what is sound is made again, and
    what cannot is kept out of the way, and named. Raises `WorkspaceError` where nothing is sound
    that answers could come from.
    """
    from qkvsearch.index.repair import repair as repair_workspace

    workspace = Workspace(path, wait=wait, notify=say)
    if not (workspace.path / BUILDS_FOLDER).is_dir():
        workspace.open().close()  # says that none is here
    return repair_workspace(workspace, progress)
