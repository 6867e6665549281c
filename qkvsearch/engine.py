"""An opened workspace: search, recommend, similar, attend, and the reasons for each answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from qkvsearch.attention import exclusion_mask
from qkvsearch.data.ids import Id, id_text
from qkvsearch.embeddings import reading
from qkvsearch.embeddings.context import AttentionMap
from qkvsearch.embeddings.encoders import item_pieces
from qkvsearch.embeddings.factors import ImplicitFactors
from qkvsearch.embeddings.labelled import LabelledVectors
from qkvsearch.embeddings.text import Analyzer
from qkvsearch.errors import QkvError, WorkspaceError, suggest
from qkvsearch.retrieval import DenseKeys, Head, Ranking, fuse_known, rank
from qkvsearch.stored import History, StoredModels
from qkvsearch.workspace import Snapshot, Workspace

if TYPE_CHECKING:
    from qkvsearch.data.columns import Columns
    from qkvsearch.data.readers import Source

# By eye, on neighbours of well-known films: no judged set of neighbours was at hand.
SIMILAR_WEIGHTS = {"collaborative": 0.6, "semantic": 0.4}


class Engine:
    """Answers from one build of a workspace; a build published later needs a new `Engine`."""

    def __init__(self, path: str | Path) -> None:
        self.workspace = Workspace(path)
        self.snapshot: Snapshot = self.workspace.open()
        self.tables = self.snapshot.tables
        self.models = StoredModels(self.snapshot)
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
        where: str | None = None,
        temperature: float | None = None,
    ) -> Ranking:
        """Items ranked for a text query by `heads`: "lexical", those of the build's encoder by
        name, or "semantic" for all of those; by default all.

        The score is the heads' weighted sum in standard deviations from their means. A query of
        which no head knows a word has no hits. Raises `QkvError` for a head or `where` that cannot
        be used.
        """
        scored = {name: self.head(name, query) for name in self._wanted(heads)}
        fused = fuse_known(scored, self.models.head_weights)
        return self._rank(fused, k, temperature, self._mask(where))

    def head(self, name: str, query: str) -> Head | None:
        """One head's scores and their parts; None where it knows no word of the query. Raises
        `QkvError` where its encoder is no longer installed."""
        if name == "lexical":
            return self.models.lexical_keys.head(Analyzer().query_tokens(query))
        vectors = self.models.encoder(name).encode(query)
        return self.models.dense_keys(name).head(name, vectors, partial(self._text_vectors, name))

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
        factors = self._require_implicit()
        history = self._history(user, _as_list(likes))
        vectors = factors.history_vectors(history.positions, history.confidences)
        ids, _ = self.tables.names(history.positions)
        query = LabelledVectors(ids, vectors)
        keys = DenseKeys(factors.item_embeddings)
        # Nothing liked, or nothing that anyone met: there is no direction to look in.
        head = keys.head("collaborative", query) if vectors.any() else None
        mask = self._mask(where, excluded=history.positions)
        ranking = self._rank(head, k, temperature, mask)
        if explain:
            ranking = self._with_reasons(ranking, history)
        ratings, rated = self.models.ratings, np.isfinite(history.ratings)
        if ratings is not None and rated.any():
            bias, embedding = ratings.fold_in(history.positions[rated], history.ratings[rated])
            predicted = ratings.predict(embedding, bias, ranking.positions)
            ranking = ranking.annotated(predicted_rating=predicted.tolist())
        return ranking

    def similar(
        self, item: Any, *, k: int = 10, where: str | None = None, temperature: float | None = None
    ) -> Ranking:
        """Neighbours of an item, by who met it and by what it is called and tagged."""
        position = self.tables.item_position(item)
        main = self.models.main_head
        words = self._text_vectors(main, position)
        keys = self.models.dense_keys(main)
        scored = {"semantic": keys.head("semantic", words, partial(self._text_vectors, main))}
        direction = self._direction(position)
        if direction.vectors.any():  # an item that nobody met has none
            keys = self.models.item_directions
            scored["collaborative"] = keys.head("collaborative", direction, self._direction)
        mask = self._mask(where, excluded=[position])
        return self._rank(fuse_known(scored, SIMILAR_WEIGHTS), k, temperature, mask)

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
        self._require_implicit()
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

    # --- from the owner's words to heads, histories and masks ---

    def _require_implicit(self) -> ImplicitFactors:
        if self.models.implicit is None:
            raise WorkspaceError(
                f"{self.workspace.path}: nobody's interactions are here to recommend from; build "
                "with --interactions FILE"
            )
        return self.models.implicit

    def _wanted(self, heads: str | Iterable[str] | None) -> list[str]:
        """The heads asked for; "semantic" is all but the lexical one."""
        known = list(self.models.head_weights)
        there = f"(there are {', '.join(known)}, and semantic for all but the first)"
        wanted: list[str] = []
        for name in known if heads is None else _as_list(heads):
            if name not in known and name != "semantic":
                raise QkvError(f"no head {name!r}{suggest(name, [*known, 'semantic'])} {there}")
            wanted += known[1:] if name == "semantic" else [name]
        if not wanted:
            raise QkvError(f"no heads to score by {there}")
        return [name for name in known if name in wanted]

    def _text_vectors(self, head: str, position: int) -> LabelledVectors:
        """An item's texts as the sum that its dense key is."""
        columns = self.snapshot.facts["text_columns"]
        fields = [self.tables.text(position, [column]) for column in columns]
        return item_pieces(self.models.encoder(head), fields)

    def _direction(self, position: int) -> LabelledVectors:
        """Who met an item, as one vector of length 1 that bears its title."""
        if self.models.implicit is None:
            return LabelledVectors([], np.zeros((0, 0)))
        _, titles = self.tables.names([position])
        return LabelledVectors(titles, self.models.item_directions.vectors[[position]])

    def _history(self, user: Any, likes: Sequence[Any]) -> History:
        """What a user met, what was recorded since, and what someone says they like on top."""
        if user is None and not likes:
            raise QkvError("nobody to recommend to: name a user, or something they like")
        scale = self.models.rating_scale
        position = None if user is None else self.tables.user_position(user)
        recorded = [] if user is None else self.tables.recorded(user)
        if user is not None and position is None and not recorded:
            raise self.tables.unknown_user(user)
        history = self.models.history(position)
        liked = [(self.tables.item_position(item), None) for item in likes]
        history = history.then(history.recorded_later(recorded).items(), scale)
        return history.then(liked, scale)

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

    def _with_reasons(self, ranking: Ranking, history: History) -> Ranking:
        ids, titles = self.tables.names(history.positions)
        titled = dict(zip(ids, titles, strict=True))
        reasons = [
            [
                {"id": part.query, "title": titled[part.query], "contribution": part.value}
                for part in ranking.explain(i)
            ]
            for i in range(len(ranking))
        ]
        return ranking.annotated(because=reasons)


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
