"""Stochastic gradient descent over ratings, in blocks that threads work on in parallel."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

from qkvsearch._utils.compiled import compiled

Array = np.ndarray[Any, Any]

# Fewer ratings than this take less time than handing them to a thread.
MIN_BLOCK = 10_000
MAX_GROUPS = 32
ONE = np.float32(1)
# A bias has many ratings: at the full learning rate it would follow single ones.
BIAS_PACE = np.float32(0.3)


class LearnedParameters(NamedTuple):
    """What the descent changes, float32."""

    # (n_users,)
    user_biases: Array
    # (n_items,)
    item_biases: Array
    # (n_users, d)
    user_embeddings: Array
    # (n_items, d)
    item_embeddings: Array


class Ratings(NamedTuple):
    """The ratings of a group of items, by user, and the penalties that they bring. All groups share
    their arrays, but for `starts`.
    """

    # int64 (n_users + 1,): where each user's ratings of these items begin in the next two.
    starts: Array
    # int32 (n_ratings,) and float32 (n_ratings,)
    items: Array
    targets: Array
    # float32 (n_users, 2) and (n_items, 2), from `Penalties.per_rating`.
    user_shares: Array
    item_shares: Array


@dataclass(frozen=True)
class Penalties:
    """reg·(n + damping)·|x|² for an embedding x with n ratings, bias_reg·b² for a bias b."""

    reg: float
    damping: float
    bias_reg: float

    def per_rating(self, counts: np.ndarray) -> np.ndarray:
        """Return one rating's share in the penalties of its row's embedding and bias: (n, 2)."""
        n = np.maximum(counts, 1)
        shares = (self.reg * (1 + self.damping / n), self.bias_reg / n)
        return np.column_stack(shares).astype(np.float32)


@dataclass(frozen=True)
class Grid:
    """Blocks of ratings, groups of users by groups of items.

    Gemulla, Haas, Nijkamp and Sismanis 2011, "Large-Scale Matrix Factorization with Distributed
    Stochastic Gradient Descent", section 4.

    Blocks that share neither users nor items change different numbers, so their order does not
    matter, and any number of threads gives the same result. The number of groups depends on the
    ratings alone.
    """

    # The user rows of each group of users.
    user_groups: list[np.ndarray]
    # The ratings of each group of items.
    item_groups: list[Ratings]

    @classmethod
    def of(cls, ratings: csr_matrix, penalties: Penalties, n_groups: int) -> Self:
        """Arrange ratings (n_users, n_items) in blocks."""
        n_users, n_items = ratings.shape
        user_counts = np.diff(ratings.indptr)
        item_counts = np.bincount(ratings.indices, minlength=n_items)
        # All ratings of the first group of items by user, then those of the next.
        group = balanced_groups(item_counts, n_groups)[ratings.indices]
        rows = np.repeat(np.arange(n_users), user_counts) + n_users * group
        arranged = coo_matrix(
            (ratings.data, (rows, ratings.indices)), (n_groups * n_users, n_items)
        ).tocsr()
        starts = np.arange(n_groups)[:, None] * n_users + np.arange(n_users + 1)
        # One integer type each, so that the kernel is compiled once.
        starts_of_groups = arranged.indptr.astype(np.int64)[starts]
        items = arranged.indices.astype(np.int32, copy=False)
        user_shares = penalties.per_rating(user_counts)
        item_shares = penalties.per_rating(item_counts)
        user_group = balanced_groups(user_counts, n_groups)
        rated = user_counts > 0
        return cls(
            user_groups=[np.flatnonzero(rated & (user_group == g)) for g in range(n_groups)],
            item_groups=[
                Ratings(starts_of_group, items, arranged.data, user_shares, item_shares)
                for starts_of_group in starts_of_groups
            ],
        )

    def descend(
        self, learned: LearnedParameters, rate: float, rng: np.random.Generator, pool: Executor
    ) -> None:
        """Run one epoch in place: each rating once, users and blocks in a new random order."""
        n_groups = len(self.user_groups)
        orders = [rng.permutation(group) for group in self.user_groups]

        def descend_block(user_group: int, item_group: int) -> None:
            ratings = self.item_groups[item_group]
            descend(orders[user_group], ratings, learned, np.float32(rate))

        groups_in_order = np.arange(n_groups)
        for shift in rng.permutation(n_groups):
            list(pool.map(descend_block, groups_in_order, (groups_in_order + shift) % n_groups))


def group_count(n_ratings: int) -> int:
    """Return the number of groups of users, and of items: a power of two, which limits the threads.

    It grows with the cube root of the ratings only, so that the blocks, and a user's ratings in a
    block, grow too, since few ratings in a row cost time.

    >>> group_count(5_000), group_count(80_000), group_count(800_000), group_count(10**9)
    (1, 2, 4, 32)
    """
    groups = (max(n_ratings, MIN_BLOCK) / MIN_BLOCK) ** (1 / 3)
    return min(MAX_GROUPS, 2 ** round(np.log2(groups)))


def balanced_groups(counts: np.ndarray, n_groups: int) -> np.ndarray:
    """Return a group number (n,) for each row, such that groups have about equally many ratings.

    Rows are given out from the most ratings to the fewest, forward and backward over the groups.

    >>> balanced_groups(np.array([9, 7, 5, 3]), 2).tolist()
    [0, 1, 1, 0]
    """
    forward = np.arange(n_groups)
    dealt = np.resize(np.concatenate([forward, forward[::-1]]), len(counts))
    groups = np.empty(len(counts), dtype=np.int64)
    groups[np.argsort(-counts, kind="stable")] = dealt
    return groups


@compiled
def product(left: Array, right: Array) -> np.float32:
    """Return the dot product of two vectors (d,)."""
    total = np.float32(0)
    for j in range(len(left)):
        total += left[j] * right[j]
    return total


@compiled
def descend(order: Array, ratings: Ratings, learned: LearnedParameters, rate: np.float32) -> None:
    """Run stochastic gradient descent, in place, on the ratings of the users in `order`.

    Each rating updates its two biases and two vectors: x += rate·(error·∂r̂/∂x − share·x). The loop
    that updates a user's vector p also computes its product with the next item's vector, so that p
    is read once, not twice.
    """
    user_biases, item_biases = learned.user_biases, learned.item_biases
    user_embeddings, item_embeddings = learned.user_embeddings, learned.item_embeddings
    items, targets = ratings.items, ratings.targets
    user_shares, item_shares = ratings.user_shares, ratings.item_shares
    d = user_embeddings.shape[1]
    bias_rate = BIAS_PACE * rate
    for user in order:
        start, end = ratings.starts[user], ratings.starts[user + 1]
        if start == end:
            continue
        p, bias = user_embeddings[user], user_biases[user]
        p_decay = ONE - rate * user_shares[user, 0]
        bias_decay = ONE - bias_rate * user_shares[user, 1]
        affinity = product(p, item_embeddings[items[start]])
        for k in range(start, end):
            item = items[k]
            q = item_embeddings[item]
            following = item_embeddings[items[min(k + 1, end - 1)]]
            error = targets[k] - bias - item_biases[item] - affinity
            bias = bias_decay * bias + bias_rate * error
            item_decay = ONE - bias_rate * item_shares[item, 1]
            item_biases[item] = item_decay * item_biases[item] + bias_rate * error
            q_decay = ONE - rate * item_shares[item, 0]
            pull = rate * error
            affinity = np.float32(0)
            for j in range(d):
                p_before, q_before = p[j], q[j]
                p_now = p_decay * p_before + pull * q_before
                affinity += p_now * following[j]
                p[j] = p_now
                q[j] = q_decay * q_before + pull * p_before
        user_biases[user] = bias
