"""`learn_preferences` on logs that want one head, and with a head that is new in the list."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from qkvsearch.models import preferences as module
from qkvsearch.models.item_neighbours import NeighbourWeights
from qkvsearch.models.preferences import (
    HeadShares,
    Preferences,
    learn_preferences,
    learners,
    settings_by_head,
    share_grid,
)
from qkvsearch.models.recommend_head import HistoryScores, RecommendHead
from qkvsearch.models.recommend_heads import COLLABORATIVE, HEADS, NEIGHBOURS
from qkvsearch.models.user_vectors import ImplicitFactors


def groups(n_users=400, n_items=60):
    """Users who like items of one of six groups, and how each head would score them: 1 for the
    items of the groups of the history.
    """
    rng = np.random.default_rng(3)
    rows = [rng.choice(np.arange(u % 6, n_items, 6), 6, replace=False) for u in range(n_users)]
    users = np.repeat(np.arange(n_users), 6)
    ones = np.ones(len(users), np.float32)
    log = csr_matrix((ones, (users, np.concatenate(rows))), (n_users, n_items))
    right = np.equal.outer(np.arange(n_items) % 6, np.arange(n_items) % 6).astype(np.float32)
    return log, right


def fixed(weights):
    """A head that learns these weights (n_items, n_items) of any matrix."""
    matrix = csr_matrix(weights)
    return lambda X: NeighbourWeights(matrix.indptr, matrix.indices, matrix.data)


def learned_from(log, embeddings, neighbours):
    return learn_preferences(log, {COLLABORATIVE: embeddings, NEIGHBOURS: neighbours})


def embedded(weights):
    """The same by embeddings: scores in proportion to the number of equal groups."""
    values, vectors = np.linalg.eigh(weights.astype(np.float64))
    items = (vectors * np.sqrt(values.clip(0))).astype(np.float32)
    factors = ImplicitFactors(items, items.T @ items, 0.01, 10.0, 1.0, len(items))
    return lambda X: factors


def test_the_head_that_ranks_held_out_items_gets_the_share():
    log, right = groups()
    tens = np.arange(60) // 10
    wrong = np.equal.outer(tens, tens).astype(np.float32)
    by_neighbours = learned_from(log, embedded(wrong), fixed(right))
    assert by_neighbours.shares.shares[NEIGHBOURS] >= 0.5
    alone = by_neighbours.shares.alone
    assert alone[NEIGHBOURS] > 2 * alone[COLLABORATIVE]
    assert alone["fused"] >= alone[NEIGHBOURS] - 0.02
    by_embeddings = learned_from(log, embedded(right), fixed(wrong))
    assert by_embeddings.shares.shares[COLLABORATIVE] >= 0.5
    assert by_embeddings.shares.alone["fused"] >= by_embeddings.shares.alone[COLLABORATIVE] - 0.02


def test_too_few_users_give_equal_shares_in_standard_deviations():
    log, right = groups(n_users=20)
    learned = learned_from(log, embedded(right), fixed(10 * right))
    assert learned.shares.shares == {COLLABORATIVE: 0.5, NEIGHBOURS: 0.5}
    assert not learned.shares.alone
    parts = [learned.head_scores(name, log) for name in (COLLABORATIVE, NEIGHBOURS)]
    factors = learned.multipliers()
    spreads = [
        part.std(axis=1).mean() * factors[name]
        for part, name in zip(parts, (COLLABORATIVE, NEIGHBOURS), strict=True)
    ]
    assert spreads[0] == pytest.approx(spreads[1], rel=1e-4)
    assert sum(factors.values()) == pytest.approx(1)
    total = factors[COLLABORATIVE] * parts[0] + factors[NEIGHBOURS] * parts[1]
    np.testing.assert_allclose(learned.scores(log), total, rtol=1e-4, atol=1e-6)


def test_preferences_without_neighbours_are_the_embeddings():
    log, right = groups(n_users=10)
    alone = Preferences({COLLABORATIVE: embedded(right)(log)})
    assert alone.multipliers() == {COLLABORATIVE: 1.0}
    np.testing.assert_array_equal(alone.scores(log), alone.head_scores(COLLABORATIVE, log))
    assert HeadShares({COLLABORATIVE: 1.0}, {COLLABORATIVE: 0.0}).factors() == {COLLABORATIVE: 1.0}


# --- a new head ---


class SameGroup:
    """A toy: items of the history's groups score the weight."""

    def __init__(self, n_items, weight):
        self.groups, self.weight = np.arange(n_items) % 6, weight

    def score_history(self, positions, confidences):
        added = self.weight * np.equal.outer(self.groups, self.groups[positions])
        return HistoryScores(added.sum(axis=1).astype(np.float32), lambda item: added[item])

    def score_many(self, histories):
        same = np.equal.outer(self.groups, self.groups)
        return np.asarray(histories @ same * self.weight, dtype=np.float32)


@pytest.fixture
def with_toy(monkeypatch):
    def learn(confidences, settings, seed, callback):
        return SameGroup(confidences.shape[1], **settings)

    toy = RecommendHead("toy", learn, "learning a toy", parameters={"toy_weight": "weight"})
    monkeypatch.setattr(module, "HEADS", {**HEADS, "toy": toy})


def test_a_head_that_is_added_to_the_list_is_learned_and_gets_its_share(with_toy):
    log, _ = groups()
    settings = {"toy_weight": 3.0, "n_components": 2, "max_iter": 1, "n_neighbours": 2}
    assert settings_by_head(settings)["toy"] == {"weight": 3.0}
    stages = []
    learn = learners(settings, 0, lambda stage, done, total: stages.append(stage))
    learned = learn_preferences(log, learn)
    shares = learned.shares.shares
    assert [*shares] == [*HEADS, "toy"]
    assert sum(shares.values()) == pytest.approx(1)
    # It knows the groups that the log was drawn by.
    assert learned.shares.alone["toy"] == max(learned.shares.alone.values())
    assert shares["toy"] >= 1 / 3
    expected = sum(
        factor * learned.head_scores(name, log) for name, factor in learned.multipliers().items()
    )
    np.testing.assert_allclose(learned.scores(log), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 4])
def test_the_shares_that_are_compared_add_up_to_1(n_heads):
    grid = share_grid(n_heads)
    assert (grid >= 0).all()
    np.testing.assert_allclose(grid.sum(axis=1), 1)
    assert len(np.unique(grid.round(6), axis=0)) == len(grid)
    assert all((grid[:, head] == 1).any() for head in range(n_heads))


@pytest.mark.parametrize("name", HEADS)
def test_what_the_items_of_a_history_add_is_its_score(name):
    """Every head in the list, by the scores of one history and of many."""
    log, _ = groups(n_users=80)
    head = learners({"n_components": 4, "max_iter": 2}, 0, lambda *_: None)[name](log)
    rows = log[7].indices
    confidences = np.linspace(0.5, 2, len(rows))
    scored = head.score_history(rows, confidences)
    added = np.array([scored.addends(item) for item in range(log.shape[1])])
    assert added.shape == (log.shape[1], len(rows))
    np.testing.assert_allclose(added.sum(axis=1), scored.scores, rtol=1e-4, atol=1e-5)
    history = csr_matrix((confidences, rows, [0, len(rows)]), shape=(1, log.shape[1]))
    many = Preferences({name: head}).head_scores(name, history)
    assert many.dtype == np.float32
    np.testing.assert_allclose(many[0], scored.scores, rtol=1e-4, atol=1e-5)
    assert head.score_history(rows[:0], confidences[:0]) is None
    if HEADS[name].holds_by_removal:
        without = head.score_history(rows[1:], confidences[1:])
        change = scored.scores - without.scores
        np.testing.assert_allclose(change, added[:, 0], rtol=1e-4, atol=1e-5)
