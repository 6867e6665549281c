"""The stored tokens of every item, which late interaction compares with a query's tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.scratch import GrowingArray
from qkvsearch.heads.component import Addition, BuildModels, IndexComponent
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.late_interaction import TokenKeys, item_tokens
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.array_spec import ArraySpec


@dataclass(frozen=True)
class TokensComponent(IndexComponent[TokenKeys]):
    """The tokens of all items: rows of the encoder's table, or vectors. `group`: a dense head."""

    arrays: ClassVar = {
        "token_indptr": ArraySpec("i", ("items",), rows="texts", lists="tokens"),
        "token_rows": ArraySpec("i", ("tokens",), rows="texts", below="table"),
        "token_vectors": ArraySpec("i", ("tokens", "components"), rows="texts"),
    }

    def load(self, models: BuildModels) -> TokenKeys:
        return self._keys(models.snapshot, models.load(DenseComponent(self.group)).encoder.table)

    def store(self, contents: BuildContents, tokens: Iterable[np.ndarray]) -> None:
        """Store the tokens of all items, which may take more than memory.

        tokens: an array for each item, of rows of the table (n,) or of vectors (n, d).
        """
        self.put(contents, **self._arrays_of(tokens))

    def new_rows(self, addition: Addition, progress: Progress) -> dict[str, np.ndarray]:
        """Copy the tokens of texts that are encoded already, and encode the others."""
        return self._arrays_of(self._new_tokens(addition, progress))

    def _new_tokens(self, addition: Addition, progress: Progress) -> Iterator[np.ndarray]:
        """Yield the tokens of each new item."""
        stored = self._keys(addition.previous.snapshot)
        encoded: Iterator[np.ndarray] = iter(())
        if addition.unread.any():
            encoder = addition.previous.load(DenseComponent(self.group)).encoder
            encoded = iter(item_tokens(encoder, addition.new_fields, progress))
        for position, is_unread in zip(addition.positions, addition.unread, strict=True):
            if is_unread:
                yield next(encoded)
            else:
                yield stored.tokens(np.array([position]))

    def _arrays_of(self, tokens: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the arrays of items with these tokens."""
        starts, stored = joined_tokens(tokens)
        kind = "token_rows" if stored.ndim == 1 else "token_vectors"
        return {"token_indptr": starts, kind: stored}

    def _keys(self, snapshot: Snapshot, table: np.ndarray | None = None) -> TokenKeys:
        (kind,) = (name for name in self.names_in(snapshot) if name != "token_indptr")
        sizes = {} if table is None else {"table": len(table)}
        lists = self.item_lists(snapshot, "token_indptr", kind, **sizes)
        return TokenKeys(lists.starts, lists.entries, table, lists.added, lists.rows)


def joined_tokens(tokens: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return where the tokens of each item begin, and all tokens, which may be on disk."""
    starts, entries = [0], None
    for of_item in tokens:
        if entries is None:
            entries = GrowingArray(of_item.dtype)
        entries.append(of_item.ravel())
        starts.append(starts[-1] + len(of_item))
    assert entries is not None
    stored = entries.whole().reshape(-1, *of_item.shape[1:])
    return np.array(starts, dtype=np.int64), stored
