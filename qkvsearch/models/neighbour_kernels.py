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
    candidates = np.empty(len(touched), touched.dtype)
    cosines = np.empty(len(touched), np.float32)
    n = 0
    for other in touched:
        if other != item and norms[other] > 0:
            candidates[n] = other
            cosines[n] = sums[other] / norms[other]
            n += 1
    candidates, cosines = candidates[:n], cosines[:n]
    if n <= k:
        return np.sort(candidates)
    lowest = np.partition(cosines, n - k)[n - k]
    higher = candidates[cosines > lowest]
    equal = np.sort(candidates[cosines == lowest])
    return np.sort(np.concatenate((higher, equal[: k - len(higher)])))


@compiled
def sparse_gram(
    columns: Array,
    item_starts: Array,
    users: Array,
    item_values: Array,
    max_entries: int,
    ends: Array,
    entries: Array,
    entry_values: Array,
    gram: Array,
) -> float:
    """Write the Gram matrix of some columns of X to `gram` (k, k). If the columns have more than
    `max_entries` entries, a sample of the users is counted. Return the share of users in it.

    ends (n_users,): zeros, also afterwards. entries (2, max_entries) and entry_values
    (max_entries,): buffers. The entries are sorted by user, and the pairs of each user added up.
    """
    k, n_entries = len(columns), 0
    for column in columns:
        n_entries += item_starts[column + 1] - item_starts[column]
    # A little less than fits, since a sample varies.
    share = 1.0 if n_entries <= max_entries else 0.9 * max_entries / n_entries
    gram[:k, :k] = 0
    seen, rows = entries
    n = n_users = 0
    for column in columns:
        for p in range(item_starts[column], item_starts[column + 1]):
            user = users[p]
            if n < max_entries and is_sampled(user, share):
                if ends[user] == 0:
                    seen[n_users] = user
                    n_users += 1
                ends[user] += 1
                n += 1
    begin = 0
    for user in seen[:n_users]:
        begin, ends[user] = begin + ends[user], begin
    n = 0
    for a in range(k):
        for p in range(item_starts[columns[a]], item_starts[columns[a] + 1]):
            user = users[p]
            if n < max_entries and is_sampled(user, share):
                end = ends[user]
                rows[end], entry_values[end] = a, item_values[p]
                ends[user] = end + 1
                n += 1
    begin = 0
    for user in seen[:n_users]:
        for first in range(begin, ends[user]):
            row, value = gram[rows[first]], entry_values[first]
            for second in range(begin, first + 1):  # rows ascend: the lower triangle
                row[rows[second]] += value * entry_values[second]
        begin, ends[user] = ends[user], 0
    return share


@compiled
def solve(gram: Array, k: int, penalty: float, dropout: float) -> Array:
    """Return b (k − 1,) of (G + penalty·I + dropout·diag(G)) b = g.

    gram: the lower triangle of a Gram matrix (k, k); G is its first k − 1 rows and columns, g its
    last row.
    """
    n = k - 1
    for a in range(n):
        gram[a, a] += penalty + dropout * gram[a, a]
        for b in range(a):
            gram[b, a] = gram[a, b]
    return np.linalg.solve(np.ascontiguousarray(gram[:n, :n]), gram[n, :n])


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
    max_entries: int,
    whole_gram: Array,
    sums: Array,
    touched: Array,
    ends: Array,
    entries: Array,
    entry_values: Array,
    neighbours: Array,
    weights: Array,
) -> None:
    """Write the neighbours (n_items, k) of some items and their weights (n_items, k); neighbours
    that do not exist stay −1.

    max_pairs, max_entries: as in `add_cooccurrences` and `sparse_gram`. whole_gram: the Gram matrix
    of all items, or (0, 0). All from `sums` to `entry_values` are buffers.
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
                columns[: n + 1], item_starts, users, item_values, max_entries,
                ends, entries, entry_values, gram,
            )  # fmt: skip
        neighbours[item, :n] = near
        weights[item, :n] = solve(gram, n + 1, penalty * share, dropout)
