"""The stored tokens of every item, which late interaction compares in a second pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qkvsearch.progress import Progress
from qkvsearch.retrieval.late_interaction import MOST_TOKENS, TokenKeys, item_tokens
from qkvsearch.stored.dense import DensePart
from qkvsearch.stored.forms import Form
from qkvsearch.stored.part import Addition, BuildReader, StoredPart
from qkvsearch.workspace import BuildContents, Snapshot


@dataclass(frozen=True)
class TokensPart(StoredPart[TokenKeys]):
    """`group` is the dense head whose encoder makes them: rows of its table, or vectors."""

    arrays: ClassVar = {
        "token_indptr": Form("i", ("items",), spans="tokens"),
        "token_rows": Form("i", ("tokens",), below="table"),
        "token_vectors": Form("i", ("tokens", "components")),
    }

    def store(self, contents: BuildContents, keys: TokenKeys) -> None:
        kind = "token_vectors" if keys.table is None else "token_rows"
        self.put(contents, **{"token_indptr": keys.indptr, kind: keys.stored})

    def load(self, build: BuildReader) -> TokenKeys:
        return self._keys(build.snapshot, build.load(DensePart(self.group)).encoder.table)

    def is_in(self, build: Snapshot) -> bool:
        """Not where they became more than a build keeps: then a segment is without them."""
        name = self._name("token_indptr")
        return all(segment.has(name) for segment in build.with_items)

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        """Tokens of texts that were read go along, and between them come those of the new texts;
        none at all where they become more than a build keeps.
        """
        former, unread = addition.former, addition.unread
        keys = self._keys(former.snapshot)
        read = addition.positions[~unread]
        known = np.split(keys.tokens(read), np.cumsum(keys.lengths(read))[:-1])
        others = np.delete(np.arange(former.n_items), addition.replaced)
        n_tokens = int(keys.lengths(others).sum()) + sum(map(len, known))
        new: list[np.ndarray] | None = []
        if unread.any():
            encoder = former.load(DensePart(self.group)).encoder
            room = MOST_TOKENS - n_tokens
            new = item_tokens(encoder, addition.new_fields, progress, room=room)
        if new is None:
            return
        rest = {True: iter(new), False: iter(known)}
        spans = [next(rest[is_new]) for is_new in unread.tolist()]
        indptr = np.cumsum([0, *map(len, spans)], dtype=np.int64)
        stored = np.concatenate([keys.stored[:0], *spans])
        self.put(contents, **{"token_indptr": indptr, self._kind(former.snapshot): stored})

    def merge(self, contents: BuildContents, build: BuildReader, progress: Progress) -> None:
        if build.snapshot.rows.is_plain:
            super().merge(contents, build, progress)
            return
        keys, every = self._keys(build.snapshot), np.arange(build.n_items)
        indptr = np.concatenate([[0], np.cumsum(keys.lengths(every))])
        arrays = {"token_indptr": indptr, self._kind(build.snapshot): keys.tokens(every)}
        self.put(contents, **arrays)

    def _keys(self, build: Snapshot, table: np.ndarray | None = None) -> TokenKeys:
        """The tokens of the base stay where they are; what was added is joined."""
        kind, sizes = self._kind(build), {} if table is None else {"table": len(table)}
        names = ("token_indptr", kind)
        (starts, stored), *others = (
            self.piece(segment, *names, **sizes).values() for segment in build.with_items
        )
        if build.rows.is_plain:
            return TokenKeys(starts, stored, table)
        indptr, added = [starts], [stored[:0]]
        for more_starts, more in others:
            indptr.append(more_starts[1:] + indptr[-1][-1])
            added.append(more)
        return TokenKeys(
            np.concatenate(indptr), stored, table, np.concatenate(added), build.rows.stored
        )

    def _kind(self, build: Snapshot) -> str:
        has_rows = build.base.has(self._name("token_rows"))
        return "token_rows" if has_rows else "token_vectors"
