"""One build of a workspace, as one question sees it: its files, its models, and the records."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from qkvsearch._utils.caching import cached_property
from qkvsearch.errors import quantity
from qkvsearch.heads.dense_keys import ItemKeys
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.rank.owner_rules import OwnerRules, RuleBook
from qkvsearch.rank.text_search import TextSearch
from qkvsearch.store import Snapshot, StoredCatalog, Workspace

# A search needs neither users nor preferences, and does not import them.
if TYPE_CHECKING:
    from qkvsearch.heads.histories import Histories
    from qkvsearch.rank.recommender import Recommender


class OpenFiles:
    """Closes the files of a build when nobody has this object any more.

    Each `LoadedBuild` of the build has it, and nothing else does. So the last question, or the last
    answer that is still read, closes the files at once. That needs no garbage collection.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        # The system closes what is open when the process ends.
        weakref.finalize(self, snapshot.close).atexit = False


@dataclass(frozen=True, eq=False)
class LoadedBuild:
    """A build for one question.

    The files and the models never change, and all questions about a build share them. The records
    are of the moment in which the question first reads them, so that all of an answer is of that
    moment. A question has its own object for that reason: `for_question` makes one.
    """

    # The files, which stay as they are when other builds are published.
    snapshot: Snapshot
    # The ids, titles and cells of the items, and conditions on them.
    catalog: StoredCatalog
    # The arrays and the encoders, each loaded on its first use.
    models: StoredModels
    # The heads that answer texts.
    texts: TextSearch
    # Keeps the files open.
    files: OpenFiles
    # The owner's rules; None to answer without them.
    rule_book: RuleBook | None = None

    @classmethod
    def open(cls, workspace: Workspace, name: str | None = None) -> Self:
        """Open a build of a workspace, by default the current one. Raises `WorkspaceError` and
        `DamagedError`.
        """
        snapshot = workspace.open() if name is None else workspace.open_build(name)
        files = OpenFiles(snapshot)
        catalog = snapshot.catalog
        models = StoredModels(snapshot)
        texts = TextSearch(models, catalog)
        return cls(snapshot, catalog, models, texts, files, RuleBook(snapshot.workspace, catalog))

    def for_question(self) -> Self:
        """Return this build for another question, which reads the records anew."""
        return replace(self)

    def with_search(
        self, settings: SearchSettings, keys: Mapping[str, ItemKeys[Any]] | None = None
    ) -> Self:
        """Return this build with other settings of searches, beside it.

        keys: those of the dense heads with the weights of columns in `settings`.
        """
        models = self.models.with_search(settings, keys)
        texts = TextSearch(models, self.catalog)
        if settings.families == self.models.search_settings.families:
            # Queries are read alike, and what is known of their words is kept.
            texts.reader = self.texts.reader
        return replace(self, models=models, texts=texts)

    def without_rules(self) -> Self:
        """Return this build, which answers without the owner's rules."""
        return replace(self, rule_book=None)

    def close(self) -> None:
        """Close the files now, also for those who still use them."""
        self.snapshot.close()

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.models.n_items

    @cached_property
    def rules(self) -> OwnerRules | None:
        """The owner's rules as they were when the question first asked for them; None without any.
        Raises `DamagedError`.
        """
        return None if self.rule_book is None else self.rule_book.current()

    @cached_property
    def histories(self) -> Histories:
        """The histories of all users, with what was recorded since the build."""
        from qkvsearch.heads.histories import Histories

        return Histories(self.models, self.catalog)

    @cached_property
    def recommender(self) -> Recommender:
        """The models that turn a history into scores."""
        from qkvsearch.rank.recommender import Recommender

        return Recommender(self.models, self.catalog, self.histories)

    @property
    def summary(self) -> str:
        """The path of the workspace, the numbers of items and users, and the encoder."""
        facts = self.snapshot.facts
        return (
            f"{self.snapshot.workspace}: {quantity(self.n_items, 'item')}, "
            f"{quantity(facts.get('n_users', 0), 'user')}, encoder {facts['encoder']}"
        )
