"""One build that answers questions: search, recommend, similar, attend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.forks import fork_lock
from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch._utils.validation import check_id, check_names, check_text, is_whole, require
from qkvsearch.errors import QkvError, quantity
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.rank.answerable import none_found
from qkvsearch.rank.candidates import (
    candidates,
    groups_of,
    head_names,
    id_list,
    listed_positions,
    n_ranked,
    named_once,
    positions_of,
    ranked,
)
from qkvsearch.rank.listing import own_columns, with_fields
from qkvsearch.rank.options import check, check_model
from qkvsearch.rank.ranking import Ranking
from qkvsearch.rank.reasons import WordReasons
from qkvsearch.rank.text_search import TextSearch
from qkvsearch.scores.approximate import Filter
from qkvsearch.scores.fusion import Scores
from qkvsearch.store import Snapshot, Workspace

# What only one question needs is imported by that question.
if TYPE_CHECKING:
    from qkvsearch._utils.callbacks import Progress
    from qkvsearch.engine.export_embeddings import ExportedEmbeddings
    from qkvsearch.engine.projection import ItemMap
    from qkvsearch.engine.rows import ItemRows, UserRows
    from qkvsearch.heads.histories import Histories
    from qkvsearch.rank.batch import Exported
    from qkvsearch.rank.listing import Listing
    from qkvsearch.rank.recommend import Recommender
    from qkvsearch.tables.ids import Id
    from qkvsearch.text.encoded_text import AttentionMap
    from qkvsearch.where import Where


class OpenBuild:
    """The build of a workspace that was current when it was opened. It answers from this build,
    even if another one is published later. Raises `WorkspaceError`.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace, self._map_lock = workspace, fork_lock()
        self.snapshot: Snapshot = workspace.open()
        self.catalog = self.snapshot.catalog
        self.models = StoredModels(self.snapshot)
        self.texts = TextSearch(self.models, self.catalog)
        self.n_items = self.models.n_items

    def close(self) -> None:
        """Close the files of the build."""
        self.snapshot.close()

    def __repr__(self) -> str:
        return f"<OpenBuild {self.summary}>"

    @property
    def summary(self) -> str:
        """The path of the workspace, the numbers of items and users, and the encoder."""
        facts = self.snapshot.facts
        return (
            f"{self.workspace.path}: {quantity(self.n_items, 'item')}, "
            f"{quantity(facts.get('n_users', 0), 'user')}, encoder {facts['encoder']}"
        )

    @property
    def items(self) -> ItemRows:
        """The catalog: `items["m042"]` is one row by column, `items.to_frame()` has all rows."""
        from qkvsearch.engine.rows import ItemRows

        return ItemRows(self.histories)

    @property
    def users(self) -> UserRows:
        """The users, as `items` has the items, including users recorded since the build."""
        from qkvsearch.engine.rows import UserRows

        return UserRows(self.histories)

    @property
    def histories(self) -> Histories:
        """The histories of all users, with the interactions recorded since the build."""
        from qkvsearch.heads.histories import Histories

        return Histories(self.models, self.catalog)

    @property
    def recommender(self) -> Recommender:
        """The models that turn a history into scores."""
        from qkvsearch.rank.recommend import Recommender

        return Recommender(self.models, self.catalog)

    def history(self, user: Any, *, k: int | None = None, offset: int = 0) -> Listing:
        """Return a user's interactions, the latest first: each item with its rating, time and
        confidence, and whether it was recorded since the build. The notes name recorded items that
        are not in the catalog. The listing has `k` rows, all by default, from row `offset` on.
        Raises `UnknownIdError`.
        """
        from qkvsearch.learn.recording import history_rows

        check(k=0 if k is None else k, offset=offset)
        return history_rows(self.histories, user).page(k, offset)

    def records(self, user: Any = None, *, k: int | None = None, offset: int = 0) -> Listing:
        """Return the recorded interactions of all users or of one, the last first: each with its
        `number`, the `batch` that one `undo_record` removes, and whether the build has `learned`
        from it. The listing has `k` rows, all by default, from row `offset` on. Raises
        `UnknownIdError`.
        """
        from qkvsearch.learn.recording import record_rows

        check(k=0 if k is None else k, offset=offset)
        if user is not None:
            check_id("user", user)
        return record_rows(self.snapshot, user, k, offset)

    def show(self, item: Any) -> dict[str, Any]:
        """Return one item: all columns, and its number of `users`. Raises `UnknownIdError`."""
        from qkvsearch.engine.rows import item_card

        return item_card(self.histories, self.catalog.titles.item_position(check_id("item", item)))

    def info(self) -> dict[str, Any]:
        """Return what was built, when, and from what."""
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
        explain: bool = False,
        anyway: bool = False,
    ) -> Ranking:
        """Rank items for a text query.

        A query may have operators: an item must match "a phrase", -word, field:word and word*;
        word^2 counts twice; other words only affect the order. Nothing is a syntax error. An empty
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
        explain: add to each hit `matches`, the words of each column that the lexical head matches.
        anyway: also rank items for a query that the catalog does not answer, which otherwise has
            no hits.

        An item that no head scores higher than the average item is no hit. The `notes` say what was
        changed in the query or not read, and that nothing answers it. Raises `QkvError` for a head,
        a user or `where` that cannot be used.
        """
        check(k=k, offset=offset)
        columns = own_columns(self.catalog, fields)
        facet_columns = own_columns(self.catalog, facets, "facets")
        groups = groups_of(self.catalog, distinct)
        names, n_needed = head_names(heads), n_ranked(k, offset)

        recommender = None if user is None else self.recommender
        unknown_notes = []
        if recommender is not None and not strict_user:
            from qkvsearch.rank.recommend import unknown

            names_nobody = unknown(recommender.histories, user)
            unknown_notes = [f"{note}: ranked without preferences." for note in names_nobody]

        def preferences() -> Scores | None:
            if recommender is None or unknown_notes:
                return None
            return recommender.head(recommender.histories.of(user))

        read_query = self.texts.reader.read(check_text("query", query), prefix)
        where_mask = candidates(self.catalog, self.n_items, where)
        mask = read_query.mask(where_mask, anyway)
        personal = None if user is None else preferences
        item_filter = Filter(mask, n_needed, groups)
        fused = self.texts.fused(read_query, names, personal, item_filter, anyway, prefix)
        if fused is not None and read_query.has_text and not anyway:
            fused = fused.above_mean()

        emptying_where = None if where_mask.any() else where
        ranking = ranked(
            fused,
            self.catalog.names,
            k,
            temperature,
            mask,
            where=emptying_where,
            offset=offset,
            groups=groups,
        )
        ranking = with_fields(ranking, self.catalog, columns)
        ranking = self.texts.with_match(ranking, read_query)
        notes = self.texts.notes(read_query)
        if not (ranking or ranking.notes or notes or unknown_notes):
            ranking = ranking.noted(none_found(fused, ranking, k))
        if user is not None and not unknown_notes and self.models.implicit is None:
            from qkvsearch.rank.recommend import BY_TEXT

            ranking = ranking.noted([BY_TEXT])
        ranking = replace(
            ranking.noted([*unknown_notes, *notes]),
            query=query,
            corrections=[change.to_record() for change in read_query.understood.changes],
            reasoning=WordReasons(query),
        )
        if facet_columns:
            from qkvsearch.rank.facets import facets as count_values

            is_match = self.texts.matching(read_query, names, mask, ranking)
            counts = count_values(self.catalog, facet_columns, is_match)
            ranking = replace(ranking, facets=counts)
        ranking = self.texts.with_snippets(ranking, read_query) if snippet else ranking
        return self.texts.with_matches(ranking, read_query) if explain else ranking

    def head(self, name: str, query: str) -> Scores | None:
        """Return a head's scores; None if it knows no word. Raises `QkvError` with no encoder."""
        return self.texts.head(name, check_text("query", query))

    @query_lock()
    @one_blas_thread()
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
        recent: int | None = None,
        damping: float = 0.0,
        diversity: float = 0.0,
        fields: str | Iterable[str] = (),
        distinct: str | None = None,
        offset: int = 0,
        temperature: float | None = None,
        explain: bool = False,
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
        recent: an interaction counts half for every `recent` later ones.
        damping: how much popularity is subtracted.
        diversity: from 0 to 1, how much hits should differ from those above.
        explain: add `because` to each hit: what each item of the history adds to the score, and,
            without an id, what damping, diversity and a constant add.
        because: list at most this many items, and the others as one entry.

        The other arguments are those of `search`. Where no interactions were learned from, items
        with similar texts are recommended, and `notes` say so. Hits are `weak` if the history tells
        too little, and `notes` say why. Raises `QkvError` for an argument that cannot be used.
        """
        from qkvsearch.rank.diversity import diverse, pool_size
        from qkvsearch.rank.history_reasons import HistoryReasons, with_reasons
        from qkvsearch.rank.hit_facts import with_facts, with_strength
        from qkvsearch.rank.recommend import POPULAR, read_history

        check(k=k, temperature=temperature, damping=damping, diversity=diversity, because=because)
        check(offset=offset)
        check_model(model, recent)
        columns = own_columns(self.catalog, fields)
        recommender = self.recommender
        likes, without = id_list("likes", likes), id_list("without", without)
        ratings = {} if ratings is None else ratings
        question = (user, likes, ratings, without, recent, strict_user)
        history, notes, is_nobody = read_history(recommender.histories, *question)
        model = POPULAR if is_nobody else model
        excluded, more = positions_of(self.catalog, id_list("exclude", exclude))
        seen_items = () if seen else history.positions
        listed, skipped = listed_positions(self.catalog, only)
        mask = candidates(self.catalog, self.n_items, where, [*seen_items, *excluded], listed)
        n_needed = n_ranked(k, offset)
        n_pool = pool_size(n_needed, diversity)
        groups = groups_of(self.catalog, distinct)
        item_filter = Filter(mask, n_pool, groups)
        head = recommender.head(history, model, damping, item_filter, head_names(heads))
        pool = ranked(head, self.catalog.names, n_pool, temperature, mask, where, groups=groups)
        ranking = diverse(pool, self.models, diversity, n_needed).page(offset)
        ranking = with_fields(ranking, self.catalog, columns)
        ranking = replace(ranking, reasoning=HistoryReasons(history, self.catalog))
        if is_nobody:
            ranking = ranking.annotated(weak=[True] * len(ranking))
        if explain and is_nobody:
            ranking = ranking.annotated(because=[[] for _ in ranking])
        elif explain:
            ranking = with_reasons(ranking, history, self.catalog, because)
        ranking = with_strength(ranking, history, self.models)
        return with_facts(ranking, history, self.models).noted([*skipped, *notes, *more])

    def recommend_all(
        self,
        path: str | Path,
        *,
        k: int = 10,
        where: Where | None = None,
        only: Iterable[Id] | None = None,
        seen: bool = False,
        model: str = "preferences",
        heads: str | Iterable[str] | None = None,
        recent: int | None = None,
        damping: float = 0.0,
        fields: str | Iterable[str] = (),
        format: str | None = None,
        raw: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Write the recommendations for all users to a file. Return the number of users, and notes.

        path: a .parquet, .csv or .jsonl file.
        format: "parquet", "csv" or "jsonl", if the name of the file does not say it.
        raw: in CSV, do not put an apostrophe before texts that a spreadsheet would run as formulas.
        progress: called with the name of a step, the amount done and the total.

        The other arguments are those of `recommend`. Raises `QkvError` for an argument that cannot
        be used.
        """
        from qkvsearch.rank.batch import BatchRecommendations, Exported

        check(k=k)
        columns = own_columns(self.catalog, fields)
        recommender = self.recommender
        listed, skipped = listed_positions(self.catalog, only)
        mask = candidates(self.catalog, self.n_items, where, only=listed)
        batch = BatchRecommendations(
            recommender,
            min(k, self.n_items),
            mask,
            seen,
            recent,
            damping,
            model,
            columns,
            raw,
            head_names(heads),
        )
        users, notes = batch.write(Path(path), format, progress)
        return Exported(users, [*skipped, *notes])

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
        distinct: str | None = None,
        offset: int = 0,
        temperature: float | None = None,
    ) -> Ranking:
        """Rank the neighbours of an item, by its users and its texts; of several items, by the mean
        of their keys. These items and those in `exclude` are left out. The other arguments are
        those of `search`. Raises `QkvError`.
        """
        from qkvsearch.rank.similar import NeighbourReasons, Neighbours

        check(k=k, offset=offset)
        columns = own_columns(self.catalog, fields)
        positions, notes = named_once(self.catalog, id_list("items", items))
        excluded, more = positions_of(self.catalog, id_list("exclude", exclude))
        mask = candidates(self.catalog, self.n_items, where, [*positions, *excluded])
        groups = groups_of(self.catalog, distinct)
        item_filter = Filter(mask, n_ranked(k, offset), groups)
        ranking = ranked(
            Neighbours(self.texts, positions).fused(item_filter),
            self.catalog.names,
            k,
            temperature,
            mask,
            where=where,
            offset=offset,
            groups=groups,
        )
        hits = ranking.positions.tolist()
        reasoning = NeighbourReasons(self.texts, self.histories, positions, hits)
        ranking = replace(ranking, reasoning=reasoning).noted([*notes, *more])
        return with_fields(ranking, self.catalog, columns)

    def attend(
        self, text: str, mask: str = "none", layer: int | None = None, head: int | None = None
    ) -> AttentionMap:
        """Return the attention of a text to itself: of a transformer, or of its words' vectors.

        mask: "none", "padding" or "causal". layer, head: counted from 0; by default the last layer,
        and the mean of all heads. Raises `QkvError` where the encoder has no layers.
        """
        for name, index in (("layer", layer), ("head", head)):
            require(index is None or is_whole(index), name, index, "a whole number")
        encoder = self.models.encoder(self.models.main_head)
        return encoder.attend(check_text("text", text), mask).map(layer, head)

    def encode(self, texts: str | Iterable[str], *, head: str | None = None) -> np.ndarray:
        """Return the embeddings of texts by the encoder of a dense head, by default the main one:
        float32 (n, d), rows of length 1, or zeros for a text without a known word. Raises
        `QkvError`.
        """
        from qkvsearch.engine.export_embeddings import dense_head

        encoder = self.models.encoder(dense_head(self.models, head))
        return encoder.encode_many(check_names("texts", texts))

    @cached_property
    def _maps(self) -> dict[str | None, ItemMap]:
        """The maps by head; a build never changes."""
        return {}

    @one_blas_thread()
    def map(
        self, head: str | None = None, *, query: str | None = None, user: Any = None, k: int = 10
    ) -> ItemMap:
        """Return the items in two dimensions, by the keys of a dense head, by default the main one,
        or with "collaborative" by the embeddings learned from interactions. A `query` or a `user`
        is placed among them, with its `k` best items by this head. Raises `QkvError`.
        """
        from qkvsearch.engine import projection

        check(k=k)
        if query is not None and user is not None:
            raise QkvError("a map has the place of one: leave out `query` or `user`")
        with self._map_lock:  # another thread may be computing it
            if head not in self._maps:
                self._maps[head] = projection.item_map(self.recommender, head)
        item_map = self._maps[head]
        if query is not None:
            return projection.with_query(item_map, self.texts, check_text("query", query), k)
        if user is not None:
            return projection.with_user(item_map, self.texts, self.recommender, user, k)
        return item_map

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

        return export_embeddings(self.recommender, Path(path), of, head, progress)
