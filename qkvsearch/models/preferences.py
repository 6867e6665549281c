"""Preferences of users: item embeddings and item neighbours, and how much each of them counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.callbacks import Callback
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.models.item_neighbours import NeighbourWeights
from qkvsearch.models.user_vectors import ImplicitFactors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# The names of the heads of a recommendation.
COLLABORATIVE, NEIGHBOURS = HEADS = ("collaborative", "neighbours")
# The share of the embeddings where the log is too small to learn it.
DEFAULT_SHARE = 0.5
SHARES = np.linspace(0, 1, 11)
# The share of the interactions that is held out to learn by, of at most MAX_PAIRS interactions.
HELD_OUT, MAX_PAIRS = 0.2, 2_000_000
# Users whose held-out items are ranked; with fewer than MIN_USERS nothing is learned.
MAX_USERS, MIN_USERS = 2_000, 50
# Scores of users × items at a time, 16 MB, and in all.
MAX_SCORES, MAX_ALL_SCORES = 1 << 22, 1 << 28
# Items that are ranked, and the best of each head among which the best of any sum are.
DEPTH, CANDIDATES = 20, 100
# The score of an item of the history: lower than all others, and finite, so that 0 times it is 0.
HIDDEN = np.float32(-1e30)


@dataclass(frozen=True)
class HeadShares:
    """How much each head of a recommendation counts.

    shares: by head, they add up to 1. scales: by head, the standard deviation of a user's scores
    over all items, on average. alone: NDCG@20 on held-out interactions of each head and of the sum,
    "fused"; empty where too few users have any. All are empty where only embeddings were learned.
    """

    shares: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    alone: Mapping[str, float] = field(default_factory=dict)

    def factors(self) -> dict[str, float]:
        """Return what the scores of each head are multiplied by. The factors add up to 1, so that
        the sum is a mean: both heads predict 1 for an item that the user has, and 0 for others.

        >>> scales = {"collaborative": 0.3, "neighbours": 0.1}
        >>> HeadShares({"collaborative": 0.5, "neighbours": 0.5}, scales).factors()
        {'collaborative': 0.25, 'neighbours': 0.75}
        """
        # A scale of 0 is that of equal scores, which change no order.
        scaled = {name: share / (self.scales[name] or 1.0) for name, share in self.shares.items()}
        return {name: factor / sum(scaled.values()) for name, factor in scaled.items()}


@dataclass(frozen=True)
class Preferences:
    """What recommendations are scored with: embeddings, neighbours (None where only embeddings were
    learned), and the share of each.
    """

    factors: ImplicitFactors
    neighbours: NeighbourWeights | None = None
    shares: HeadShares = field(default_factory=HeadShares)

    def multipliers(self) -> dict[str, float]:
        """Return what the scores of each head are multiplied by."""
        return {COLLABORATIVE: 1.0} if self.neighbours is None else self.shares.factors()

    def scores(self, histories: csr_matrix) -> np.ndarray:
        """Return the fused scores of all items, float32 (n, n_items), for histories (n, n_items) of
        confidences.
        """
        scores = np.zeros(histories.shape, np.float32)
        for name, factor in self.multipliers().items():
            if factor:
                scores += np.float32(factor) * self.head_scores(name, histories)
        return scores

    def head_scores(self, name: str, histories: csr_matrix) -> np.ndarray:
        """Return the scores of one head, in its own units, float32 (n, n_items)."""
        if name == COLLABORATIVE:
            embeddings = self.factors.fold_in_many(histories).astype(np.float32)
            with one_blas_thread():
                items = self.factors.item_embeddings
                return embeddings @ items.T.astype(np.float32, copy=False)
        assert self.neighbours is not None
        return np.asarray((histories @ self.neighbours.matrix()).toarray(), dtype=np.float32)


def head_settings(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of `ImplicitALS` and those of `ItemNeighbours` among settings.

    >>> head_settings({"reg": 0.1, "n_neighbours": 50, "neighbour_reg": 5.0})
    ({'reg': 0.1}, {'n_neighbours': 50, 'reg': 5.0})
    """
    names = {"n_neighbours": "n_neighbours", "neighbour_reg": "reg"}
    of_neighbours = {name: settings[key] for key, name in names.items() if key in settings}
    return {key: settings[key] for key in settings if key not in names}, of_neighbours


def with_shares_for(
    preferences: Preferences, histories: csr_matrix, relevant: Sequence[np.ndarray]
) -> Preferences:
    """Return the preferences with the shares that are best for some users, of whom at most
    `MAX_USERS` count. histories: (n, n_items). relevant: the items to recommend to each user.
    """
    users = np.arange(0, len(relevant), 1 + (len(relevant) - 1) // MAX_USERS)
    histories, relevant = histories[users], [relevant[user] for user in users.tolist()]
    shares, alone = _learned_shares(preferences, histories, relevant)
    scales = _scales_of(preferences, histories)
    return replace(preferences, shares=HeadShares(shares, scales, alone))


def learn_preferences(
    confidences: csr_matrix,
    embeddings: Callable[[csr_matrix], ImplicitFactors],
    neighbours: Callable[[csr_matrix], NeighbourWeights],
    seed: int = 0,
    progress: Callback = lambda done, total: None,
) -> Preferences:
    """Learn embeddings and neighbours from confidences (n_users, n_items), and their shares from
    interactions that are held out from a first run of both.

    embeddings, neighbours: learn one head from a matrix.
    """
    progress(0, 1)
    held_out = _hold_out(confidences, seed)
    shares: dict[str, float] = {COLLABORATIVE: DEFAULT_SHARE, NEIGHBOURS: 1 - DEFAULT_SHARE}
    alone: dict[str, float] = {}
    if held_out is not None:
        train, users, relevant = held_out
        trial = Preferences(embeddings(train), neighbours(train))
        shares, alone = _learned_shares(trial, train[users], relevant)
    progress(1, 1)
    preferences = Preferences(embeddings(confidences), neighbours(confidences))
    preferences = replace(preferences, shares=HeadShares(shares, {}, alone))
    return with_scales(preferences, confidences, seed)


def with_scales(preferences: Preferences, confidences: csr_matrix, seed: int = 0) -> Preferences:
    """Return the preferences with the scales of the users with these confidences (n_users,
    n_items), and the learned shares.
    """
    scales = _scales(preferences, confidences, seed)
    return replace(preferences, shares=replace(preferences.shares, scales=scales))


def _hold_out(
    confidences: csr_matrix, seed: int
) -> tuple[csr_matrix, np.ndarray, list[np.ndarray]] | None:
    """Return confidences without those held out, users (n,), and the held-out items of each; None
    where there are too few users.
    """
    generator = np.random.default_rng(seed)
    lengths = np.diff(confidences.indptr)
    if confidences.nnz > MAX_PAIRS:  # some users with all that they have
        order = generator.permutation(len(lengths))
        confidences = confidences[np.sort(order[np.cumsum(lengths[order]) <= MAX_PAIRS])]
    is_held_out = generator.random(confidences.nnz) < HELD_OUT
    train = confidences.copy()
    train.data[is_held_out] = 0
    train.eliminate_zeros()
    held_out = confidences.copy()
    held_out.data[~is_held_out] = 0
    held_out.eliminate_zeros()
    users = np.flatnonzero((np.diff(train.indptr) > 0) & (np.diff(held_out.indptr) > 0))
    n_users = min(len(users), MAX_USERS, max(MIN_USERS, MAX_ALL_SCORES // confidences.shape[1]))
    if n_users < MIN_USERS:
        return None
    users = np.sort(generator.permutation(users)[:n_users])
    relevant = [held_out.indices[slice(*held_out.indptr[user : user + 2])] for user in users]
    return train, users, relevant


def _learned_shares(
    preferences: Preferences, histories: csr_matrix, relevant: Sequence[np.ndarray]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the share of each head, and the NDCG@20 of each head alone and of the sum.

    Of the shares whose NDCG@20 is within half a standard error of the best, the one nearest to
    equal shares is taken: with few users, the best may be so by chance (Breiman and others 1984,
    "Classification and Regression Trees", section 3.4.3, take a whole standard error).

    Only the best `CANDIDATES` of each head are ranked, among which the best of any sum nearly
    always are.
    """
    n, n_items = histories.shape
    gains = np.zeros((n, len(SHARES)))
    scales = _scales_of(preferences, histories)
    step, width = max(1, MAX_SCORES // n_items), min(CANDIDATES, n_items)
    for start in range(0, n, step):
        block = histories[start : start + step]
        by_head = []
        for name in HEADS:
            scores = preferences.head_scores(name, block) / np.float32(scales[name] or 1.0)
            scores[block.nonzero()] = HIDDEN
            by_head.append(scores)
        for row, items in enumerate(relevant[start : start + step]):
            best = [np.argpartition(scores[row], -width)[-width:] for scores in by_head]
            candidates = np.union1d(*best)
            is_relevant = np.isin(candidates, items)
            total = (1 / np.log2(np.arange(2, min(len(items), DEPTH) + 2))).sum()
            first, second = (scores[row, candidates] for scores in by_head)
            for index, share in enumerate(SHARES):
                fused = share * first + (1 - share) * second
                ranks = np.flatnonzero(is_relevant[np.argsort(-fused, kind="stable")[:DEPTH]])
                gains[start + row, index] = (1 / np.log2(ranks + 2)).sum() / total
    means = gains.mean(axis=0)
    highest = int(np.argmax(means))
    errors = (gains[:, [highest]] - gains).std(axis=0) / np.sqrt(n)
    good = np.flatnonzero(means[highest] - means <= errors / 2)
    chosen = int(good[np.argmin(np.abs(SHARES[good] - DEFAULT_SHARE))])
    share = float(SHARES[chosen])
    alone = {
        COLLABORATIVE: float(means[-1]), NEIGHBOURS: float(means[0]), "fused": float(means[chosen])
    }  # fmt: skip
    return {COLLABORATIVE: share, NEIGHBOURS: 1 - share}, alone


def _scales(preferences: Preferences, confidences: csr_matrix, seed: int) -> dict[str, float]:
    """Return the mean standard deviation of each head's scores, over users with a history."""
    users = np.flatnonzero(np.diff(confidences.indptr))
    n_users = min(len(users), MAX_USERS, max(MIN_USERS, MAX_ALL_SCORES // confidences.shape[1]))
    users = np.sort(np.random.default_rng(seed).permutation(users)[:n_users])
    return _scales_of(preferences, confidences[users])


def _scales_of(preferences: Preferences, histories: csr_matrix) -> dict[str, float]:
    """Return the standard deviation of the scores over all items, on average over histories."""
    n, n_items = histories.shape
    step = max(1, MAX_SCORES // n_items)
    totals = dict.fromkeys(HEADS, 0.0)
    for start in range(0, n, step):
        for name in HEADS:
            scores = preferences.head_scores(name, histories[start : start + step])
            totals[name] += float(scores.std(axis=1, dtype=np.float64).sum())
    return {name: total / max(n, 1) for name, total in totals.items()}
