"""An opened build, and what is in it: items, users, histories, records, facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qkvsearch.index import StoredModels
from qkvsearch.search.candidates import check
from qkvsearch.search.text_search import TextSearch
from qkvsearch.storage import Snapshot, Workspace

# What a question alone needs is imported by it: the others do not wait for it.
if TYPE_CHECKING:
    from qkvsearch.engine.rows import ItemRows, UserRows
    from qkvsearch.index.interaction_log import Histories
    from qkvsearch.recommend.recommend import Recommender
    from qkvsearch.search.listing import Listing


class OpenedContents:
    """The build that is current when it is made, whatever is published later. Raises
    `WorkspaceError`.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.snapshot: Snapshot = workspace.open()
        self.tables = self.snapshot.tables
        self.models = StoredModels(self.snapshot)
        self.texts = TextSearch(self.models, self.tables)
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

        return Histories(self.models, self.tables)

    @property
    def recommender(self) -> Recommender:
        """What turns a history into scores."""
        from qkvsearch.recommend.recommend import Recommender

        return Recommender(self.models, self.tables)

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
        return record_rows(self.tables, user, k, offset)

    def show(self, item: Any) -> dict[str, Any]:
        """One item by id or title: all its columns, by the names that its owner has for them, and
        `users`, how many interacted with it. Raises `UnknownIdError`.
        """
        from qkvsearch.engine.rows import item_card

        return item_card(self.histories, self.tables.item_position(item))

    def info(self) -> dict[str, Any]:
        """What was built, when, and from what."""
        from qkvsearch.engine.facts import build_facts

        return {"workspace": str(self.workspace.path), **build_facts(self.snapshot)}
