"""An opened build and every question that it answers: search, recommend, similar, attend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch._utils.validation import check_id, check_text
from qkvsearch.errors import QkvError
from qkvsearch.index import StoredModels
from qkvsearch.retrieval import Ranking, Scores
from qkvsearch.retrieval.reasons import WordReasons
from qkvsearch.retrieval.remote_keys import Allowed
from qkvsearch.search.answerable import none_found
from qkvsearch.search.candidates import (
    as_list,
    candidates,
    id_list,
    n_ranked,
    named_once,
    positions_of,
    ranked,
)
from qkvsearch.search.listing import own_columns, with_fields
from qkvsearch.search.options import check, check_model
from qkvsearch.search.text_search import TextSearch
from qkvsearch.storage import Snapshot, Workspace

# What a question alone needs is imported by it: the others do not wait for it.
if TYPE_CHECKING:
    from qkvsearch._utils.progress import Progress
    from qkvsearch.data.ids import Id
    from qkvsearch.engine.export_embeddings import ExportedEmbeddings
    from qkvsearch.engine.projection import ItemMap
    from qkvsearch.engine.rows import ItemRows, UserRows
    from qkvsearch.index.interaction_log import Histories
    from qkvsearch.query.where import Where
    from qkvsearch.recommend.batch import Exported
    from qkvsearch.recommend.recommend import Recommender
    from qkvsearch.search.listing import Listing
    from qkvsearch.text.encoded_text import AttentionMap


class Index:
    """The build that is current when it is opened, and every question that it answers, whatever is
    published later. Raises `WorkspaceError`.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.snapshot: Snapshot = workspace.open()
        self.catalog = self.snapshot.catalog
        self.models = StoredModels(self.snapshot)
        self.texts = TextSearch(self.models, self.catalog)
        self.n_items = self.models.n_items

    def close(self) -> None:
        """Let go of the build's files."""
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
        from qkvsearch.engine.rows import ItemRows

        return ItemRows(self.histories)

    @property
    def users(self) -> UserRows:
        """The users, those recorded since the build as well, in the same way as `items`."""
        from qkvsearch.engine.rows import UserRows

        return UserRows(self.histories)

    @property
    def histories(self) -> Histories:
        """Of all users, with what was recorded since the build."""
        from qkvsearch.index.interaction_log import Histories

        return Histories(self.models, self.catalog)

    @property
    def recommender(self) -> Recommender:
        """What turns a history into scores."""
        from qkvsearch.recommend.recommend import Recommender

        return Recommender(self.models, self.catalog)

    def history(self, user: Any, *, k: int | None = None, offset: int = 0) -> Listing:
        """What is known of a user, the latest first: each item with the rating and the time, the
        confidence that it counts with, and whether it was recorded since the build. The notes name
        what was recorded of items that are not in the catalog. `k` rows, all by default, from the
        one in place `offset` on. Raises `UnknownIdError`.
        """
        from qkvsearch.recommend.recording import history_rows

        check(k=0 if k is None else k, offset=offset)
        return history_rows(self.histories, user).page(k, offset)

    def records(self, user: Any = None, *, k: int | None = None, offset: int = 0) -> Listing:
        """What was recorded, the last first, of all or of one user: with its `number`, the `batch`
        that one `undo_record` takes back, and whether the build has `learned` from it, so that its
        log contains it. `k` rows, all by default, from the one in place `offset` on. Raises
        `UnknownIdError`.
        """
        from qkvsearch.recommend.recording import record_rows

        check(k=0 if k is None else k, offset=offset)
        if user is not None:
            check_id("user", user)
        return record_rows(self.catalog, user, k, offset)

    def show(self, item: Any) -> dict[str, Any]:
        """One item by id or title: all its columns, by the names that its owner has for them, and
        `users`, how many interacted with it. Raises `UnknownIdError`.
        """
        from qkvsearch.engine.rows import item_card

        return item_card(self.histories, self.catalog.item_position(check_id("item", item)))

    def info(self) -> dict[str, Any]:
        """What was built, when, and from what."""
        from qkvsearch.engine.info import build_facts

        return {"workspace": str(self.workspace.path), **build_facts(self.snapshot)}

    @query_lock()
    @one_blas_thread()
    def search(
        self,
        query: str,
        *,
        k: int = 10,
        heads: str | Iterable[str] | None = None,
        fusion: str = "scores",
        user: Any = None,
        where: Where | None = None,
        fields: str | Iterable[str] = (),
        offset: int = 0,
        min_weight: float = 0.0,
        temperature: float | None = None,
        prefix: bool = False,
        facets: str | Iterable[str] = (),
        snippet: bool = False,
        explain: bool = False,
        anyway: bool = False,
    ) -> Ranking:
        """Items ranked for a text query by `heads`: "lexical", those of the build's encoder by
        name, or "semantic" for all of those; by default all.

        A query may have operators: "a phrase", -word, field:word and word* must hold of an item,
        word^2 counts twice; all else ranks, and nothing is a syntax error. A word that no item has
        is read as the one that it may be a misspelling of; `corrections` and `notes` say so. With
        `prefix` the last word may be unfinished.

        With a `user` their preferences are one more head, "collaborative". The score is the heads'
        weighted sum in standard deviations from their means, or by `fusion="ranks"` of 1 / (60 +
        rank). A query that nothing answers has no hits, or with `anyway` the nearest; an item that
        no head scores higher than the mean item is no hit either. With `explain` each hit carries
        `matches`: the words of each column in which the lexical head finds the query's; with
        `snippet` the passage of its longest text that answers. `facets` names columns of which the
        answer counts the values among all items that match. `notes` say what was changed or not
        read, and that nothing answers. `fields` names columns to be shown with each hit; the `k`
        are those after `offset`, without what has less than `min_weight`. Raises `QkvError` for a
        head, a user or `where` that cannot be used.
        """
        check(k=k, offset=offset, min_weight=min_weight)
        columns = own_columns(self.catalog, fields)
        counted = own_columns(self.catalog, facets, "facets")

        def preferences() -> Scores | None:
            recommender = self.recommender
            return recommender.head(recommender.histories.of(user))

        names, last = None if heads is None else as_list(heads), n_ranked(k, offset)
        asked = self.texts.reader.read(check_text("query", query), prefix)
        left = candidates(self.catalog, self.n_items, where)
        mask, emptied = asked.mask(left, anyway), None if left.any() else where
        personal = None if user is None else preferences
        fused = self.texts.fused(
            asked, names, fusion, personal, mask, anyway, where, last, is_typing=prefix
        )
        if fused is not None and asked.text.strip() and not anyway:
            fused = fused.above_mean()
        ranking = ranked(
            fused, self.catalog.names, k, temperature, mask, emptied, offset, min_weight
        )
        ranking = with_fields(ranking, self.catalog, columns)
        ranking = replace(ranking, reasoning=WordReasons(query))
        notes = self.texts.notes(asked)
        if not ranking and not (ranking.notes or notes):
            ranking = ranking.noted(none_found(fused, ranking, k))
        if user is not None and self.models.implicit is None:
            from qkvsearch.recommend.recommend import BY_TEXT

            ranking = ranking.noted([BY_TEXT])
        corrections = [change.to_record() for change in asked.changes]
        ranking = replace(ranking.noted(notes), query=query, corrections=corrections)
        if counted:
            from qkvsearch.search.facets import facets as count_values

            is_match = self.texts.matching(asked, names, mask, ranking)
            ranking = ranking.with_facets(count_values(self.catalog, counted, is_match))
        ranking = self.texts.with_snippets(ranking, asked) if snippet else ranking
        return self.texts.with_matches(ranking, asked) if explain else ranking

    def head(self, name: str, query: str) -> Scores | None:
        """One head's scores; None where it knows no word. Raises `QkvError` without its encoder."""
        return self.texts.head(name, check_text("query", query))

    @query_lock()
    @one_blas_thread()
    def recommend(
        self,
        *,
        user: Any = None,
        likes: Id | Iterable[Id] = (),
        ratings: Mapping[Id, float] | None = None,
        without: Id | Iterable[Id] = (),
        exclude: Id | Iterable[Id] = (),
        k: int = 10,
        where: Where | None = None,
        only: Iterable[Id] | None = None,
        seen: bool = False,
        model: str = "preferences",
        recent: int | None = None,
        damping: float = 0.0,
        diversity: float = 0.0,
        fields: str | Iterable[str] = (),
        offset: int = 0,
        min_weight: float = 0.0,
        temperature: float | None = None,
        explain: bool = False,
        because: int | None = None,
    ) -> Ranking:
        """Items for a known user, for someone new from what they like, or for both together.

        `ratings`: of items the rating, or the weight where the log has weights, which counts in
        this answer as if it were recorded now. The score is an exact solve on this history, as if
        `without` had never been met, near 1 for what is all but sure to be wanted. With
        `model="next-item"` it is the item · the last state of the history that attends to itself,
        which has no such bound. Left out are the items of the history, unless `seen`, what is in
        `exclude`, and all but `only` these ids. An interaction counts half for every `recent` later
        ones; `damping` takes from popular items, `diversity`, 0 to 1, from those that are like the
        hits above. With `explain`, `because`: what the history adds to the score, and without an id
        what damping, diversity and the model's constant do; together they are the score. With the
        parameter `because` so many items of the history are listed, the others as one entry.
        `fields`, `offset` and `min_weight` are those of `search`. Where nobody's interactions were
        learned from, texts tell what is alike, and `notes` says so. Hits are `weak` where the
        history rests on too little, and `notes` says on how little. Raises `QkvError` for an
        argument that cannot be used.
        """
        from qkvsearch.recommend.diversity import diverse, pool_size
        from qkvsearch.recommend.recommend import (
            HistoryQuery,
            HistoryReasons,
            with_facts,
            with_reasons,
            with_strength,
        )

        check(k=k, temperature=temperature, damping=damping, diversity=diversity, because=because)
        check(offset=offset, min_weight=min_weight)
        check_model(model, recent)
        columns = own_columns(self.catalog, fields)
        recommender = self.recommender
        given = HistoryQuery(
            user, id_list("likes", likes), ratings or {}, id_list("without", without)
        )
        history, notes = given.read(self.workspace, recommender.histories, recent)
        excluded, more = positions_of(self.catalog, id_list("exclude", exclude))
        known = () if seen else history.positions
        mask = candidates(self.catalog, self.n_items, where, [*known, *excluded], only)
        last = n_ranked(k, offset)
        wanted = pool_size(last, diversity)
        head = recommender.head(history, model, damping, Allowed(mask, where, wanted))
        pool = ranked(head, self.catalog.names, wanted, temperature, mask, where)
        ranking = diverse(pool, self.models, diversity, last).page(offset, min_weight)
        ranking = with_fields(ranking, self.catalog, columns)
        ranking = replace(ranking, reasoning=HistoryReasons(history, self.catalog))
        if explain:
            ranking = with_reasons(ranking, history, self.catalog, because)
        ranking = with_strength(ranking, history, self.models)
        return with_facts(ranking, history, self.models).noted([*notes, *more])

    def recommend_all(
        self,
        path: str | Path,
        *,
        k: int = 10,
        where: Where | None = None,
        only: Iterable[Id] | None = None,
        seen: bool = False,
        model: str = "preferences",
        recent: int | None = None,
        damping: float = 0.0,
        fields: str | Iterable[str] = (),
        format: str | None = None,
        raw: bool = False,
        engine: str | None = None,
        progress: Progress | None = None,
    ) -> Exported:
        """`recommend` for all users, to a .parquet, .csv or .jsonl file: how many users there are,
        how many of them an interrupted run, which the same call goes on with, had done, and notes.
        In CSV, a text that a spreadsheet would run as a formula begins with an apostrophe, unless
        `raw`. engine: its executors, which see the workspace under the same path, write a folder of
        Parquet files. Raises `QkvError` for an argument that cannot be used.
        """
        from qkvsearch.recommend.batch import BatchRecommendations

        check(k=k)
        columns = own_columns(self.catalog, fields)
        recommender = self.recommender
        mask = candidates(self.catalog, self.n_items, where, only=only)
        batch = BatchRecommendations(
            recommender, min(k, self.n_items), mask, seen, recent, damping, model, columns, raw
        )
        state = f"{self.snapshot.name} {self.catalog.records.state}"
        if engine is None:
            return batch.write(Path(path), format, state, progress)
        from qkvsearch.engine.remote_export import Elsewhere, write_elsewhere

        there = Elsewhere(
            str(self.workspace.path.resolve()), state, batch.k, np.packbits(mask).tobytes(),
            seen, recent, damping, model, tuple(column.name for column in columns),
        )  # fmt: skip
        return write_elsewhere(engine, path, format, batch, there, progress)

    def similar_users(
        self,
        user: Any,
        *,
        k: int = 10,
        offset: int = 0,
        min_weight: float = 0.0,
        temperature: float | None = None,
        explain: bool = False,
        progress: Progress | None = None,
    ) -> Ranking:
        """Users by the cosine of their embeddings, with what was recorded since the build;
        `shared` is how many items both interacted with, `because` what each of the user's own adds.
        """
        from qkvsearch.recommend.similar import similar_users

        check(k=k, temperature=temperature, offset=offset, min_weight=min_weight)
        last = n_ranked(k, offset)
        found = similar_users(self.recommender, user, last, temperature, explain, progress)
        return found.page(offset, min_weight)

    @query_lock()
    @one_blas_thread()
    def similar(
        self,
        items: Id | Iterable[Id],
        *,
        exclude: Id | Iterable[Id] = (),
        k: int = 10,
        where: Where | None = None,
        fields: str | Iterable[str] = (),
        offset: int = 0,
        min_weight: float = 0.0,
        temperature: float | None = None,
    ) -> Ranking:
        """Neighbours of an item, by its users and by what it is called and tagged; of several
        items, those of the mean of their keys. Neither these are among them nor what is in
        `exclude`. `fields`, `offset` and `min_weight` are those of `search`. Raises `QkvError`.
        """
        from qkvsearch.recommend.similar import NeighbourReasons, Neighbours

        check(k=k, offset=offset, min_weight=min_weight)
        columns = own_columns(self.catalog, fields)
        positions, notes = named_once(self.catalog, id_list("items", items))
        excluded, more = positions_of(self.catalog, id_list("exclude", exclude))
        mask = candidates(self.catalog, self.n_items, where, [*positions, *excluded])
        head = Neighbours(self.texts, positions).fused(Allowed(mask, where, n_ranked(k, offset)))
        ranking = ranked(head, self.catalog.names, k, temperature, mask, where, offset, min_weight)
        reasoning = NeighbourReasons(self.texts, self.histories, positions)
        ranking = replace(ranking, reasoning=reasoning).noted([*notes, *more])
        return with_fields(ranking, self.catalog, columns)

    def attend(
        self, text: str, mask: str = "none", layer: int | None = None, head: int | None = None
    ) -> AttentionMap:
        """The text's own attention: a head's of a transformer, or that of its words' vectors.

        `mask`: "none", "padding", "causal". Layers and heads count from 0; without a head the mean
        of all, without a layer the last. Raises `QkvError` where the encoder has no layers.
        """
        encoder = self.models.encoder(self.models.main_head)
        return encoder.attend(check_text("text", text), mask).map(layer, head)

    def encode(self, texts: str | Iterable[str], *, head: str | None = None) -> np.ndarray:
        """The embeddings of texts by a dense head's encoder, by default the main head's: float32
        (n, d), rows of length 1, or zeros for a text of which it knows nothing. Raises `QkvError`.
        """
        from qkvsearch.engine.export_embeddings import dense_head

        encoder = self.models.encoder(dense_head(self.models, head))
        return encoder.encode_many([check_text("texts", text) for text in as_list(texts)])

    @cached_property
    def _maps(self) -> dict[str | None, ItemMap]:
        """By head: builds never change."""
        return {}

    @one_blas_thread()
    def map(
        self, head: str | None = None, *, query: str | None = None, user: Any = None, k: int = 10
    ) -> ItemMap:
        """The items in two dimensions, by the keys of a dense head, by default the main one, or
        with "collaborative" by what was learned from interactions: `ItemMap` says what it keeps.
        With a `query` or a `user` also their place, and the `k` items that they weigh most by this
        head. Raises `QkvError`.
        """
        from qkvsearch.engine import projection

        check(k=k)
        if query is not None and user is not None:
            raise QkvError("a map has the place of one: leave out `query` or `user`")
        if head not in self._maps:
            self._maps[head] = projection.item_map(self.recommender, head)
        found = self._maps[head]
        if query is not None:
            return projection.with_query(found, self.texts, check_text("query", query), k)
        if user is not None:
            return projection.with_user(found, self.texts, self.recommender, user, k)
        return found

    def export_embeddings(
        self,
        path: str | Path,
        *,
        of: str = "items",
        head: str | None = None,
        progress: Progress | None = None,
    ) -> ExportedEmbeddings:
        """Embeddings with the owner's ids to a .safetensors, .parquet or .npz file, which appears
        whole or not at all: of "items" the keys of a dense `head`, by default the main one, or with
        "collaborative" what was learned from interactions; of "users" that, each solved now from
        the whole history. Raises `QkvError`.
        """
        from qkvsearch.engine.export_embeddings import embedding_table, export_embeddings

        table = embedding_table(self.recommender, of, head)
        return export_embeddings(table, Path(path), progress)
