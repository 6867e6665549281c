"""What executors compute, without Spark: blocks alternate as `ImplicitALS` does on one machine."""

from itertools import pairwise

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from qkvsearch._utils.validation import model_generator  # noqa: E402
from qkvsearch.engines.spark import als, blocks, solving  # noqa: E402
from qkvsearch.models.confidences import Feedback, usual_weights  # noqa: E402
from qkvsearch.models.implicit_als import (  # noqa: E402
    AlternatingLeastSquares,
    auto_strengths,
    principal_axes,
)
from qkvsearch.tables.ids import Ids  # noqa: E402
from qkvsearch.tables.interactions import Interactions  # noqa: E402

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
    batches = []
    for block, users in enumerate(np.array_split(np.arange(len(log.user_ids)), N_BLOCKS)):
        rows = np.flatnonzero(np.isin(log.users, users))
        columns = {
            "part": np.zeros(len(rows), int),
            "row": rows,
            "user": np.array(list(log.user_ids))[log.users[rows]],
            "item": log.items[rows],
        }
        for name, numbers in (("rating", log.ratings), ("weight", log.weights)):
            if numbers is not None:
                columns[name] = numbers[rows].astype(float)
        row = {"block": block, **blocks.history_of(pa.table(columns), len(log.item_ids))}
        batches.append(blocks.as_batch([row], blocks.HISTORIES_SCHEMA))
    return batches


def added(batches):
    return sum(np.frombuffer(batch.column(0)[0].as_py()) for batch in batches)


class Frame:
    """Batches in place of a frame of Spark."""

    def __init__(self, batches):
        self.batches = batches

    def select(self, *names):
        return Frame([batch.select(names) for batch in self.batches])

    def mapInArrow(self, function, schema):
        return Frame(list(function(iter(self.batches))))


@pytest.fixture(autouse=True)
def without_spark(monkeypatch):
    for module in (als, blocks):
        monkeypatch.setattr(module, "summed", lambda arrays, n: added(arrays.batches))


def alternated(log, feedback, few, n_iterations=3):
    """The item embeddings after some iterations in blocks; few: all users go to each block."""
    batches = blocks_of(log)
    sizes = {block: batch.column("n_users")[0].as_py() for block, batch in enumerate(batches)}
    about = als.LogBlocks(Frame(batches), sizes, feedback, len(log.item_ids))
    counts = about.counts
    n_items = int(np.count_nonzero(counts.likes))
    alpha0, reg = auto_strengths(counts.n_likes / counts.n_users, counts.mean_confidence, n_items)
    rng = model_generator(0)
    starts = als.starts_of(rng, about, D, 0.1)
    items = solving.Start(rng.bit_generator.state, D, 0.1).embeddings(counts.likes)
    cuts = als.cuts_of(counts.likes, 4)
    make_users = blocks.mapped(solving.make_users, solving.USERS_SCHEMA, feedback, starts, cuts)
    users = list(make_users(iter(batches)))
    likes = pa.Table.from_batches(solving.send_likes(feedback, about.firsts, cuts)(iter(batches)))
    make_items = solving.make_items(cuts)
    by_item = [make_items(of_block(likes, block)) for block in range(len(cuts) - 1)]
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
        half = step(turn, values, counts.n_users)
        items, rotation = solve_items(half, users, by_item, items, cuts, few), rotation @ turn
    return items @ rotation.T.astype(np.float32)


def of_block(table, block):
    return table.filter(pa.compute.equal(table["block"], block))


def solve_items(step, users, by_item, items, cuts, few):
    if few:
        x = [np.frombuffer(batch.column("x")[0].as_py(), np.float32) for batch in users]
        everyone = np.concatenate(x).reshape(-1, D) @ step.turn
        arguments = step, lambda: items, cuts, lambda: everyone
        solve = blocks.mapped(solving.solve_items, solving.SOLVED_SCHEMA, *arguments)
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
    parts = [blocks.BlockHistory.of(batch.to_pylist()[0]) for batch in blocks_of(log)]
    for name in ("items", "ratings", "weights"):
        if getattr(log, name) is not None:
            in_blocks = np.concatenate([getattr(part, name) for part in parts])
            np.testing.assert_array_equal(in_blocks, getattr(log, name))


def test_random_starts_do_not_depend_on_blocks():
    expected = model_generator(3).standard_normal((50, 7), dtype=np.float32)
    about = als.LogBlocks(None, {0: 20, 2: 29, 5: 1}, Feedback(), 2)
    starts = als.starts_of(model_generator(3), about, 7, np.sqrt(7))
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


def test_a_block_of_items_is_never_without_pairs():
    np.testing.assert_array_equal(als.cuts_of(np.array([10, 0, 0]), 3), [0, 3])
    np.testing.assert_array_equal(als.cuts_of(np.array([0, 5, 0, 5, 0]), 2), [0, 2, 5])


@pytest.mark.parametrize("n", [1, 1000, 1001])
def test_the_usual_weights_come_from_sums_of_blocks(n):
    rng = np.random.default_rng(0)
    weights, items = rng.exponential(2, n).astype(np.float32), rng.integers(0, 4, n)
    weights[::10] *= -1  # taken back
    schema = pa.schema([("items", pa.binary()), ("weights", pa.binary())])
    parts = zip(np.array_split(items.astype("i4"), 4), np.array_split(weights, 4), strict=True)
    batches = [blocks.as_batch([{"items": i, "weights": w}], schema) for i, w in parts]
    usual, of_items = blocks.usual_weights(Frame(batches), 4, 5)
    log = Interactions.from_columns(
        np.arange(n), items, weights=np.maximum(weights, 0), item_ids=Ids(map(str, range(5)))
    )
    expected = usual_weights(log)
    assert usual == pytest.approx(expected[0])
    np.testing.assert_allclose(of_items, expected[1], rtol=1e-6)
