"""Keys that are not on this machine: candidates are asked for, and scored here, exactly.

What is asked for are the best items of each head. All heads then score the same items: the
candidates of all of them, and a sample by which what needs all items is known well enough, such as
the sum of a softmax. Mean and deviation of a head over all items need no item: with the keys' mean
μ and covariance Σ, they are q·μ and √(qᵀΣq).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from qkvsearch.retrieval.fusion import LEAST_SPREAD, Scores
from qkvsearch.retrieval.keys import product_parts
from qkvsearch.retrieval.scope import Scope
from qkvsearch.retrieval.score_components import PartsOf
from qkvsearch.retrieval.topk import top_k
from qkvsearch.text.labelled import LabelledVectors

# The items that each head is asked for, and those that are drawn to stand for all others.
CANDIDATES, DRAWN = 400, 8192
# Where the best items might be others, each is asked for twice as many, up to so many.
MOST_CANDIDATES = 6400
# Where many hits are wanted, each head is asked for so many times as many.
SPARE = 2
# Rows that are read at a time where all are.
BLOCK = 4096


@dataclass(frozen=True)
class Allowed:
    """Which items a query may find. mask: bool (n_items,), None for all. where: the condition that
    is in the mask, for whoever can look for no others in the first place. k: how many are wanted.
    """

    mask: np.ndarray | None = None
    where: Any = None
    k: int = 0

    def only(self, others: np.ndarray) -> Allowed:
        """Of these items, bool (n_items,), alone."""
        return replace(self, mask=others if self.mask is None else self.mask & others)

    @property
    def is_all(self) -> bool:
        return self.mask is None or bool(self.mask.all())


EVERY = Allowed()


class KeyStore(Protocol):
    """Where the keys of a build's items are. Items go by their rows in the build."""

    @property
    def n_items(self) -> int: ...

    def nearest(self, head: str, query: Any, k: int, allowed: Allowed) -> np.ndarray:
        """The k best items by query · key, int64, best first; fewer where fewer are allowed. query:
        float32 (d,), or of a sparse head the weight of each term.
        """

    def above(self, head: str, query: Any, level: float) -> np.ndarray:
        """All items with a score above a level, int64."""

    def rows(self, head: str, positions: np.ndarray) -> np.ndarray:
        """The keys of these items, float32 (n, d)."""


@dataclass(frozen=True)
class RemoteRows:
    """The keys of a dense head as an array (n_items, d), of which is read what is asked for."""

    store: KeyStore
    head: str
    width: int
    dtype = np.dtype(np.float32)
    ndim = 2

    def __len__(self) -> int:
        return self.store.n_items

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.width

    def __getitem__(self, rows: Any) -> np.ndarray:
        if isinstance(rows, (int, np.integer)):
            return self[[rows]][0]
        positions = np.arange(len(self))[rows]
        blocks = [positions[i : i + BLOCK] for i in range(0, len(positions), BLOCK)]
        found = [self.store.rows(self.head, block) for block in blocks]
        return np.concatenate([np.zeros((0, self.width), np.float32), *found])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype)


# Keys (n, d), be they here or elsewhere.
Rows: TypeAlias = np.ndarray | RemoteRows


class Unscored(ABC):
    """One query of one head, before it is known which items are scored. drawn: the rows of the
    items that stand for all others, None for a head that can do without.
    """

    @property
    def drawn(self) -> np.ndarray | None:
        return None

    @abstractmethod
    def best(self, k: int, allowed: Allowed) -> np.ndarray:
        """Rows of the k best items, best first."""

    @abstractmethod
    def within(self, scope: Scope) -> Scores:
        """The exact scores of the items of a scope."""

    @abstractmethod
    def above(self, level: float) -> np.ndarray:
        """bool (n_items,): the items with a score above a level."""


@dataclass(frozen=True)
class RemoteKeys:
    """As `DenseKeys`, elsewhere. mean: float64 (d,). covariance: float64 (d, d), both of all items.
    sample: the rows of the items that are drawn, (m,), with their keys on the first use.
    """

    vectors: RemoteRows
    mean: np.ndarray
    covariance: np.ndarray
    drawn: np.ndarray

    @cached_property
    def _drawn_keys(self) -> np.ndarray:
        return self.vectors[self.drawn]

    def head(
        self,
        name: str,
        query: LabelledVectors,
        pieces_of: Callable[[int], LabelledVectors] | None = None,
    ) -> RemoteQuery | None:
        """The query, to be scored with others; None where it is empty."""
        return RemoteQuery(name, self, query, pieces_of) if len(query) else None

    def at(self, positions: np.ndarray) -> np.ndarray:
        """The keys of these items; those that are drawn are read once."""
        places = np.minimum(np.searchsorted(self.drawn, positions), len(self.drawn) - 1)
        is_drawn = self.drawn[places] == positions
        found = np.empty((len(positions), self.vectors.width), np.float32)
        found[is_drawn] = self._drawn_keys[places[is_drawn]]
        found[~is_drawn] = self.vectors[positions[~is_drawn]]
        return found


@dataclass(frozen=True)
class RemoteQuery(Unscored):
    """An `Unscored` dense head."""

    name: str
    keys: RemoteKeys
    query: LabelledVectors
    pieces_of: Callable[[int], LabelledVectors] | None = None
    parts: PartsOf | None = None

    @cached_property
    def vector(self) -> np.ndarray:
        return self.query.total.astype(np.float32)

    @property
    def store(self) -> KeyStore:
        return self.keys.vectors.store

    @property
    def drawn(self) -> np.ndarray:
        return self.keys.drawn

    def best(self, k: int, allowed: Allowed) -> np.ndarray:
        return self.store.nearest(self.keys.vectors.head, self.vector, k, allowed)

    def above(self, level: float) -> np.ndarray:
        found = np.zeros(self.store.n_items, dtype=bool)
        found[self.store.above(self.keys.vectors.head, self.vector, level)] = True
        return found

    def within(self, scope: Scope) -> Scores:
        scores = self.keys.at(scope.items) @ self.vector
        mean = float(self.vector @ self.keys.mean)
        variance = float(self.vector @ self.keys.covariance @ self.vector)
        deviation = math.sqrt(max(variance, 0.0))
        level = mean, deviation if deviation > LEAST_SPREAD * np.abs(scores).max() else 0.0
        parts = self.parts or product_parts(self.name, self.query, self.pieces_of or self._whole)
        return Scores(self.name, scores, parts, scope=scope, level=level)

    def _whole(self, position: int) -> LabelledVectors:
        return LabelledVectors([None], self.keys.at(np.array([position])))


@dataclass(frozen=True)
class RemoteWords(Unscored):
    """An `Unscored` sparse head, whose `whole` head is at hand, as the words of all items are: it
    scores the candidates, which are those of the store. also: rows of items that are candidates
    besides.
    """

    whole: Scores
    store: KeyStore
    query: Mapping[str, float]
    also: np.ndarray

    def best(self, k: int, allowed: Allowed) -> np.ndarray:
        found = (
            self.store.nearest(self.whole.name, self.query, k, allowed) if self.query else self.also
        )
        return np.union1d(found, self.also)

    def above(self, level: float) -> np.ndarray:
        return self.whole.above(level)

    def within(self, scope: Scope) -> Scores:
        return self.whole.within(scope)


def scored(
    heads: Mapping[str, Scores | Unscored | None],
    allowed: Allowed = EVERY,
    preferred: np.ndarray | None = None,
) -> Iterator[dict[str, Scores | None]]:
    """Heads as they are, once, where all of them score all items. Otherwise each one scores the
    candidates of all, the best items and the best of those that are allowed, and the sample; and of
    twice as many candidates each time that more are asked for. preferred: bool (n_items,), items of
    which the best are candidates besides.
    """
    known = [head for head in heads.values() if head is not None]
    samples = [head.drawn for head in known if isinstance(head, Unscored)]
    drawn = next((sample for sample in samples if sample is not None), None)
    if drawn is None:
        yield {name: _whole(head) for name, head in heads.items()}
        return
    n = max(CANDIDATES, SPARE * allowed.k)
    while True:
        found = [_best(head, n, allowed) for head in known]
        more = [] if allowed.is_all else [_best(head, 1, EVERY) for head in known]
        if preferred is not None:
            more += [_best(head, n, allowed.only(preferred)) for head in known]
        scope = Scope.of(np.concatenate([*found, *more]), drawn, _n_items(known))
        last = {id(head): of[-1] for head, of in zip(known, found, strict=True) if len(of) >= n}
        yield {
            name: None if head is None else _bounded(head, scope, allowed, last.get(id(head)))
            for name, head in heads.items()
        }
        if n >= MOST_CANDIDATES:
            return
        n *= 2


def _bounded(head: Scores | Unscored, scope: Scope, allowed: Allowed, last: int | None) -> Scores:
    """A head's scores of a scope, and what it gives no other item that is allowed more than. last:
    its worst candidate, None where it has no others.
    """
    found = head.within(scope)
    if isinstance(head, RemoteQuery):
        place = scope.places(np.array([] if last is None else [last], np.int64))
        beyond = float(found.scores[place].min(initial=math.inf)) if len(place) else -math.inf
        return replace(found, beyond=beyond)
    others = np.ones(scope.n_items, bool) if allowed.mask is None else allowed.mask.copy()
    others[scope.items] = False
    whole = _whole(head)
    assert whole is not None
    return replace(found, beyond=float(whole.scores[others].max(initial=-math.inf)))


def _whole(head: Scores | Unscored | None) -> Scores | None:
    if isinstance(head, RemoteWords):
        return head.whole
    assert not isinstance(head, Unscored)
    return head


def _n_items(heads: Sequence[Scores | Unscored]) -> int:
    return next(head.store.n_items for head in heads if isinstance(head, RemoteQuery))


def _best(head: Scores | Unscored, k: int, allowed: Allowed) -> np.ndarray:
    if isinstance(head, Scores):
        return top_k(head.scores, k, head.allowed(allowed.mask))
    return head.best(k, allowed)
