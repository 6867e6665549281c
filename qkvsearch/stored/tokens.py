"""The stored tokens of every item, which late interaction compares in a second pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qkvsearch.progress import Progress
from qkvsearch.retrieval.late_interaction import MOST_TOKENS, TokenKeys, item_tokens
from qkvsearch.stored.dense import DensePart
from qkvsearch.stored.part import BuildReader, Change, StoredPart
from qkvsearch.workspace import BuildContents


@dataclass(frozen=True)
class TokensPart(StoredPart[TokenKeys]):
    """`group` is the dense head whose encoder makes them: rows of its table, or vectors."""

    arrays: ClassVar = ("token_indptr", "token_rows", "token_vectors")

    def store(self, contents: BuildContents, keys: TokenKeys) -> None:
        kind = "token_vectors" if keys.table is None else "token_rows"
        self.put(contents, **{"token_indptr": keys.indptr, kind: keys.stored})

    def load(self, build: BuildReader) -> TokenKeys:
        indptr, stored = self.read_all(build.snapshot).values()
        return TokenKeys(indptr, stored, build.load(DensePart(self.group)).encoder.table)

    def revise(self, contents: BuildContents, change: Change, progress: Progress) -> None:
        """Each item's span of rows in its new place, and between them those of the new texts; none
        at all where that is more than a build keeps.
        """
        if change.keeps_texts:
            self.share(contents, *self.arrays)
            return
        (_, starts), (kind, stored) = self.read_all(change.former.snapshot).items()
        read = change.read
        lengths = np.where(change.unread, 0, np.diff(starts)[read])
        spans = [stored[:0]]
        if change.unread.any():
            found = item_tokens(
                change.former.load(DensePart(self.group)).encoder,
                change.new_fields,
                progress,
                room=MOST_TOKENS - int(lengths.sum()),
            )
            if found is None:
                return
            spans += found
            lengths[change.unread] = [len(span) for span in found]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        is_new = np.repeat(change.unread, lengths)
        origins = np.arange(indptr[-1]) + np.repeat(starts[read] - indptr[:-1], lengths)
        rows = np.empty((len(origins), *stored.shape[1:]), stored.dtype)
        rows[~is_new] = stored[origins[~is_new]]
        rows[is_new] = np.concatenate(spans)
        self.put(contents, **{"token_indptr": indptr.astype(starts.dtype), kind: rows})
