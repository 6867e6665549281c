"""The preferences of users: what the heads of a recommendation learned, and what each counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from qkvsearch._utils.callbacks import Callback, Progress
from qkvsearch.models.recommend_head import FittedHead
from qkvsearch.models.recommend_heads import COLLABORATIVE, HEADS, NEIGHBOURS
from qkvsearch.models.user_vectors import ImplicitFactors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from qkvsearch.models.item_neighbours import NeighbourWeights

# The name of the sum of the heads, among their figures.
FUSED = "fused"
# The shares of a head that are compared.
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

# Learns one head from confidences (n_users, n_items).
Learner = Callable[["csr_matrix"], FittedHead]


@dataclass(frozen=True)
class HeadShares:
    """How much each head of a recommendation counts. All are empty where only embeddings were
    learned.
    """

    # By head; they add up to 1.
    shares: Mapping[str, float] = field(default_factory=dict)
    # By head, the standard deviation of a user's scores over all items, on average.
    scales: Mapping[str, float] = field(default_factory=dict)
    # NDCG@20 on held-out interactions of each head and of the sum, "fused"; empty where too few
    # users have any.
    alone: Mapping[str, float] = field(default_factory=dict)

    def factors(self) -> dict[str, float]:
        """Return what the scores of each head are multiplied by. The factors add up to 1, so that
        the sum is a mean: each head predicts 1 for an item that the user has, and 0 for others.

        >>> scales = {"collaborative": 0.3, "neighbours": 0.1}
        >>> HeadShares({"collaborative": 0.5, "neighbours": 0.5}, scales).factors()
        {'collaborative': 0.25, 'neighbours': 0.75}
        """
        # A scale of 0 is that of equal scores, which change no order.
        scaled = {name: share / (self.scales[name] or 1.0) for name, share in self.shares.items()}
        total = sum(scaled.values())
        return {name: factor / total for name, factor in scaled.items()}


@dataclass(frozen=True)
class Preferences:
    """What recommendations are scored with."""

    # By name: the embeddings always, and others where they were learned.
    heads: Mapping[str, FittedHead]
    shares: HeadShares = field(default_factory=HeadShares)

    @property
    def factors(self) -> ImplicitFactors:
        """The head of embeddings, which also compares items."""
        return cast(ImplicitFactors, self.heads[COLLABORATIVE])

    @property
    def neighbours(self) -> NeighbourWeights | None:
        """The head of item neighbours; None where only embeddings were learned."""
        return cast("NeighbourWeights | None", self.heads.get(NEIGHBOURS))

    def with_head(self, name: str, head: FittedHead) -> Preferences:
        """Return the preferences with another head of this name, in the same shares."""
        return replace(self, heads={**self.heads, name: head})

    def multipliers(self) -> dict[str, float]:
        """Return what the scores of each head are multiplied by."""
        if len(self.heads) == 1:
            return dict.fromkeys(self.heads, 1.0)
        return self.shares.factors()

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
        scores = self.heads[name].score_many(histories)
        if isinstance(scores, np.ndarray):
            return scores
        return np.asarray(scores.toarray(), dtype=np.float32)


# --- learning the heads ---


def settings_by_head(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the parameters of each head's estimator among settings.

    >>> settings_by_head({"reg": 0.1, "n_neighbours": 50, "neighbour_reg": 5.0})
    {'collaborative': {'reg': 0.1}, 'neighbours': {'n_neighbours': 50, 'reg': 5.0}}
    """
    by_head: dict[str, dict[str, Any]] = {name: {} for name in HEADS}
    owners = {setting: head for head in HEADS.values() for setting in head.parameters}
    for setting, value in settings.items():
        if setting in owners:
            owner = owners[setting]
            by_head[owner.name][owner.parameters[setting]] = value
        else:
            by_head[COLLABORATIVE][setting] = value
    return by_head


def learners(settings: Mapping[str, Any], seed: int, progress: Progress) -> dict[str, Learner]:
    """Return the function that learns each head, by name. settings: of all heads."""
    parameters = settings_by_head(settings)
    return {
        name: partial(
            head.learn,
            settings=parameters[name],
            seed=seed,
            callback=partial(progress, head.stage),
        )
        for name, head in HEADS.items()
    }


def learn_preferences(
    confidences: csr_matrix,
    learners: Mapping[str, Learner],
    seed: int = 0,
    progress: Callback = lambda done, total: None,
) -> Preferences:
    """Learn each head from confidences (n_users, n_items), and their shares from interactions that
    are held out from a first run of all heads.
    """
    progress(0, 1)
    held_out = _hold_out(confidences, seed)
    if held_out is None:
        learned = LearnedShares(dict.fromkeys(learners, 1 / len(learners)), {})
    else:
        trial = Preferences({name: learn(held_out.train) for name, learn in learners.items()})
        histories = held_out.train[held_out.users]
        learned = _learned_shares(trial, histories, held_out.relevant)
    progress(1, 1)
    heads = {name: learn(confidences) for name, learn in learners.items()}
    preferences = Preferences(heads, HeadShares(learned.shares, {}, learned.alone))
    return with_scales(preferences, confidences, seed)


def with_scales(preferences: Preferences, confidences: csr_matrix, seed: int = 0) -> Preferences:
    """Return the preferences with the scales of the users with these confidences (n_users,
    n_items), and the learned shares.
    """
    users = np.flatnonzero(np.diff(confidences.indptr))
    n_users = min(len(users), _most_users(confidences.shape[1]))
    users = np.sort(np.random.default_rng(seed).permutation(users)[:n_users])
    scales = _scales(preferences, confidences[users])
    return replace(preferences, shares=replace(preferences.shares, scales=scales))


# --- the shares of the heads ---


class HeldOut(NamedTuple):
    """Interactions that are held out, to learn the shares by."""

    # Confidences (n_users, n_items) without those that are held out.
    train: csr_matrix
    # The rows of the users who are ranked for, (n,).
    users: np.ndarray
    # The held-out items of each of them.
    relevant: list[np.ndarray]


class LearnedShares(NamedTuple):
    """The `shares` and `alone` of `HeadShares`."""

    shares: dict[str, float]
    alone: dict[str, float]


def with_shares_for(
    preferences: Preferences, histories: csr_matrix, relevant: Sequence[np.ndarray]
) -> Preferences:
    """Return the preferences with the shares that are best for some users, of whom at most
    `MAX_USERS` count. histories: (n, n_items). relevant: the items to recommend to each user.
    """
    users = np.arange(0, len(relevant), 1 + (len(relevant) - 1) // MAX_USERS)
    histories, relevant = histories[users], [relevant[user] for user in users.tolist()]
    learned = _learned_shares(preferences, histories, relevant)
    scales = _scales(preferences, histories)
    return replace(preferences, shares=HeadShares(learned.shares, scales, learned.alone))


def _most_users(n_items: int) -> int:
    """Return how many users are scored at most: fewer where there are many items."""
    return min(MAX_USERS, max(MIN_USERS, MAX_ALL_SCORES // n_items))


def _hold_out(confidences: csr_matrix, seed: int) -> HeldOut | None:
    """Hold out some interactions of each user; return None where there are too few users."""
    generator = np.random.default_rng(seed)
    lengths = np.diff(confidences.indptr)
    if confidences.nnz > MAX_PAIRS:  # some users with all that they have
        order = generator.permutation(len(lengths))
        confidences = confidences[np.sort(order[np.cumsum(lengths[order]) <= MAX_PAIRS])]
    is_held_out = generator.random(confidences.nnz) < HELD_OUT
    train = _without(confidences, is_held_out)
    held_out = _without(confidences, ~is_held_out)
    users = np.flatnonzero((np.diff(train.indptr) > 0) & (np.diff(held_out.indptr) > 0))
    n_users = min(len(users), _most_users(confidences.shape[1]))
    if n_users < MIN_USERS:
        return None
    users = np.sort(generator.permutation(users)[:n_users])
    relevant = [held_out.indices[slice(*held_out.indptr[user : user + 2])] for user in users]
    return HeldOut(train, users, relevant)


def _without(confidences: csr_matrix, left_out: np.ndarray) -> csr_matrix:
    """Return a matrix without the pairs that are left out, bool (nnz,)."""
    kept = confidences.copy()
    kept.data[left_out] = 0
    kept.eliminate_zeros()
    return kept


def share_grid(n_heads: int) -> np.ndarray:
    """Return the shares of the heads that are compared, (n, n_heads), in steps of a tenth. Each row
    adds up to 1.

    >>> share_grid(2)[:2].tolist(), len(share_grid(3))
    ([[0.0, 1.0], [0.1, 0.9]], 66)
    """
    tenths = range(len(SHARES))
    rows = []
    for of_others in product(tenths, repeat=n_heads - 1):
        if sum(of_others) < len(SHARES):
            shares = SHARES[list(of_others)]
            rows.append([*shares, max(1 - shares.sum(), 0.0)])
    return np.array(rows)


def _learned_shares(
    preferences: Preferences, histories: csr_matrix, relevant: Sequence[np.ndarray]
) -> LearnedShares:
    """Return the share of each head, and the NDCG@20 of each head alone and of the sum.

    Of the shares whose NDCG@20 is within half a standard error of the best, those nearest to equal
    shares are taken: with few users, the best may be so by chance (Breiman and others 1984,
    "Classification and Regression Trees", section 3.4.3, take a whole standard error).
    """
    names = list(preferences.heads)
    grid = share_grid(len(names))
    gains = _gains(preferences, histories, relevant, grid)
    means = gains.mean(axis=0)
    best = int(np.argmax(means))
    errors = (gains[:, [best]] - gains).std(axis=0) / np.sqrt(len(gains))
    good = np.flatnonzero(means[best] - means <= errors / 2)
    from_equal = np.abs(grid[good] - 1 / len(names)).max(axis=1)
    chosen = int(good[np.argmin(from_equal)])
    alone = {name: float(means[np.argmax(grid[:, i])]) for i, name in enumerate(names)}
    alone[FUSED] = float(means[chosen])
    return LearnedShares(dict(zip(names, grid[chosen].tolist(), strict=True)), alone)


def _gains(
    preferences: Preferences,
    histories: csr_matrix,
    relevant: Sequence[np.ndarray],
    grid: np.ndarray,
) -> np.ndarray:
    """Return the NDCG@20 of each user's ranking with each row of shares, (n, len(grid))."""
    n, n_items = histories.shape
    gains = np.zeros((n, len(grid)))
    scales = _scales(preferences, histories)
    step = max(1, MAX_SCORES // n_items)
    for start in range(0, n, step):
        block = histories[start : start + step]
        scores_by_head = []
        for name in preferences.heads:
            scores = preferences.head_scores(name, block) / np.float32(scales[name] or 1.0)
            scores[block.nonzero()] = HIDDEN
            scores_by_head.append(scores)
        for row, items in enumerate(relevant[start : start + step]):
            scores_of_user = [scores[row] for scores in scores_by_head]
            gains[start + row] = _gains_of_user(scores_of_user, items, grid)
    return gains


def _gains_of_user(
    scores: Sequence[np.ndarray], relevant: np.ndarray, grid: np.ndarray
) -> list[float]:
    """Return the NDCG@20 with each row of shares, for one user's scores (n_items,) by each head.

    Only the best `CANDIDATES` of each head are ranked, among which the best of any sum nearly
    always are.
    """
    width = min(CANDIDATES, len(scores[0]))
    best = [np.argpartition(each, -width)[-width:] for each in scores]
    candidates = np.unique(np.concatenate(best))
    is_relevant = np.isin(candidates, relevant)
    of_candidates = [each[candidates] for each in scores]
    ideal = (1 / np.log2(np.arange(2, min(len(relevant), DEPTH) + 2))).sum()
    gains = []
    for shares in grid:
        fused = sum(share * of_head for share, of_head in zip(shares, of_candidates, strict=True))
        order = np.argsort(-np.asarray(fused), kind="stable")[:DEPTH]
        ranks = np.flatnonzero(is_relevant[order])
        gains.append(float((1 / np.log2(ranks + 2)).sum() / ideal))
    return gains


def _scales(preferences: Preferences, histories: csr_matrix) -> dict[str, float]:
    """Return the standard deviation of each head's scores over all items, on average over
    histories.
    """
    n, n_items = histories.shape
    step = max(1, MAX_SCORES // n_items)
    totals = dict.fromkeys(preferences.heads, 0.0)
    for start in range(0, n, step):
        for name in totals:
            scores = preferences.head_scores(name, histories[start : start + step])
            totals[name] += float(scores.std(axis=1, dtype=np.float64).sum())
    return {name: total / max(n, 1) for name, total in totals.items()}
