"""An engine that is asked: which build answers, to the end of a question, and what it cannot."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from qkvsearch._utils.checked import checked_methods
from qkvsearch.engine.index import Index
from qkvsearch.errors import DamagedError
from qkvsearch.storage import Workspace

if TYPE_CHECKING:
    from qkvsearch.engine.rows import ItemRows, UserRows
    from qkvsearch.index import StoredModels
    from qkvsearch.search.listing import Listing
    from qkvsearch.search.text_search import TextSearch
    from qkvsearch.storage import Snapshot, Tables

P = ParamSpec("P")
T = TypeVar("T")


def _asked(
    question: Callable[Concatenate[Index, P], T],
) -> Callable[Concatenate[AskedEngine, P], T]:
    """A question of an opened build, asked of the one that the engine answers from: to its end,
    whatever is published meanwhile.
    """

    @wraps(question)
    def ask(engine: AskedEngine, /, *args: P.args, **kwargs: P.kwargs) -> T:
        build = engine.build
        try:
            return question(build, *args, **kwargs)
        except DamagedError as error:
            from qkvsearch.engine.damage import explained

            raise explained(error, build.snapshot) from None

    return ask


@checked_methods
class AskedEngine:
    """What an `Engine` is opened with, and all that it can be asked."""

    def __init__(
        self,
        path: str | Path,
        *,
        follow: bool = False,
        trust: bool = False,
        wait: float | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.workspace = Workspace(path, trust=trust, wait=wait, say=say)
        self._follows, self._lock = follow, Lock()
        self._open()

    def _open(self) -> None:
        # Looked at first: what is published while a build is opened is noticed next time.
        state = self.workspace.state()
        self._build = Index(self.workspace)
        self._state = state

    def _reopen(self) -> None:
        """The newest build from now on; a question that runs keeps the one it began with."""
        with self._lock:
            self._open()

    @property
    def build(self) -> Index:
        """The build that a question asked now is answered from."""
        if self._follows:
            with self._lock:
                if self.workspace.state() != self._state:
                    self._open()
        return self._build

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the workspace's files."""
        self._build.close()

    def __repr__(self) -> str:
        return repr(self.build)

    @property
    def snapshot(self) -> Snapshot:
        """The build's files."""
        return self.build.snapshot

    @property
    def tables(self) -> Tables:
        """Look-ups in the catalog."""
        return self.build.tables

    @property
    def models(self) -> StoredModels:
        """What was learned."""
        return self.build.models

    @property
    def texts(self) -> TextSearch:
        """The heads that a text is answered by."""
        return self.build.texts

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return self.build.n_items

    @property
    def items(self) -> ItemRows:
        """The catalog: `items["m042"]` is a row by column, `items.to_frame()` all of them."""
        return self.build.items

    @property
    def users(self) -> UserRows:
        """The users, those recorded since the build as well, in the same way as `items`."""
        return self.build.users

    # --- questions ---

    search = _asked(Index.search)
    head = _asked(Index.head)
    recommend = _asked(Index.recommend)
    recommend_all = _asked(Index.recommend_all)
    similar = _asked(Index.similar)
    similar_users = _asked(Index.similar_users)
    show = _asked(Index.show)
    history = _asked(Index.history)
    records = _asked(Index.records)
    attend = _asked(Index.attend)
    encode = _asked(Index.encode)
    map = _asked(Index.map)
    export_embeddings = _asked(Index.export_embeddings)
    _facts = _asked(Index.info)

    def info(self, *, verify: bool = False) -> dict[str, Any]:
        """What was built, when, and from what. With `verify` every file of the workspace, of former
        builds too, is compared with its checksum; raises `DamagedError`, which lists those that
        are not as they were written, what still works, and what to do.
        """
        from qkvsearch.engine.damage import verified

        checked = {"checksums": verified(self.workspace)} if verify else {}
        return {**self._facts(), **checked}

    def builds(self) -> Listing:
        """The builds that `rollback` can return to, the latest first: the `id` of each, when it was
        `created` and by which `command`, its `items`, of how many `segments` it is, how many
        `megabytes` it added on disk, and which one is `current`. The notes name damaged ones.
        """
        from qkvsearch.engine.facts import build_rows

        return build_rows(self.workspace)
