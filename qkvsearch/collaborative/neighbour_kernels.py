"""The compiled part of `ItemNeighbours`: the neighbours of an item, and their weights.

Compiled functions release Python's lock (GIL), so threads run them in parallel. What they compute
for an item does not depend on other items, so the result is the same for any number of threads.
"""

from typing import Any

import numpy as np

from qkvsearch._utils.compiled import compiled

Array = np.ndarray[Any, Any]

# Multiplier and modulus of a hash that samples users evenly.
ALL_PAIRS = 2**62
HASH, MASK = np.uint64(2654435761), np.uint64(2**32 - 1)


@compiled
def is_sampled(user: int, share: float) -> bool:
    """Return whether a user is in a sample of this share of all users."""
    return bool(share >= 1.0 or np.uint64(user) * HASH & MASK < share * MASK)


@compiled
def add_cooccurrences(
    item: int,
    item_starts: Array,
    users: Array,
    item_values: Array,
    user_starts: Array,
    items: Array,
    user_values: Array,
    max_pairs: int,
    sums: Array,
    touched: Array,
) -> int:
    """Add Σ_u c_ui·c_uj of an item j with every item i to `sums` (n_items,), zeros before.

    Write the items with a sum to `touched`, and return their number. If the users have more than
    `max_pairs` items in all, a sample of them is counted.
    """
    begin, end = item_starts[item], item_starts[item + 1]
    n_pairs = 0
    for p in range(begin, end):
        n_pairs += user_starts[users[p] + 1] - user_starts[users[p]]
    share = max_pairs / max(n_pairs, 1)
    n_touched = 0
    for p in range(begin, end):
        user = users[p]
        first, last = user_starts[user], user_starts[user + 1]
        if not is_sampled(user, share):
            continue
        for q in range(first, last):
            other = items[q]
            if sums[other] == 0:
                touched[n_touched] = other
                n_touched += 1
            sums[other] += item_values[p] * user_values[q]
    return n_touched


@compiled
def nearest(item: int, sums: Array, touched: Array, norms: Array, k: int) -> Array:
    """Return the items (≤ k,) with the highest cosine to an item, ascending; of equal ones those
    that come first.
    """
    candidates = np.sort(touched)
    cosines = np.empty(len(candidates), np.float32)
    n = 0
    for other in candidates:
        if other != item and norms[other] > 0:
            candidates[n] = other
            cosines[n] = sums[other] / norms[other]
            n += 1
    if n <= k:
        return candidates[:n].copy()
    lowest = np.partition(cosines[:n], n - k)[n - k]
    n_equal = k - np.sum(cosines[:n] > lowest)
    chosen = np.empty(k, candidates.dtype)
    n_chosen = 0
    for c in range(n):
        if cosines[c] > lowest or (cosines[c] == lowest and n_equal > 0):
            if cosines[c] == lowest:
                n_equal -= 1
            chosen[n_chosen] = candidates[c]
            n_chosen += 1
    return chosen


@compiled
def sparse_gram(
    columns: Array,
    item_starts: Array,
    users: Array,
    item_values: Array,
    max_nodes: int,
    heads: Array,
    nodes: Array,
    node_values: Array,
    gram: Array,
) -> float:
    """Write the Gram matrix of some columns of X to `gram` (k, k). If the columns have more than
    `max_nodes` entries, a sample of the users is counted. Return the share of users in it.

    heads (n_users,): −1, also afterwards. nodes (3, max_nodes) and node_values (max_nodes,):
    buffers. The entries of each user are a linked list, whose pairs are added up.
    """
    k, n_entries = len(columns), 0
    for column in columns:
        n_entries += item_starts[column + 1] - item_starts[column]
    # A little less than fits, since a sample varies.
    share = 1.0 if n_entries <= max_nodes else 0.9 * max_nodes / n_entries
    gram[:k, :k] = 0
    n_nodes = n_users = 0
    for a in range(k):
        for p in range(item_starts[columns[a]], item_starts[columns[a] + 1]):
            user = users[p]
            if n_nodes == max_nodes or not is_sampled(user, share):
                continue
            if heads[user] < 0:
                nodes[2, n_users] = user
                n_users += 1
            nodes[0, n_nodes], nodes[1, n_nodes] = heads[user], a
            node_values[n_nodes] = item_values[p]
            heads[user] = n_nodes
            n_nodes += 1
    for u in range(n_users):
        node = heads[nodes[2, u]]
        heads[nodes[2, u]] = -1
        while node >= 0:
            row, value = nodes[1, node], node_values[node]
            other = node
            while other >= 0:  # columns descend along a list: the lower triangle
                gram[row, nodes[1, other]] += value * node_values[other]
                other = nodes[0, other]
            node = nodes[0, node]
    return share


@compiled
def solve(gram: Array, k: int, penalty: float, dropout: float) -> Array:
    """Return b (k − 1,) of (G + penalty·I) b = g, by Cholesky.

    gram: the lower triangle of a Gram matrix (k, k); G is its first k − 1 rows and columns, g its
    last row.
    """
    n = k - 1
    for a in range(n):
        gram[a, a] += penalty + dropout * gram[a, a]
        for b in range(a):
            gram[b, a] = gram[a, b]
    lower = np.linalg.cholesky(np.ascontiguousarray(gram[:n, :n]))
    solution = gram[n, :n].copy()
    for a in range(n):
        for b in range(a):
            solution[a] -= lower[a, b] * solution[b]
        solution[a] /= lower[a, a]
    for a in range(n - 1, -1, -1):
        solution[a] /= lower[a, a]
        for b in range(a):
            solution[b] -= lower[a, b] * solution[a]
    return solution


@compiled
def cooccurrence_rows(
    rows: Array,
    item_starts: Array,
    users: Array,
    item_values: Array,
    user_starts: Array,
    items: Array,
    user_values: Array,
    gram: Array,
) -> None:
    """Write rows of the Gram matrix of all items (n_items, n_items), zeros before. No user is left
    out, since the rows have to fit one another.
    """
    touched = np.empty(gram.shape[1], items.dtype)
    for item in rows:
        add_cooccurrences(
            item, item_starts, users, item_values, user_starts, items, user_values,
            ALL_PAIRS, gram[item], touched,
        )  # fmt: skip


@compiled
def solve_items(
    rows: Array,
    item_starts: Array,
    users: Array,
    item_values: Array,
    user_starts: Array,
    items: Array,
    user_values: Array,
    norms: Array,
    penalty: float,
    dropout: float,
    max_pairs: int,
    max_nodes: int,
    whole_gram: Array,
    sums: Array,
    touched: Array,
    heads: Array,
    nodes: Array,
    node_values: Array,
    neighbours: Array,
    weights: Array,
) -> None:
    """Write the neighbours (n_items, k) of some items and their weights (n_items, k); neighbours
    that do not exist stay −1.

    max_pairs, max_nodes: as in `add_cooccurrences` and `sparse_gram`. whole_gram: the Gram matrix
    of all items, or (0, 0). All from `sums` to `node_values` are buffers.
    """
    k = neighbours.shape[1]
    gram = np.zeros((k + 1, k + 1))
    columns = np.empty(k + 1, items.dtype)
    for item in rows:
        if len(whole_gram):
            touched = np.flatnonzero(whole_gram[item]).astype(items.dtype)
            near = nearest(item, whole_gram[item], touched, norms, k)
        else:
            n_touched = add_cooccurrences(
                item, item_starts, users, item_values, user_starts, items, user_values,
                max_pairs, sums, touched,
            )  # fmt: skip
            near = nearest(item, sums, touched[:n_touched], norms, k)
            for other in touched[:n_touched]:
                sums[other] = 0
        n = len(near)
        if n == 0:
            continue
        columns[:n] = near
        columns[n] = item
        share = 1.0
        if len(whole_gram):
            for a in range(n + 1):
                for b in range(a + 1):
                    gram[a, b] = whole_gram[columns[a], columns[b]]
        else:
            share = sparse_gram(
                columns[: n + 1], item_starts, users, item_values, max_nodes,
                heads, nodes, node_values, gram,
            )  # fmt: skip
        neighbours[item, :n] = near
        weights[item, :n] = solve(gram, n + 1, penalty * share, dropout)
