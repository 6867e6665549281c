"""The compiled part of `ItemNeighbours`: the neighbours of an item, and their weights.

Catalogs of two sizes are solved in two ways. `solve_by_gram` reads the Gram matrix of all items,
which `add_gram_rows` has counted. `solve_by_pairs` counts what an item needs, for one item after
another, from the interactions or from a sample of them.

Compiled functions release Python's lock (GIL), so threads run them in parallel. What they compute
for an item does not depend on other items, so the result is the same for any number of threads.
"""

from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.compiled import compiled
from qkvsearch.models.pairs import Pairs

Array = np.ndarray[Any, Any]

# No item has so many pairs of interactions: its users are never sampled.
ALL_PAIRS = 2**62
# Multiplier and modulus of a hash that samples users evenly.
HASH, MASK = np.uint64(2654435761), np.uint64(2**32 - 1)


class Regression(NamedTuple):
    """What the equations of all items have in common."""

    # float32 (n_items,): the length of each item's column.
    norms: Array
    # The λ and the dropout of `ItemNeighbours`.
    penalty: float
    dropout: float


class Solution(NamedTuple):
    """The neighbours and the weights of all items, written item by item."""

    # int32 (n_items, k): the items, ascending; −1 where an item has fewer than k neighbours.
    neighbours: Array
    # float32 (n_items, k)
    weights: Array


class CountBuffers(NamedTuple):
    """What one thread counts co-occurrences in."""

    # float32 (n_items,): zeros between two items.
    sums: Array
    # int32 (n_items,): the items with a sum, in order of their first pair.
    touched: Array
    # How many pairs are counted for an item; of an item with more, a sample of the users.
    max_pairs: int


class EntryBuffers(NamedTuple):
    """What one thread sorts the entries of some columns in, by user. An entry is a row of the Gram
    matrix and a value; the entries of a user lie side by side.
    """

    # int32 (n_users,): where the entries of each user end; zeros between two items.
    ends: Array
    # int32 (max_entries,): the users with entries, in the order in which they were met.
    users: Array
    # int32 (max_entries,) and float32 (max_entries,)
    rows: Array
    values: Array


@compiled
def is_sampled(user: int, share: float) -> bool:
    """Return whether a user is in a sample of this share of all users."""
    return bool(share >= 1.0 or np.uint64(user) * HASH & MASK < share * MASK)


@compiled
def add_cooccurrences(
    item: int, by_item: Pairs, by_user: Pairs, max_pairs: int, sums: Array, touched: Array
) -> int:
    """Add Σ_u c_ui·c_uj of an item j with every item i to `sums` (n_items,), zeros before.

    Write the items with a sum to `touched`, and return their number. If the users have more than
    `max_pairs` items in all, a sample of them is counted.
    """
    begin, end = by_item.starts[item], by_item.starts[item + 1]
    n_pairs = 0
    for p in range(begin, end):
        user = by_item.columns[p]
        n_pairs += by_user.starts[user + 1] - by_user.starts[user]
    share = max_pairs / max(n_pairs, 1)
    n_touched = 0
    for p in range(begin, end):
        user = by_item.columns[p]
        if not is_sampled(user, share):
            continue
        for q in range(by_user.starts[user], by_user.starts[user + 1]):
            other = by_user.columns[q]
            if sums[other] == 0:
                touched[n_touched] = other
                n_touched += 1
            sums[other] += by_item.confidences[p] * by_user.confidences[q]
    return n_touched


@compiled
def nearest(item: int, sums: Array, touched: Array, norms: Array, k: int) -> Array:
    """Return the items (≤ k,) with the highest cosine to an item, ascending. Of items with equal
    cosines, those that come first are taken.
    """
    candidates = np.empty(len(touched), touched.dtype)
    cosines = np.empty(len(touched), np.float32)
    n = 0
    for other in touched:
        if other != item and norms[other] > 0:
            candidates[n] = other
            # Without the norm of the item itself, which changes no order.
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
def sparse_gram(columns: Array, by_item: Pairs, entries: EntryBuffers, gram: Array) -> float:
    """Write the lower triangle of the Gram matrix of some columns of X to `gram` (k, k).

    The entries of the columns are sorted by user, and the products of each user's pairs are added
    up. If there are more entries than the buffers hold, a sample of the users is counted. Return
    the share of users in it.
    """
    share = share_that_fits(columns, by_item, len(entries.values))
    n_users = count_entries(columns, by_item, share, entries)
    counts_to_starts(entries.users[:n_users], entries.ends)
    place_entries(columns, by_item, share, entries)
    k = len(columns)
    gram[:k, :k] = 0
    add_products(entries.users[:n_users], entries, gram)
    return share


@compiled
def share_that_fits(columns: Array, by_item: Pairs, max_entries: int) -> float:
    """Return the share of users whose entries in these columns are `max_entries` at most."""
    n_entries = 0
    for column in columns:
        n_entries += by_item.starts[column + 1] - by_item.starts[column]
    if n_entries <= max_entries:
        return 1.0
    # A little less than fits, since a sample varies.
    return 0.9 * max_entries / n_entries


@compiled
def count_entries(columns: Array, by_item: Pairs, share: float, entries: EntryBuffers) -> int:
    """Count the entries of each sampled user in `ends`, and list these users in `users`. Return
    their number.
    """
    n = n_users = 0
    for column in columns:
        for p in range(by_item.starts[column], by_item.starts[column + 1]):
            user = by_item.columns[p]
            # A sample may be larger than its share: entries beyond the buffers are left out.
            if n < len(entries.values) and is_sampled(user, share):
                if entries.ends[user] == 0:
                    entries.users[n_users] = user
                    n_users += 1
                entries.ends[user] += 1
                n += 1
    return n_users


@compiled
def counts_to_starts(users: Array, ends: Array) -> None:
    """Replace the counts of these users by where the entries of each begin, which is also where
    they end before any is placed.
    """
    begin = 0
    for user in users:
        count = ends[user]
        ends[user] = begin
        begin += count


@compiled
def place_entries(columns: Array, by_item: Pairs, share: float, entries: EntryBuffers) -> None:
    """Write the row and the value of each entry that was counted, behind those of its user."""
    n = 0
    for row in range(len(columns)):
        column = columns[row]
        for p in range(by_item.starts[column], by_item.starts[column + 1]):
            user = by_item.columns[p]
            if n < len(entries.values) and is_sampled(user, share):
                end = entries.ends[user]
                entries.rows[end] = row
                entries.values[end] = by_item.confidences[p]
                entries.ends[user] = end + 1
                n += 1


@compiled
def add_products(users: Array, entries: EntryBuffers, gram: Array) -> None:
    """Add the products of all pairs of entries of each user to the lower triangle of `gram`, and
    set their `ends` back to zero.
    """
    begin = 0
    for user in users:
        end = entries.ends[user]
        for first in range(begin, end):
            gram_row, value = gram[entries.rows[first]], entries.values[first]
            # The rows of a user ascend, so that these pairs are in the lower triangle.
            for second in range(begin, first + 1):
                gram_row[entries.rows[second]] += value * entries.values[second]
        begin = end
        entries.ends[user] = 0


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
def add_gram_rows(rows: Array, by_item: Pairs, by_user: Pairs, whole_gram: Array) -> None:
    """Write rows of the Gram matrix of all items (n_items, n_items), zeros before. No user is left
    out, since the rows have to fit one another.
    """
    touched = np.empty(whole_gram.shape[1], np.int32)
    for item in rows:
        add_cooccurrences(item, by_item, by_user, ALL_PAIRS, whole_gram[item], touched)


@compiled
def solve_by_gram(
    rows: Array, whole_gram: Array, regression: Regression, solution: Solution
) -> None:
    """Write the neighbours of these items and their weights, from the Gram matrix of all items."""
    k = solution.neighbours.shape[1]
    gram = np.zeros((k + 1, k + 1))
    columns = np.empty(k + 1, np.int32)
    for item in rows:
        touched = np.flatnonzero(whole_gram[item]).astype(np.int32)
        near = nearest(item, whole_gram[item], touched, regression.norms, k)
        n = len(near)
        if n == 0:
            continue
        columns[:n] = near
        columns[n] = item
        for a in range(n + 1):
            for b in range(a + 1):
                gram[a, b] = whole_gram[columns[a], columns[b]]
        solution.neighbours[item, :n] = near
        weights = solve(gram, n + 1, regression.penalty, regression.dropout)
        solution.weights[item, :n] = weights


@compiled
def solve_by_pairs(
    rows: Array,
    by_item: Pairs,
    by_user: Pairs,
    counts: CountBuffers,
    entries: EntryBuffers,
    regression: Regression,
    solution: Solution,
) -> None:
    """Write the neighbours of these items and their weights, from the interactions."""
    k = solution.neighbours.shape[1]
    gram = np.zeros((k + 1, k + 1))
    columns = np.empty(k + 1, np.int32)
    for item in rows:
        n_touched = add_cooccurrences(
            item, by_item, by_user, counts.max_pairs, counts.sums, counts.touched
        )
        touched = counts.touched[:n_touched]
        near = nearest(item, counts.sums, touched, regression.norms, k)
        for other in touched:
            counts.sums[other] = 0
        n = len(near)
        if n == 0:
            continue
        columns[:n] = near
        columns[n] = item
        share = sparse_gram(columns[: n + 1], by_item, entries, gram)
        solution.neighbours[item, :n] = near
        # The sums over a share of the users are about that share of the sums over all.
        weights = solve(gram, n + 1, regression.penalty * share, regression.dropout)
        solution.weights[item, :n] = weights
