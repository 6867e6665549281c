"""The stored tokens of every item, which late interaction compares with a query's tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.scratch import GrowingArray
from qkvsearch.heads.component import Addition, ArraySpec, IndexComponent
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.late_interaction import TokenKeys, item_tokens
from qkvsearch.store import BuildContents, Snapshot

if TYPE_CHECKING:
    from qkvsearch.heads.stored_models import StoredModels


# How many items' tokens are read at a time when segments are merged.
BLOCK = 1024


@dataclass(frozen=True)
class TokensComponent(IndexComponent[TokenKeys]):
    """The tokens of all items: rows of the encoder's table, or vectors. `group`: a dense head."""

    arrays: ClassVar = {
        "token_indptr": ArraySpec("i", ("items",), spans="tokens"),
        "token_rows": ArraySpec("i", ("tokens",), below="table"),
        "token_vectors": ArraySpec("i", ("tokens", "components")),
    }

    def load(self, models: StoredModels) -> TokenKeys:
        return self._keys(models.snapshot, models.load(DenseComponent(self.group)).encoder.table)

    def store(
        self,
        contents: BuildContents,
        spans: Iterable[np.ndarray],
        indptr: np.ndarray | None = None,
    ) -> None:
        """Store the tokens of all items, which may take more than memory.

        spans: the tokens of each item, or, with `indptr`, of several items at a time; `indptr` says
        where those of each item begin.
        """
        starts, tokens = [0], None
        for span in spans:
            tokens = GrowingArray(span.dtype) if tokens is None else tokens
            tokens.append(span.ravel())
            starts.append(starts[-1] + len(span))
        assert tokens is not None
        stored = tokens.whole().reshape(-1, *span.shape[1:])
        kind = "token_rows" if stored.ndim == 1 else "token_vectors"
        indptr = np.array(starts, dtype=np.int64) if indptr is None else indptr
        self.put(contents, **{"token_indptr": indptr, kind: stored})

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

        self.store(contents, spans())

    def merge(self, contents: BuildContents, models: StoredModels, progress: Progress) -> None:
        if models.snapshot.rows.is_plain:
            super().merge(contents, models, progress)
            return
        keys, rows = self._keys(models.snapshot), np.arange(models.n_items)
        indptr = np.concatenate([[0], np.cumsum(keys.lengths(rows))])
        blocks = (keys.tokens(rows[i : i + BLOCK]) for i in range(0, models.n_items, BLOCK))
        self.store(contents, blocks, indptr)

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
