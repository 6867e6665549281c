"""The stored tokens of passages, which late interaction compares with a query's tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.heads.component import Addition, BuildModels, IndexComponent
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.late_interaction import LONGEST_PASSAGE, TokenKeys
from qkvsearch.heads.passage_encoding import encoded_passages
from qkvsearch.heads.passages import Passages, PassagesComponent
from qkvsearch.heads.tokens import TokensComponent, joined_tokens
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.array_spec import ArraySpec

STARTS, ROWS, VECTORS = "passage_token_indptr", "passage_token_rows", "passage_token_vectors"


@dataclass(frozen=True)
class PassageTokensComponent(IndexComponent[TokenKeys]):
    """The tokens of all units: rows of the encoder's table, or vectors. `group`: a dense head."""

    arrays: ClassVar = {
        STARTS: ArraySpec("i", ("passages",), rows="own", lists="tokens"),
        ROWS: ArraySpec("i", ("tokens",), rows="own", below="table"),
        VECTORS: ArraySpec("i", ("tokens", "components"), rows="own"),
    }

    def store(self, contents: BuildContents, tokens: Iterable[np.ndarray]) -> None:
        """Store the tokens of all passages, which may take more than memory."""
        self.put(contents, **_arrays_of(tokens))

    def load(self, models: BuildModels) -> TokenKeys:
        """Load the tokens of items and passages, by the numbers of units."""
        units = models.load(PassagesComponent())
        of_items = models.load(TokensComponent(self.group))
        starts = [of_items.indptr]
        rows = np.empty(len(units), np.int64)
        rows[: units.n_short] = (
            units.short_items if of_items.rows is None else of_items.rows[units.short_items]
        )
        pieces = list(self._pieces(models.snapshot))
        n_lists, n_tokens = len(of_items.indptr) - 1, of_items.indptr[-1]
        for (begins, _), numbers in zip(pieces, units.stored, strict=True):
            # A segment of items without long texts has no passages.
            starts.append(begins[1:] + n_tokens)
            own = np.flatnonzero(numbers >= 0)
            rows[numbers[own]] = n_lists + own
            n_lists += len(numbers)
            n_tokens += begins[-1]
        return replace(
            of_items,
            indptr=np.concatenate(starts),
            added=[*of_items.added, *(tokens for _, tokens in pieces)],
            rows=rows,
        )

    def new_rows(self, addition: Addition, progress: Progress) -> dict[str, np.ndarray]:
        """Copy the tokens of passages that are encoded already, and encode the others."""
        return _arrays_of(self._new_tokens(addition, progress), like=self._stored(addition))

    def joined(self, snapshot: Snapshot) -> dict[str, Any]:
        numbers = PassagesComponent().stored_units(snapshot)
        if len(numbers.item_of) == numbers.n_short:
            return dict.fromkeys(self.names_in(snapshot))
        pieces = list(self._pieces(snapshot))
        where: dict[int, tuple[int, int]] = {}
        for piece, units in enumerate(numbers.stored):
            where |= {unit: (piece, row) for row, unit in enumerate(units.tolist()) if unit >= 0}

        def tokens() -> Iterator[np.ndarray]:
            for unit in range(numbers.n_short, len(numbers.item_of)):
                piece, row = where[unit]
                starts, stored = pieces[piece]
                yield np.asarray(stored[starts[row] : starts[row + 1]])

        return _arrays_of(tokens())

    def _new_tokens(self, addition: Addition, progress: Progress) -> Iterator[np.ndarray]:
        """Yield the tokens of each new passage."""
        previous, unread = addition.previous, addition.unread
        split = Passages.of(addition.catalog.fields())
        units, keys = previous.load(PassagesComponent()), previous.load(self)
        new = split.of_items(unread)
        encoded: Iterator[np.ndarray] = iter(())
        if len(new):
            encoder = previous.load(DenseComponent(self.group)).encoder
            fields = new.fields(addition.new_fields)
            batches = encoded_passages(self.group, encoder, fields, progress, LONGEST_PASSAGE)
            encoded = (tokens for _, of_batch in batches for tokens in of_batch)
        for item, n in enumerate(np.diff(split.starts).tolist()):
            if unread[item]:
                for _ in range(n):
                    yield next(encoded)
            elif n:
                for unit in units.passages_of(int(addition.positions[item])).tolist():
                    yield keys.tokens(np.array([unit]))

    def _stored(self, addition: Addition) -> np.ndarray:
        return next(tokens for _, tokens in self._pieces(addition.previous.snapshot))

    def _pieces(self, snapshot: Snapshot) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield where the tokens of each passage of a segment begin, and the tokens."""
        (kind,) = (name for name in self.names_in(snapshot) if name != STARTS)
        for arrays, _ in self.pieces(snapshot, STARTS, kind):
            yield arrays[STARTS], arrays[kind]


def _arrays_of(
    tokens: Iterable[np.ndarray], like: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return the arrays of passages with these tokens. like: tokens of a segment, of which an
    array without passages has the shape.
    """
    of_passages = iter(tokens)
    first = next(of_passages, None)
    if first is None:
        assert like is not None
        starts, stored = np.zeros(1, np.int64), np.asarray(like[:0])
    else:
        starts, stored = joined_tokens(chain([first], of_passages))
    return {STARTS: starts, ROWS if stored.ndim == 1 else VECTORS: stored}
