"""An opened workspace: search, recommend, similar, attend, and the reasons for each answer."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from qkvsearch.answers.all_users import AllUsers, similar_users
from qkvsearch.answers.batch import BatchRecommendations
from qkvsearch.answers.candidates import as_list, candidates, ranked
from qkvsearch.answers.control import pool_size
from qkvsearch.answers.facts import build_facts
from qkvsearch.answers.recommend import Recommender
from qkvsearch.answers.search import TextSearch
from qkvsearch.answers.similar import Neighbours
from qkvsearch.data.ids import Id, id_text
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.progress import Progress
from qkvsearch.retrieval import Head, Ranking
from qkvsearch.stored import StoredModels
from qkvsearch.texts.self_attention import AttentionMap
from qkvsearch.workspace import Snapshot, Workspace

if TYPE_CHECKING:
    from qkvsearch.data.columns import Columns
    from qkvsearch.data.judgements import Judgements, Queries
    from qkvsearch.data.readers import Source
    from qkvsearch.revision import Revision


class Engine:
    """Answers from one build of a workspace; a build published later needs a new `Engine`."""

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

    # --- queries ---

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

        With a `user` their taste is one more head, "collaborative". The score is the heads'
        weighted sum in standard deviations from their means, or by `fusion="ranks"` of 1 / (60 +
        rank). A query of which no head knows a word has no hits. With `explain` each hit carries
        `matches`: the words of each column in which the lexical head finds the query's. `notes`
        say what of the query was not read, and when hits are no better than chance. Raises
        `QkvError` for a head, a user or `where` that cannot be used.
        """
        taste = None if user is None else partial(self._taste, user)
        names = None if heads is None else as_list(heads)
        mask = candidates(self.tables, self.n_items, where)
        fused = self.texts.fused(query, names, fusion, taste, mask)
        ranking = ranked(self.tables, fused, k, temperature, mask)
        if explain:
            found = [self.texts.matches(query, int(position)) for position in ranking.positions]
            ranking = ranking.annotated(matches=found)
        return ranking

    def head(self, name: str, query: str) -> Head | None:
        """One head's scores and their parts; None where it knows no word of the query. Raises
        `QkvError` where its encoder is no longer installed."""
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
        attends to itself, which has no such bound. Left out are items met before, unless `seen`,
        and all but `only` these ids. With `recent` an interaction counts half for every so many
        later ones; `damping` takes from what everyone met, `diversity`, 0 to 1, from what is like
        the hits above. With `explain`, `because`: what the history adds to the score, and without
        an id what damping, diversity and the model's constant do; together they are the score.
        """
        people = self._recommender()
        history = people.history(user, as_list(likes), recent)
        met = () if seen else history.positions
        mask = candidates(self.tables, self.n_items, where, met, only)
        head = people.by(model, recent)(history, damping)
        ranking = ranked(self.tables, head, pool_size(k, diversity), temperature, mask)
        ranking = people.diverse(ranking, diversity, k)
        if explain:
            ranking = people.with_reasons(ranking, history)
        return people.with_facts(ranking, history)

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
        """`recommend` for everyone, to a .parquet, .csv or .jsonl file. Returns how many users
        there are, and how many an interrupted run, which the same call goes on with, had done.
        """
        everyone = AllUsers(self._recommender())
        mask = candidates(self.tables, self.n_items, where, only=only)
        batch = BatchRecommendations(everyone, k, mask, seen, recent, damping, model)
        state = f"{self.snapshot.folder.name} {self.tables.records.count()}"
        return len(everyone), batch.write(Path(path), format, state, progress)

    def similar_users(
        self,
        user: Any,
        *,
        k: int = 10,
        temperature: float | None = None,
        explain: bool = False,
        progress: Progress | None = None,
    ) -> Ranking:
        """Users of the nearest taste, by the cosine of their embeddings, every one solved now;
        `shared` is how many items both met, `because` what each of the user's own adds.
        """
        return similar_users(self._recommender(), user, k, temperature, explain, progress)

    def similar(
        self, item: Any, *, k: int = 10, where: str | None = None, temperature: float | None = None
    ) -> Ranking:
        """Neighbours of an item, by who met it and by what it is called and tagged."""
        position = self.tables.item_position(item)
        mask = candidates(self.tables, self.n_items, where, [position])
        return ranked(self.tables, Neighbours(self.texts).fused(position), k, temperature, mask)

    def attend(
        self, text: str, mask: str = "none", layer: int | None = None, head: int | None = None
    ) -> AttentionMap:
        """The text's own attention: a head's of a transformer, or that of its words' vectors.

        `mask`: "none", "padding", "causal". Layers and heads count from 0; without a head the mean
        of all, without a layer the last. Raises `QkvError` where the encoder has no layers.
        """
        encoder = self.models.encoder(self.models.main_head)
        return encoder.attend(text, mask).map(layer, head)

    def record(self, user: Id, item: Id, rating: float | None = None) -> tuple[Id, str]:
        """One more interaction, on disk when this returns. The next `recommend` knows it, by an
        exact solve on the longer history, without a rebuild. The item's id and title come back.

        A new user is created; of repeated pairs the latest counts; without a rating the interaction
        keeps the one it had, or counts in full. Recorded interactions stay when the workspace is
        built again. Raises `UnknownIdError` for an item that is not in the catalogue, `QkvError`
        for a rating outside the scale.
        """
        people = self._recommender()
        if not id_text(user):
            raise QkvError("a user needs an id")
        people.check_rating(rating)
        ids, titles = self.tables.names([self.tables.item_position(item)])
        self.workspace.record(id_text(user), id_text(ids[0]), rating)
        return ids[0], titles[0]

    def add(self, items: Source, columns: Columns | None = None) -> Revision:
        """Items of a file or frame join the workspace without a rebuild, in the place of those with
        their ids; this engine finds them at once. Raises `QkvError`.
        """
        from qkvsearch.revision import add_items

        revision = add_items(self.workspace.path, items, columns)
        self._reopen()
        return revision

    def remove(self, items: Id | Iterable[Id] = (), *, where: str | None = None) -> Revision:
        """Items leave the workspace with their interactions, by id or title or by a condition; all
        of them or, where one is unknown, none.
        """
        from qkvsearch.revision import remove_items

        revision = remove_items(self.workspace.path, items, where=where)
        self._reopen()
        return revision

    def info(self) -> dict[str, Any]:
        """What was built, when, and from what."""
        return {"workspace": str(self.workspace.path), **build_facts(self.snapshot)}

    # --- from the owner's words to heads ---

    def _recommender(self) -> Recommender:
        """Raises `WorkspaceError` where nobody's interactions were given."""
        if self.models.implicit is None:
            raise WorkspaceError(
                f"{self.workspace.path}: nobody's interactions are here to recommend from; build "
                "with --interactions FILE"
            )
        return Recommender(self.models.implicit, self.models, self.tables)

    def _taste(self, user: Any) -> Head | None:
        """What a user's history says of every item."""
        people = self._recommender()
        return people.head(people.history(user))


def open_workspace(path: str | Path) -> Engine:
    """The workspace at `path`, ready to answer. Raises `WorkspaceError`."""
    return Engine(path)


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
) -> Engine:
    """Build a workspace at `path` from files or data frames, and open it.

    `source`: a folder of a known data set, `sample:movies`, `sample:videos`, or one file; `items`
    and `interactions`: a file or a pandas frame each, with `columns` where their names say too
    little. `encoder`: a name, a model's folder, or "auto", the best that is installed and quick
    enough. `queries` with `qrels`: judged queries to learn the heads' weights from.
    `next_item`: also train the model of what comes next. Raises `QkvError`.

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
    build_workspace(path, dataset, encoder=encoder, judged=judged, next_item=next_item)
    return Engine(path)
