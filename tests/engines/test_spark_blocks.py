"""What executors compute, without Spark: blocks alternate as `ImplicitALS` does on one machine."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from qkvsearch._utils.parameters import random_generator  # noqa: E402
from qkvsearch.collaborative.als import (  # noqa: E402
    AlternatingLeastSquares,
    auto_strengths,
    principal_axes,
)
from qkvsearch.collaborative.confidences import Feedback  # noqa: E402
from qkvsearch.data.interactions import Interactions  # noqa: E402
from qkvsearch.engines.spark import als, blocks, histories, solving  # noqa: E402

D, N_BLOCKS = 16, 5


@pytest.fixture(scope="module", params=["plain", "rated", "weighted"])
def log(request):
    rng = np.random.default_rng(1)
    n = 6000
    users, items = (200 * rng.random(n) ** 1.5).astype(int), (90 * rng.random(n) ** 2).astype(int)
    ratings = rng.integers(1, 6, n).astype(float) if request.param == "rated" else None
    weights = rng.exponential(3, n) if request.param == "weighted" else None
    scale = (1.0, 5.0) if request.param == "rated" else None
    return Interactions.from_columns(users, items, ratings=ratings, weights=weights, scale=scale)


def blocks_of(log):
    """The log in blocks of users, as executors make them."""
    shape = histories.LogShape(
        len(log.item_ids), log.ratings is not None, log.weights is not None, has_times=False
    )
    batches = []
    for block, users in enumerate(np.array_split(np.arange(len(log.user_ids)), N_BLOCKS)):
        rows = np.flatnonzero(np.isin(log.users, users))
        gaps = np.full(len(rows), np.nan)
        table = pa.table(
            {
                "part": np.zeros(len(rows), int),
                "row": rows,
                "user": np.array(list(log.user_ids))[log.users[rows]],
                "item": log.items[rows],
                "rating": gaps if log.ratings is None else log.ratings[rows].astype(float),
                "weight": gaps if log.weights is None else log.weights[rows].astype(float),
                "time": np.zeros(len(rows), int),
            }
        )
        row = histories.history_of(table, shape, block)
        batches.append(blocks.as_batch([row], histories.HISTORIES_SCHEMA))
    return batches


def added(batches, dtype=np.float64):
    return sum(np.frombuffer(batch.column(0)[0].as_py(), dtype) for batch in batches)


def described(log, batches, feedback):
    n_items = len(log.item_ids)
    counted = added(histories.count_pairs(feedback, n_items)(iter(batches)))
    sizes = {b: batch.column("n_users")[0].as_py() for b, batch in enumerate(batches)}
    n_users, n_likes, confidence = counted[-3:]
    return als.LogBlocks(
        None, N_BLOCKS, sizes, feedback, counted[n_items:-3].astype(int), int(n_users),
        int(n_likes), confidence / n_likes,
    )  # fmt: skip


def alternated(log, feedback, few, n_iterations=3):
    """The item embeddings after some iterations in blocks; few: all users go to each block."""
    batches = blocks_of(log)
    about = described(log, batches, feedback)
    n_items = int(np.count_nonzero(about.item_counts))
    alpha0, reg = auto_strengths(
        about.n_likes / about.n_active_users, about.mean_confidence, n_items
    )
    rng = random_generator(0)
    starts = als.starts_of(rng, about, D, 0.1)
    items = solving.Start(rng.bit_generator.state, D, 0.1).embeddings(about.item_counts)
    cuts = als.cuts_of(about.item_counts, 4)
    users = list(solving.make_users(feedback, starts, cuts, few)(iter(batches)))
    pieces = pa.Table.from_batches(
        solving.make_pieces(feedback, about.firsts, cuts, few)(iter(batches))
    )
    by_item = [solving.join_pieces(of_block(pieces, j)) for j in range(len(cuts) - 1)]
    turn = rotation = np.eye(D)

    def step(turn, values, n_others):
        return solving.HalfStep(
            turn.astype(np.float32), alpha0 * values, reg, alpha0 * n_others, 1.0, 2
        )

    for _ in range(n_iterations):
        values, axes = principal_axes(items)
        items, rotation = items @ axes.astype(np.float32), rotation @ axes
        half = step(turn @ axes, values, n_items)
        users = list(solving.solve_users(half, lambda items=items: items)(iter(users)))
        gram = added(batch.select(["gram"]) for batch in users).reshape(D, D)
        values, turn = als.axes_of(gram)
        half = step(turn, values, about.n_active_users)
        items, rotation = solve_items(half, users, by_item, items, cuts, few), rotation @ turn
    return items @ rotation.T.astype(np.float32)


def of_block(table, block):
    return table.filter(pa.compute.equal(table["block"], block))


def solve_items(step, users, by_item, items, cuts, few):
    if few:
        x = [np.frombuffer(batch.column("x")[0].as_py(), np.float32) for batch in users]
        everyone = np.concatenate(x).reshape(-1, D) @ step.turn
        solve = solving.solve_items(step, lambda: items, cuts, lambda: everyone)
        solved = [pa.Table.from_batches(solve(iter(block.to_batches()))) for block in by_item]
    else:
        sent = pa.Table.from_batches(solving.send_users(step.turn)(iter(users)))
        solve = solving.solve_items_with_sent(step, lambda: items, cuts)
        solved = [solve(block, of_block(sent, j)) for j, block in enumerate(by_item)]
    x = [np.frombuffer(table["x"][0].as_py(), np.float32) for table in solved]
    return np.concatenate(x).reshape(items.shape)


@pytest.mark.parametrize("few", [True, False], ids=["users broadcast", "users sent"])
def test_blocks_learn_what_one_machine_learns(log, few):
    feedback = Feedback.of(log)
    confidences = feedback.confidences(log.items, log.ratings, log.weights)
    local = AlternatingLeastSquares(D, max_iter=3, random_state=0).fit(log.matrix(confidences))
    in_blocks = alternated(log, feedback, few)
    np.testing.assert_allclose(in_blocks, local.item_embeddings_, atol=2e-5)


def test_blocks_hold_the_log_as_one_machine_has_it(log):
    parts = [histories.BlockHistory.of(batch.to_pylist()[0]) for batch in blocks_of(log)]
    for name in ("items", "ratings", "weights"):
        if getattr(log, name) is not None:
            in_blocks = np.concatenate([getattr(part, name) for part in parts])
            np.testing.assert_array_equal(in_blocks, getattr(log, name))


def test_random_starts_do_not_depend_on_blocks():
    expected = random_generator(3).standard_normal((50, 7), dtype=np.float32)
    about = als.LogBlocks(None, 3, {0: 20, 2: 29, 5: 1}, Feedback(), np.ones(2), 1, 1, 1.0)
    starts = als.starts_of(random_generator(3), about, 7, np.sqrt(7))
    rows = [starts[block].embeddings(np.ones(n)) for block, n in about.sizes.items()]
    np.testing.assert_array_equal(np.concatenate(rows), expected)


@pytest.mark.parametrize(
    ("n_pairs", "n_users", "n_blocks"),
    [
        (0, 0, 1), (100, 10, 1), (400_000, 10, 4), (10**7, 10, 4), (10**8, 10, 24),
        (2 * 10**7, 10**7, 153),
    ],
)  # fmt: skip
def test_blocks_are_as_few_as_fit_an_executor(n_pairs, n_users, n_blocks):
    """Two for each of two cores, or by 2²² pairs, or by 2¹⁶ users; not for fewer than 2¹⁷ pairs."""
    assert blocks.n_blocks_of(n_pairs, n_users, cores=2) == n_blocks


def test_blocks_pass_in_runs_that_fit():
    """By their bytes, in their order, none left out; one that is too large is alone."""
    n_bytes = {0: 4, 1: 6, 3: 1, 4: 20, 5: 3, 7: 7, 8: 1}
    assert blocks.runs_of(n_bytes, 10) == [[0, 1], [3], [4], [5, 7], [8]]
    assert blocks.runs_of({}, 10) == []


def test_blocks_of_items_have_about_as_many_pairs():
    counts = np.array([100, 1, 1, 50, 50, 0, 98])
    cuts = als.cuts_of(counts, 3)
    assert (cuts[0], cuts[-1]) == (0, len(counts))
    assert max(counts[a:b].sum() for a, b in pairwise(cuts)) <= 102


@pytest.mark.parametrize("n", [1, 1000, 1001])
def test_the_median_weight_comes_from_counts_of_bits(monkeypatch, n):
    weights = np.random.default_rng(0).exponential(2, n).astype(np.float32)
    weights[::10] *= -1  # taken back
    schema = pa.schema([("weights", pa.binary())])
    batches = [blocks.as_batch([{"weights": part}], schema) for part in np.array_split(weights, 4)]

    class Frame:
        def select(self, name):
            return self

        def mapInArrow(self, function, schema):
            return function(iter(batches))

    monkeypatch.setattr(histories, "summed", lambda arrays, n, dtype: added(arrays, dtype))
    positive = weights[weights > 0].astype(np.float64)
    expected = np.median(np.log(positive)) if len(positive) else None
    assert histories.median_log_weight(Frame(), 4) == pytest.approx(expected, abs=1e-12)
