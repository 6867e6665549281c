"""The product in Python: build or open a workspace, search, recommend, change and evaluate it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from qkvsearch._utils.forks import fork_lock
from qkvsearch._utils.validation import check_id, check_whole
from qkvsearch.engine.arguments import checked_arguments
from qkvsearch.engine.open_build import OpenBuild
from qkvsearch.errors import DamagedError, QkvError, quantity
from qkvsearch.rank.candidates import head_names, id_list
from qkvsearch.rank.options import check
from qkvsearch.store import Workspace
from qkvsearch.store.segments import BUILDS_FOLDER

if TYPE_CHECKING:
    from qkvsearch._utils.callbacks import Progress
    from qkvsearch.engine.rows import ItemRows, UserRows
    from qkvsearch.evaluation.results import Evaluation
    from qkvsearch.evaluation.tuning import Trial, Tuning
    from qkvsearch.heads.stored_models import StoredModels
    from qkvsearch.learn.add import Revision
    from qkvsearch.learn.erase import Forgotten
    from qkvsearch.learn.learn_again import Learned
    from qkvsearch.learn.merge import Merged
    from qkvsearch.learn.recording import Recording
    from qkvsearch.learn.repair import Repaired
    from qkvsearch.rank.listing import Listing
    from qkvsearch.rank.text_search import TextSearch
    from qkvsearch.store import BuildEntry, Snapshot, StoredCatalog
    from qkvsearch.tables.columns import Columns
    from qkvsearch.tables.dataset import Source
    from qkvsearch.tables.ids import Id
    from qkvsearch.tables.judgements import Judgements, Queries
    from qkvsearch.tables.synonyms import Synonyms
    from qkvsearch.where import Where

log = logging.getLogger("qkvsearch.engine")
# The default limits of tuning.
TRIALS, MINUTES = 27, 5.0
P = ParamSpec("P")
T = TypeVar("T")


def _question(
    question: Callable[Concatenate[OpenBuild, P], T],
) -> Callable[Concatenate[Engine, P], T]:
    """Return a method of `Engine` that answers from one build, whatever is published meanwhile."""
    question = checked_arguments(question)

    @wraps(question)
    def ask(engine: Engine, /, *args: P.args, **kwargs: P.kwargs) -> T:
        build = engine.current_build
        try:
            return question(build, *args, **kwargs)
        except DamagedError as error:
            from qkvsearch.engine.info import explain_damage

            raise explain_damage(error, build.snapshot) from None

    return ask


class Engine:
    """An opened workspace. It answers from the build that was current when it was opened, or that
    its own last change made.

    Questions: `search`, `recommend`, `recommend_all`, `similar`, `attend`,
    `encode`, `map`, `export_embeddings`; `items`, `users`, `show`, `history`, `records`, `info` and
    `builds` list what is stored. Changes: `record`, `record_many`, `undo_record`, `add`, `remove`,
    `learn`, `compact`, `rollback`, `forget`. Measurements: `evaluate_search`,
    `evaluate_recommend`, `tune`, `reset_tuning`. Several threads may use an engine.

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
        self._follows, self._lock = follow, fork_lock()
        # Whether a change is published that could not be opened: the next question opens it.
        self._must_open = False
        self._open()

    def _open(self) -> None:
        # Read first, so that a build that is published meanwhile is noticed next time.
        state = self.workspace.state()
        self._build = OpenBuild(self.workspace)
        self._state, self._must_open = state, False

    def _reopen(self) -> None:
        """Switch to the newest build; running questions keep theirs."""
        with self._lock:
            self._open()

    @property
    def current_build(self) -> OpenBuild:
        """The opened build that answers the next question."""
        if self._follows or self._must_open:
            with self._lock:
                if self._must_open or self.workspace.state() != self._state:
                    self._open()
        return self._build

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files of the workspace."""
        self._build.close()

    def __repr__(self) -> str:
        return f"<Engine {self.current_build.summary}>"

    @property
    def snapshot(self) -> Snapshot:
        """The build's files."""
        return self.current_build.snapshot

    @property
    def catalog(self) -> StoredCatalog:
        """The catalog of the build."""
        return self.current_build.catalog

    @property
    def models(self) -> StoredModels:
        """The models of the build."""
        return self.current_build.models

    @property
    def texts(self) -> TextSearch:
        """The heads of a search."""
        return self.current_build.texts

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.current_build.n_items

    @property
    def items(self) -> ItemRows:
        """The catalog: `items["m042"]` is a row as a dict, `items.to_frame()` all rows."""
        return self.current_build.items

    @property
    def users(self) -> UserRows:
        """The users, including those recorded since the build, in the same way as `items`."""
        return self.current_build.users

    # --- questions, which `open_build.OpenBuild` answers ---

    search = _question(OpenBuild.search)
    head = _question(OpenBuild.head)
    recommend = _question(OpenBuild.recommend)
    recommend_all = _question(OpenBuild.recommend_all)
    similar = _question(OpenBuild.similar)
    show = _question(OpenBuild.show)
    history = _question(OpenBuild.history)
    records = _question(OpenBuild.records)
    attend = _question(OpenBuild.attend)
    encode = _question(OpenBuild.encode)
    map = _question(OpenBuild.map)
    export_embeddings = _question(OpenBuild.export_embeddings)
    _facts = _question(OpenBuild.info)

    @checked_arguments
    def info(self, *, verify: bool = False) -> dict[str, Any]:
        """Return facts about the build: when it was made, from what, and its models.

        verify: compare every file of the workspace, previous builds included, with its checksum.
        Raises `DamagedError`, which lists the damaged files, and says what to do.
        """
        from qkvsearch.engine.info import verify as verify_files

        checked = {"checksums": verify_files(self.workspace)} if verify else {}
        return {**self._facts(), **checked}

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
        self, user: Id, item: Id, rating: float | None = None, *, weight: float | None = None
    ) -> Listing:
        """Write one more interaction to disk, and return it with its `batch`. The next `recommend`
        counts it, without a rebuild.

        A new user is created. If a pair is recorded again, the latest counts; without a rating it
        keeps its previous one, or counts in full. A log has ratings, or weights, such as
        quantities, of which a negative one takes back; the other is refused. Recorded interactions
        stay when the workspace is built again. Raises `UnknownIdError` for an item that is not in
        the catalog, and `QkvError` for a rating or a weight that cannot be used.
        """
        return self._recording().record([(user, item, rating, weight)])

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

        return record_file(self._recording(), source, columns, again)

    @checked_arguments
    def undo_record(self, batch: int | None = None) -> Listing:
        """Delete a batch, which one `record` or `record_many` wrote, and return it: by default the
        last one that this user of the operating system recorded, and not over HTTP. The next call
        deletes the one before. Raises `QkvError` if there is none, or if the build has learned from
        it.
        """
        return self._recording().undo(batch)

    def _recording(self) -> Recording:
        from qkvsearch.learn.recording import Recording

        return Recording(self.workspace, self.current_build.histories)

    @checked_arguments
    def add(
        self, items: Source, columns: Columns | None = None, *, progress: Progress | None = None
    ) -> Revision:
        """Add or replace the items of a file or frame without a rebuild. Raises `QkvError`."""
        from qkvsearch.learn.add import add_items

        return self._changed(add_items, items, columns, progress)

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
        queries: str | Path | Queries,
        qrels: str | Path | Judgements,
        *,
        heads: str | Iterable[str] | None = None,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Compute nDCG@10, MRR@10 and Recall@100 of search, compared with the lexical head alone.

        queries, qrels: files; or the texts of queries by id, and the grades of judged items by
        query. The notes describe what is left out. Raises `QkvError`.
        """
        from qkvsearch.evaluation.search_protocol import evaluate_heads

        names, build = head_names(heads), self.current_build
        return evaluate_heads(build.search, queries, qrels, names, build.items.ids, progress)

    @checked_arguments
    def evaluate_recommend(
        self,
        protocol: str = "random",
        *,
        k: int = 10,
        users: int | None = None,
        random_state: int = 0,
        next_item: bool = False,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Evaluate recommendations on held-out interactions, compared with simpler methods.

        protocol: "random", "leave-last-out", "time" or "strong". The models learn again from the
        training part of the log, with the settings that `tune` found, if any. next_item: also train
        and evaluate the next-item model (minutes). users: how many users to evaluate, drawn at
        random, by default 2,000; 0 for all. The notes describe what is left out. Raises `QkvError`.
        """
        from qkvsearch.evaluation import recommend_protocol
        from qkvsearch.heads.learned_models import TUNED

        check_whole("k", k)
        check(random_state=random_state, users=users)
        models = self.models
        tuned = models.snapshot.facts.get(TUNED) or {}
        evaluation = recommend_protocol.evaluate_recommend(
            models.log("judge by"),
            protocol,
            k=k,
            users=recommend_protocol.N_USERS if users is None else users,
            settings=tuned.get("settings"),
            keys=np.asarray(models.dense_keys(models.main_head).vectors),
            random_state=random_state,
            next_item=next_item,
            progress=progress,
        )
        notes = []
        if tuned:
            notes.append(
                f"With the settings that tune found with `protocol` {tuned['protocol']}; with "
                "another protocol or seed they may have been chosen by interactions that are held "
                "out here."
            )
        if n_recorded := models.snapshot.records.count():
            notes.append(f"Left out: {quantity(n_recorded, 'recorded interaction')}.")
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
        from qkvsearch.heads.learned_models import TUNED

        check_whole("k", k)
        check(trials=trials, minutes=minutes, random_state=random_state)
        models = self.models
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
            self._learn_preferences(fact if tuning.settings else None, progress)
        return tuning

    @checked_arguments
    def reset_tuning(self, *, progress: Progress | None = None) -> None:
        """Return to the default settings. Raises `WorkspaceError`."""
        self._learn_preferences(None, progress)

    def _learn_preferences(self, tuned: dict[str, Any] | None, progress: Progress | None) -> None:
        """Learn from the whole log, with tuned or the default settings."""
        from qkvsearch.learn.learn_again import learn_preferences

        self._changed(learn_preferences, tuned, progress)


@checked_arguments
def build(
    path: str | Path,
    source: Source | None = None,
    *,
    items: Source | None = None,
    interactions: Source | None = None,
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
    interactions: a file, a pandas frame, or a list of them each. columns: the names of columns that
    cannot be recognized. encoder: a name, the folder of a model, or "auto", the best one that is
    installed and fast enough. language: of the texts, for stems and stop words: an ISO code such as
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
    with reading(source, items, interactions, columns, engine) as dataset:
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
