"""An opened workspace: search, recommend, similar, attend, and the reasons for each answer."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from qkvsearch.answers.recommend import Recommender
from qkvsearch.answers.search import TextSearch
from qkvsearch.answers.similar import Neighbours
from qkvsearch.attention import exclusion_mask
from qkvsearch.data.ids import Id, id_text
from qkvsearch.embeddings import reading
from qkvsearch.embeddings.context import AttentionMap
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.retrieval import Head, Ranking, rank
from qkvsearch.stored import StoredModels
from qkvsearch.workspace import Snapshot, Workspace

if TYPE_CHECKING:
    from qkvsearch.data.columns import Columns
    from qkvsearch.data.readers import Source


class Engine:
    """Answers from one build of a workspace; a build published later needs a new `Engine`."""

    def __init__(self, path: str | Path) -> None:
        self.workspace = Workspace(path)
        self.snapshot: Snapshot = self.workspace.open()
        self.tables = self.snapshot.tables
        self.models = StoredModels(self.snapshot)
        self.texts = TextSearch(self.models, self.tables)
        self.n_items = self.models.n_items

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        `matches`: the words of each column in which the lexical head finds the query's. Raises
        `QkvError` for a head, a user or `where` that cannot be used.
        """
        taste = None if user is None else partial(self._taste, user)
        names = None if heads is None else _as_list(heads)
        fused = self.texts.fused(query, names, fusion, taste)
        ranking = self._rank(fused, k, temperature, self._mask(where))
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
        temperature: float | None = None,
        explain: bool = False,
    ) -> Ranking:
        """Items for a known user, for someone new from what they like, or for both together.

        The score is the prediction, near 1 for what the user is all but sure to want, from an
        exact solve on the current history. Items met before are left out. With `explain` each hit
        carries `because`: all of the history, whose contributions add up to the score.
        """
        people = self._recommender()
        history = people.history(user, _as_list(likes))
        mask = self._mask(where, excluded=history.positions)
        ranking = self._rank(people.head(history), k, temperature, mask)
        if explain:
            ranking = people.with_reasons(ranking, history)
        return people.with_ratings(ranking, history)

    def similar(
        self, item: Any, *, k: int = 10, where: str | None = None, temperature: float | None = None
    ) -> Ranking:
        """Neighbours of an item, by who met it and by what it is called and tagged."""
        position = self.tables.item_position(item)
        mask = self._mask(where, excluded=[position])
        return self._rank(Neighbours(self.texts).fused(position), k, temperature, mask)

    def attend(
        self, text: str, mask: str = "none", layer: int | None = None, head: int | None = None
    ) -> AttentionMap:
        """The text's own attention: a head's of a transformer, or that of its words' vectors.

        `mask`: "none", "padding", "causal". Layers and heads count from 0; without a head the mean
        of all, without a layer the last. Raises `QkvError` where the encoder has no layers.
        """
        encoder = self.models.encoder(self.models.main_head)
        return reading.attend(encoder, text, mask, layer, head)

    def record(self, user: Id, item: Id, rating: float | None = None) -> tuple[Id, str]:
        """One more interaction, on disk when this returns. The next `recommend` knows it, by an
        exact solve on the longer history, without a rebuild. The item's id and title come back.

        A new user is created; of repeated pairs the latest counts; without a rating the interaction
        counts in full. Recorded interactions stay when the workspace is built again. Raises
        `UnknownIdError` for an item that is not in the catalogue, `QkvError` for a rating outside
        the scale.
        """
        self._recommender()
        if not id_text(user):
            raise QkvError("a user needs an id")
        scale = self.models.rating_scale
        if rating is not None and scale is None:
            raise QkvError("the interactions here have no ratings: leave the rating out")
        if rating is not None and scale is not None and not scale[0] <= rating <= scale[1]:
            raise QkvError(f"a rating here is from {scale[0]:g} to {scale[1]:g}, not {rating:g}")
        ids, titles = self.tables.names([self.tables.item_position(item)])
        self.workspace.record(id_text(user), id_text(ids[0]), rating)
        return ids[0], titles[0]

    def info(self) -> dict[str, Any]:
        """What was built, when, and from what."""
        facts = self.snapshot.facts
        size = sum(file["bytes"] for file in facts["files"].values())
        return {
            "workspace": str(self.workspace.path),
            "built": self.snapshot.created,
            "items": self.n_items,
            "users": facts.get("n_users", 0),
            "interactions": facts.get("n_interactions", 0),
            "recorded": self.tables.n_recorded(),
            "rating_scale": facts.get("rating_scale"),
            "encoder": facts["encoder"],
            "columns": self.tables.columns,
            "searched_columns": facts["text_columns"],
            "rows": facts["rows"],
            "megabytes": round(size / 1e6, 1),
            "format": facts["format"],
            "qkvsearch": facts["qkvsearch"],
        }

    # --- from the owner's words to heads and masks ---

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

    def _mask(self, where: str | None, excluded: Any = ()) -> np.ndarray:
        """True where an item may be ranked."""
        mask = exclusion_mask(self.n_items, excluded)
        return mask if where is None else mask & self.tables.mask(where, self.n_items)

    def _rank(
        self, head: Head | None, k: int, temperature: float | None, mask: np.ndarray
    ) -> Ranking:
        if k < 0:
            raise QkvError(f"k is how many to show, 0 or more, not {k}")
        if temperature is not None and not 0 < temperature < np.inf:
            raise QkvError(f"the temperature is a number above 0, not {temperature}")
        return rank(head, self.tables.names, k=k, temperature=temperature, mask=mask)


def _as_list(given: Id | Iterable[Id]) -> list[Any]:
    """One name alone means itself, not its letters."""
    return [given] if isinstance(given, int | str) else list(given)


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
    encoder: str = "corpus",
) -> Engine:
    """Build a workspace at `path` from files or data frames, and open it.

    `source`: a folder of a known data set, `sample:movies`, `sample:videos`, or one file; `items`
    and `interactions`: a file or a pandas frame each, with `columns` where their names say too
    little. Raises `QkvError`.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> engine = build(folder, "sample:videos")
    >>> engine.search("sourdough bread", k=1)[0].title
    'Sourdough from nothing, day one to day nine'
    """
    from qkvsearch.builder import build_workspace
    from qkvsearch.data.sources import read_source

    dataset = read_source(source, items, interactions, columns)
    build_workspace(path, dataset, encoder=encoder)
    return Engine(path)
