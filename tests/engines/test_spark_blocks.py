"""What executors compute, without Spark: blocks alternate as `ImplicitALS` does on one machine."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from qkvsearch.collaborative.als import (  # noqa: E402
    AlternatingLeastSquares,
    auto_strengths,
    principal_axes,
)
from qkvsearch.collaborative.confidences import Feedback  # noqa: E402
from qkvsearch.data.interactions import Interactions  # noqa: E402
from qkvsearch.engines.spark import histories, order, tables  # noqa: E402
from qkvsearch.engines.spark.learning import als, blocks, sides, solving  # noqa: E402
from qkvsearch.parameters import random_generator  # noqa: E402

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
        len(log.item_ids), True, log.ratings is not None, log.weights is not None, False
    )
    found = []
    for block, users in enumerate(np.array_split(np.arange(len(log.user_ids)), N_BLOCKS)):
        of_block = np.flatnonzero(np.isin(log.users, users))
        table = pa.table(
            {
                "row": pa.array(of_block),
                "user": pa.array(np.array(list(log.user_ids))[log.users[of_block]]),
                "item": pa.array(log.items[of_block], pa.int32()),
                "rating": numbers(log.ratings, of_block),
                "weight": numbers(log.weights, of_block),
                "time": pa.array(np.zeros(len(of_block), int)),
            }
        )  # fmt: skip
        row = histories.history_of(table, shape, block)
        found.append(tables.as_batch([row], histories.HISTORIES_SCHEMA))
    return found


def numbers(column, rows):
    """A column of a log's rows, gaps where it has none."""
    found = np.full(len(rows), np.nan) if column is None else column[rows]
    return pa.array(found, pa.float64())


def added(batches, dtype=np.float64):
    return sum(np.frombuffer(batch.column(0)[0].as_py(), dtype) for batch in batches)


def described(log, parts, feedback):
    n_items = len(log.item_ids)
    counted = added(histories.count_pairs(feedback, n_items)(iter(parts)))
    sizes = {b: batch.column("n_users")[0].as_py() for b, batch in enumerate(parts)}
    n_users, n_likes, confidence = counted[-3:]
    likes = counted[n_items:-3].astype(int)
    mean = confidence / n_likes
    return blocks.LogBlocks(
        None, N_BLOCKS, sizes, feedback, likes, int(n_users), int(n_likes), mean
    )


def alternated(log, feedback, *, ask, ask_items, n_iterations=3):
    """The item embeddings after some iterations in blocks, rows broadcast or asked for."""
    rows = blocks_of(log)
    about = described(log, rows, feedback)
    n_items = int(np.count_nonzero(about.item_counts))
    alpha0, reg = auto_strengths(
        about.n_counting / about.n_active_users, about.mean_confidence, n_items
    )
    rng = random_generator(0)
    starts = blocks.starts_of(rng, about, D, 0.1)
    items = sides.Start(blocks.state_of(rng), D, 0.1).rows(about.item_counts)
    cuts = blocks.cuts_of(about.item_counts, 4)
    users = list(sides.make_sides(feedback, starts, cuts, ask, ask_items)(iter(rows)))
    if not ask:  # few: the driver has the embeddings
        x = [starts[block].rows(np.ones(n)) for block, n in about.sizes.items()]
        users = list(map(with_x, users, x))
    pieces = list(sides.make_pieces(feedback, about.firsts, cuts, ask)(iter(rows)))
    wanted = list(sides.ask_for_items(feedback, cuts)(iter(rows)))
    by_item = [joined(pieces, "target", j, sides.join_pieces) for j in range(len(cuts) - 1)]
    turn = rotation = np.eye(D)
    for _ in range(n_iterations):
        values, axes = principal_axes(items)
        items, rotation = items @ axes.astype(np.float32), rotation @ axes
        step = solving.HalfStep(
            (turn @ axes).astype(np.float32), alpha0 * values, reg, alpha0 * n_items, 1.0, 2
        )
        users = solve_users(step, users, items, wanted, cuts, ask_items)
        gram = added(batch.select(["gram"]) for batch in users).reshape(D, D)
        values, axes = als.axes_of(gram)
        before, turn = items, axes
        items, rotation = items @ axes.astype(np.float32), rotation @ axes
        step = solving.HalfStep(
            axes.astype(np.float32), alpha0 * values, reg, alpha0 * about.n_active_users, 1.0, 2
        )
        for found in solve_items(step, users, by_item, before, cuts, ask):
            span = slice(cuts[found["block"]], cuts[found["block"] + 1])
            items[span] = np.frombuffer(found["x"], np.float32).reshape(-1, D)
    return items @ rotation.T.astype(np.float32)


def with_x(table, rows):
    """A block with these embeddings."""
    x = pa.array([rows.tobytes()], pa.binary())
    return table.set_column(table.schema.get_field_index("x"), "x", x)


def joined(batches, name, value, function):
    table = pa.Table.from_batches(batches)
    return function(table.filter(pa.compute.equal(table[name], value)))


def solve_users(step, users, items, wanted, cuts, ask_items):
    if not ask_items:
        return list(solving.solve_users(step, lambda: items)(iter(users)))
    asking = []
    for batch in wanted:
        (row,) = batch.to_pylist()
        x = items[cuts[row["block"]] : cuts[row["block"] + 1]]
        asking.append({**row, "x": x.tobytes()})
    schema = sides.ASKED_SCHEMA.append(pa.field("x", pa.binary()))
    sent = list(solving.pick_rows(D)(iter([tables.as_batch(asking, schema)])))
    solve = solving.solve_with_sent(step, solving.SIDE_SCHEMA)

    def solved(block, batch):
        of_block = pa.Table.from_batches([batch])
        return joined(sent, "target", block, lambda rows: solve(of_block, rows)).to_batches()[0]

    return [solved(block, batch) for block, batch in enumerate(users)]


def solve_items(step, users, by_item, items, cuts, ask):
    if not ask:
        turned = [
            np.frombuffer(batch.column("x")[0].as_py(), np.float32).reshape(-1, D) @ step.turn
            for batch in users
        ]
        everyone = np.concatenate(turned)
        solve = solving.solve_blocks(step, lambda: everyone, lambda b: items[cuts[b] : cuts[b + 1]])
        return [
            row
            for table in by_item
            for batch in solve(iter(table.to_batches()))
            for row in batch.to_pylist()
        ]
    sent = list(solving.send_rows(step.turn)(iter(users)))
    solve, found = solving.solve_with_sent(step, solving.SOLVED_SCHEMA), []
    for j, table in enumerate(by_item):
        table = with_x(table, items[cuts[j] : cuts[j + 1]])
        found += joined(sent, "target", j, lambda rows, table=table: solve(table, rows)).to_pylist()
    return found


@pytest.mark.parametrize("ask", [False, True], ids=["users broadcast", "users asked for"])
@pytest.mark.parametrize("ask_items", [False, True], ids=["items broadcast", "items asked for"])
def test_blocks_learn_what_one_machine_learns(log, ask, ask_items):
    feedback = Feedback.of(log)
    confidences = feedback.confidences(log.items, log.ratings, log.weights)
    here = AlternatingLeastSquares(D, max_iter=3, random_state=0).fit(log.matrix(confidences))
    found = alternated(log, feedback, ask=ask, ask_items=ask_items)
    np.testing.assert_allclose(found, here.item_embeddings_, atol=2e-5)


def test_blocks_hold_the_log_as_one_machine_has_it(log):
    found = [histories.BlockHistory.of(batch.to_pylist()[0]) for batch in blocks_of(log)]
    np.testing.assert_array_equal(np.concatenate([part.items for part in found]), log.items)
    for name in ("ratings", "weights"):
        here = getattr(log, name)
        if here is not None:
            np.testing.assert_array_equal(np.concatenate([getattr(p, name) for p in found]), here)


def test_random_starts_do_not_depend_on_blocks():
    expected = random_generator(3).standard_normal((50, 7), dtype=np.float32)
    about = blocks.LogBlocks(None, 3, {0: 20, 2: 29, 5: 1}, Feedback(), np.ones(2), 1, 1, 1.0)
    starts = blocks.starts_of(random_generator(3), about, 7, np.sqrt(7))
    rows = [starts[block].rows(np.ones(n)) for block, n in about.sizes.items()]
    np.testing.assert_array_equal(np.concatenate(rows), expected)


@pytest.mark.parametrize(
    ("n_pairs", "n_users", "n_blocks"),
    [
        (0, 0, 1),
        (100, 10, 1),
        (400_000, 10, 4),
        (10**7, 10, 4),
        (10**8, 10, 24),
        (2 * 10**7, 10**7, 153),
    ],
)
def test_blocks_are_as_few_as_fit_an_executor(n_pairs, n_users, n_blocks):
    """Two for each of two cores, or by 2²² pairs, or by 2¹⁶ users; not for fewer than 2¹⁷ pairs."""
    assert blocks.n_blocks_of(n_pairs, n_users, 2) == n_blocks


def test_blocks_pass_by_in_runs_that_fit():
    """By their bytes, in their order, none left out; one that is too large is alone."""
    n_bytes = {0: 4, 1: 6, 3: 1, 4: 20, 5: 3, 7: 7, 8: 1}
    assert blocks.runs_of(n_bytes, 10) == [[0, 1], [3], [4], [5, 7], [8]]
    assert blocks.runs_of({}, 10) == []


def test_blocks_of_items_have_as_many_pairs_as_can_be():
    counts = np.array([100, 1, 1, 50, 50, 0, 98])
    cuts = blocks.cuts_of(counts, 3)
    assert cuts[0] == 0
    assert cuts[-1] == len(counts)
    assert max(counts[a:b].sum() for a, b in pairwise(cuts)) <= 102


@pytest.mark.parametrize("n", [1, 1000, 1001])
def test_the_median_is_found_by_bits(monkeypatch, n):
    weights = np.random.default_rng(0).exponential(2, n).astype(np.float32)
    weights[::10] *= -1  # what was taken back is none of them
    schema = pa.schema([("weights", pa.binary())])
    parts = [
        tables.as_batch([{"weights": part.tobytes()}], schema)
        for part in np.array_split(weights, 4)
    ]

    class Frame:
        def mapInArrow(self, function, form):
            return function(iter(parts))

    monkeypatch.setattr(order, "added_up", lambda found, n, dtype: added(found, dtype))
    there = weights[weights > 0].astype(np.float64)
    expected = np.median(np.log(there)) if len(there) else None
    assert order.median_of(Frame(), 4) == pytest.approx(expected, abs=1e-12)
