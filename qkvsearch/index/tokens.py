"""The stored tokens of every item, which late interaction compares with a query's tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.index.component import Addition, ArraySpec, IndexComponent
from qkvsearch.index.dense import DenseComponent
from qkvsearch.retrieval.late_interaction import TokenKeys, item_tokens
from qkvsearch.storage import BuildContents, Snapshot
from qkvsearch.storage.array_files import concatenate_on_disk
from qkvsearch.storage.workspace import NO_SPACE

if TYPE_CHECKING:
    from qkvsearch.index import StoredModels


# How many items' tokens are read at a time when segments are merged.
BLOCK = 1024
# The fact that says why a build has no tokens, and its text.
LEFT_OUT = "tokens_left_out"
NO_ROOM = (
    "the disk of {} has no room for the tokens of all items, so that search is without its second "
    "pass; make room and build again"
)


@dataclass(frozen=True)
class TokensComponent(IndexComponent[TokenKeys]):
    """The tokens of all items: rows of the encoder's table, or vectors. `group`: a dense head."""

    arrays: ClassVar = {
        "token_indptr": ArraySpec("i", ("items",), spans="tokens"),
        "token_rows": ArraySpec("i", ("tokens",), below="table"),
        "token_vectors": ArraySpec("i", ("tokens", "components")),
    }

    def store(self, contents: BuildContents, keys: TokenKeys) -> None:
        kind = "token_vectors" if keys.table is None else "token_rows"
        self.put(contents, **{"token_indptr": keys.indptr, kind: keys.stored})

    def load(self, models: StoredModels) -> TokenKeys:
        return self._keys(models.snapshot, models.load(DenseComponent(self.group)).encoder.table)

    def is_in(self, snapshot: Snapshot) -> bool:
        """Return False where a segment has no tokens, because the disk was full."""
        name = self.name_of("token_indptr")
        return all(segment.has(name) for segment in snapshot.with_items)

    def write(
        self,
        contents: BuildContents,
        spans: Iterable[np.ndarray],
        folder: Path,
        indptr: np.ndarray | None = None,
    ) -> None:
        """Store the tokens of all items by way of a file in `folder`. Without space on the disk the
        build gets no tokens, and a fact says so.

        spans: the tokens of each item, or, with `indptr`, of several items at a time; `indptr` says
        where those of each item begin.
        """
        self.put(contents, **dict.fromkeys(self.arrays))
        contents.facts.pop(LEFT_OUT, None)
        try:
            starts, stored = concatenate_on_disk(spans, folder)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            contents.facts[LEFT_OUT] = NO_ROOM.format(folder)
            return
        kind = "token_rows" if stored.ndim == 1 else "token_vectors"
        self.put(contents, **{"token_indptr": starts if indptr is None else indptr, kind: stored})

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        """Copy the tokens of texts that are encoded already, and encode the others."""
        previous, unread = addition.previous, addition.unread
        keys = self._keys(previous.snapshot)

        def spans() -> Iterator[np.ndarray]:
            new: Iterator[np.ndarray] = iter(())
            if unread.any():
                encoder = previous.load(DenseComponent(self.group)).encoder
                new = iter(item_tokens(encoder, addition.new_fields, progress))
            for position, is_new in zip(addition.positions, unread, strict=True):
                yield next(new) if is_new else keys.tokens(np.array([position]))

        self.write(contents, spans(), previous.snapshot.workspace)

    def merge(self, contents: BuildContents, models: StoredModels, progress: Progress) -> None:
        if models.snapshot.rows.is_plain:
            super().merge(contents, models, progress)
            return
        keys, rows = self._keys(models.snapshot), np.arange(models.n_items)
        indptr = np.concatenate([[0], np.cumsum(keys.lengths(rows))])
        blocks = (keys.tokens(rows[i : i + BLOCK]) for i in range(0, models.n_items, BLOCK))
        self.write(contents, blocks, models.snapshot.workspace, indptr)

    def _keys(self, snapshot: Snapshot, table: np.ndarray | None = None) -> TokenKeys:
        """Return the tokens: those of the base as they are stored, those of segments joined."""
        kind, sizes = self._kind(snapshot), {} if table is None else {"table": len(table)}
        names = ("token_indptr", kind)
        (starts, stored), *others = (
            self.piece(segment, *names, **sizes).values() for segment in snapshot.with_items
        )
        if snapshot.rows.is_plain:
            return TokenKeys(starts, stored, table)
        indptr, added = [starts], []
        for more_starts, more in others:
            indptr.append(more_starts[1:] + indptr[-1][-1])
            added.append(more)
        return TokenKeys(np.concatenate(indptr), stored, table, added, snapshot.rows.stored)

    def _kind(self, snapshot: Snapshot) -> str:
        has_rows = snapshot.base.has(self.name_of("token_rows"))
        return "token_rows" if has_rows else "token_vectors"
