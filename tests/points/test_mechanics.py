"""Points 25 to 34: beside fully connected layers, and what the parts of self-attention do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qkvsearch.attention import AdditiveScore, attention, dot_score, softmax
from qkvsearch.attention.gradients.attention import attention_vjp
from qkvsearch.attention.gradients.layers import vjp
from qkvsearch.attention.gradients.losses import mean_squared_error
from qkvsearch.attention.layers.basic import FeedForward, Linear
from qkvsearch.attention.layers.multi_head import MultiHeadAttention
from qkvsearch.attention.layers.state import state
from qkvsearch.attention.layers.transformer import EncoderLayer
from qkvsearch.attention.trace import trace, trace_self_attention
from qkvsearch.attention.training import Adam, fit

# Self-attention in eight steps, unscaled: its scores are [[2, 4, 4], [4, 16, 12], [4, 12, 10]].
X = np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]], dtype=float)
W_KEY = np.array([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]], dtype=float)
W_QUERY = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]], dtype=float)
W_VALUE = np.array([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]], dtype=float)
EXACT = [
    [1.9366210616669624, 6.683105308334811, 1.5950684074995565],
    [1.9999939663351454, 7.963991595132215, 0.0539764053125496],
    [1.9997046127769653, 7.759892254657784, 0.35838929467511527],
]


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def eight_steps(**options: Any) -> Any:
    return trace_self_attention(X, W_QUERY, W_KEY, W_VALUE, **{"scale": 1, **options})


def n_weights(layer: Any) -> int:
    return sum(array.size for array in state(layer).values())


@pytest.mark.point(25)
def test_a_window_costs_a_fully_connected_layer_parameters_and_attention_none():
    d = 4
    windows = {w: Linear.create(w * d, d, rng=0) for w in (1, 3, 5)}
    assert [n_weights(layer) for layer in windows.values()] == [20, 52, 84]
    layer = MultiHeadAttention.create(d, n_heads=1, rng=0)
    assert n_weights(layer) == 80
    for w, connected in windows.items():
        sentence = random(w, d)
        assert connected(sentence.reshape(-1)).shape == (d,)
        assert layer(sentence).shape == (w, d)  # the same 80, whatever the length
        with pytest.raises(ValueError, match="does not fit"):
            connected(np.zeros((w + 1) * d))
    # A layer over all inputs, n tokens in and n out: n² times as many.
    everything = [n_weights(Linear.create(n * d, n * d, rng=0, bias=False)) for n in (1, 3, 5)]
    assert everything == [16, 9 * 16, 25 * 16]


@pytest.mark.point(26)
def test_a_fully_connected_layer_acts_on_each_row_by_itself():
    layer = FeedForward.create(4, 8, rng=0, dtype=np.float64)
    x = random(5, 4)
    np.testing.assert_allclose(layer(x), [layer(row) for row in x], atol=1e-14)
    changed = x + random(4, seed=1) * (np.arange(5) == 2)[:, None]
    moved = np.abs(layer(changed) - layer(x)).max(axis=-1)
    np.testing.assert_array_equal(moved > 1e-6, np.arange(5) == 2)


@pytest.mark.point(26)
def test_attention_takes_a_fully_connected_layers_output_and_gives_the_next_its_input():
    layer = EncoderLayer.create(8, n_heads=2, d_feedforward=16, rng=0, dtype=np.float64)
    first = Linear.create(3, 8, rng=1, dtype=np.float64)
    x = first(random(5, 3))
    mixed = layer.attention_norm(x + layer.attention(x))
    np.testing.assert_array_equal(
        layer(x), layer.feed_forward_norm(mixed + layer.feed_forward(mixed))
    )
    again = layer(layer(x))
    assert again.shape == x.shape
    changed = layer(first(random(5, 3) + random(3, seed=2) * [[0.0], [0], [0], [0], [1]]))
    assert (np.abs(changed - layer(x)).max(axis=-1) > 1e-5).all()


@pytest.mark.point(27)
def test_every_output_has_every_input_in_its_jacobian():
    a = random(4, 3)
    blocks = np.zeros((4, 4))
    for i, k in np.ndindex(4, 3):
        one = np.zeros((4, 3))
        one[i, k] = 1
        _, pull = attention_vjp(a, a, a)
        back = pull(one)
        by_input = back.query + back.key + back.value
        blocks[i] = np.maximum(blocks[i], np.abs(by_input).max(axis=-1))
        step = 1e-6
        up, down = a.copy(), a.copy()
        up[0, 0] += step
        down[0, 0] -= step
        slope = (attention(up, up, up) - attention(down, down, down))[i, k] / (2 * step)
        np.testing.assert_allclose(by_input[0, 0], slope, atol=1e-8)
    assert (blocks > 1e-3).all()


@pytest.mark.point(27)
def test_under_a_look_ahead_mask_the_later_blocks_of_the_jacobian_are_0():
    a = random(4, 3)
    _, pull = attention_vjp(a, a, a, is_causal=True)
    for i in range(4):
        one = np.zeros((4, 3))
        one[i] = random(3, seed=1)
        back = pull(one)
        by_input = np.abs(back.query + back.key + back.value).max(axis=-1)
        np.testing.assert_array_equal(by_input > 0, np.arange(4) <= i)


@pytest.mark.point(28)
def test_the_first_score_is_a_dot_product_that_includes_the_token_itself():
    scores = eight_steps()["scores"]
    assert scores.array[0, 1] == 4  # α₁,₂ = q¹·k² = [1, 0, 2]·[4, 4, 0]
    assert scores.array[0, 0] == 2  # α₁,₁ = q¹·k¹ = [1, 0, 2]·[0, 1, 1]
    assert [str(score) for score in scores.symbols[0]] == ["a_Q·a_K", "a_Q·b_K", "a_Q·c_K"]
    # The eight steps' scores are symmetric; these tell α₁,₂ from α₂,₁.
    np.testing.assert_array_equal(
        dot_score(np.array([[1, 0], [0, 2]]), np.array([[1, 3], [5, 7]]), scale=1),
        [[1, 5], [6, 14]],
    )


@pytest.mark.point(29)
def test_relu_in_place_of_softmax():
    raw = eight_steps(normalize="none")
    np.testing.assert_array_equal(raw["weights"].array[0], [2, 4, 4])
    np.testing.assert_array_equal(raw["outputs"].array[0], [18, 60, 18])
    normalized = eight_steps(normalize="relu")
    np.testing.assert_allclose(normalized["weights"].array[0], [0.2, 0.4, 0.4])
    np.testing.assert_allclose(normalized["outputs"].array[0], [1.8, 6, 1.8])
    hidden = attention([[1.0]], [[-3.0], [2.0]], [[5.0], [7.0]], normalize="relu")
    np.testing.assert_array_equal(hidden, [[7.0]])  # a negative score counts for nothing


@pytest.mark.point(30)
@pytest.mark.parametrize(("bias", "nearer_than"), [(0, 3), (5, 0.03), (10, 2e-4), (1000, 0)])
def test_the_more_the_second_score_dominates_the_nearer_is_the_output_to_its_value(
    bias, nearer_than
):
    steps = eight_steps(bias=[0, bias, 0])
    output, weight = steps["outputs"].array[0], steps["weights"].array[0, 1]
    np.testing.assert_allclose(output, [2, 8, 0], rtol=0, atol=nearer_than)
    assert (weight > 0.99) == (bias > 0)


@pytest.mark.point(30)
def test_the_second_input_takes_almost_all_from_itself():
    steps = eight_steps()
    np.testing.assert_allclose(steps["weights"].array[1, 1], 0.9820078648958167)
    np.testing.assert_allclose(steps["outputs"].array[1], EXACT[1], rtol=1e-12)
    np.testing.assert_allclose(eight_steps(scale=10)["outputs"].array[1], [2, 8, 0], atol=1e-14)


@pytest.mark.point(31)
def test_the_column_convention_is_the_transpose():
    columns = X.T  # I, one input a column
    q, k, v = (w.T @ columns for w in (W_QUERY, W_KEY, W_VALUE))
    scores = dot_score(k.T, q.T, scale=1)  # A = KᵀQ: a row for each key, a column for each query
    weights = softmax(scores, axis=0)
    np.testing.assert_allclose(weights.sum(axis=0), np.ones(3))
    steps = eight_steps()
    np.testing.assert_array_equal(scores.T, steps["scores"].array)
    np.testing.assert_allclose(weights.T, steps["weights"].array, rtol=1e-14)
    np.testing.assert_allclose((v @ weights).T, steps["outputs"].array, rtol=1e-14)
    np.testing.assert_allclose((v @ weights).T, EXACT, rtol=1e-12)


@pytest.mark.point(31)
def test_the_second_output_takes_the_second_rows_weights():
    steps = eight_steps()  # T4: b² = Σᵢ α′₂,ᵢ vⁱ
    np.testing.assert_allclose(steps["weighted"].array[1].sum(axis=0), EXACT[1], rtol=1e-12)
    assert str(steps["outputs"].symbols[1]) == "S_ba·a_V + S_bb·b_V + S_bc·c_V"
    np.testing.assert_allclose(steps["outputs"].array, EXACT, rtol=1e-12)


@pytest.mark.point(32)
def test_entry_i_j_of_the_column_form_is_the_score_of_j_for_i():
    q, k = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[1.0, 3.0], [5.0, 7.0]])
    by_column = dot_score(k, q, scale=1)
    steps = trace(q, k, np.eye(2), scale=1)
    np.testing.assert_array_equal(by_column, [[1, 6], [5, 14]])
    for i, j in np.ndindex(2, 2):
        assert by_column[i, j] == steps["scores"].array[j, i]
    assert steps["scores"].array[0, 1] == 5  # α₁,₂ = q¹·k²
    # ... so a column of A′ and a row of the weights are the same query's.
    np.testing.assert_allclose(softmax(by_column, axis=0).T, steps["weights"].array)


@pytest.mark.point(33)
def test_what_is_initialised_at_random_is_learned():
    teacher, student = (
        MultiHeadAttention.create(4, n_heads=1, rng=seed, dtype=np.float64) for seed in (1, 2)
    )
    x = 2 * random(32, 5, 4)
    target = teacher(x)
    started = {name: array.copy() for name, array in state(student).items()}

    def loss_and_gradients(layer, batch):
        output, pull = vjp(layer, x)
        loss, gradient = mean_squared_error(output, target)
        return loss, pull(gradient)[1]

    losses = fit(student, loss_and_gradients, [None], optimizer=Adam(0.03), epochs=300)
    assert losses[-1] < 0.02 * losses[0]
    for name in ("query.weight", "key.weight", "value.weight"):
        assert np.abs(state(student)[name] - started[name]).max() > 0.1


@pytest.mark.point(34)
def test_the_additive_score_is_one_number_as_the_dot_product_is():
    score = AdditiveScore(np.eye(2), np.eye(2), np.ones(2))
    q, k = np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]])
    np.testing.assert_allclose(score(q, k), [[1.7256217368]])  # tanh 2 + tanh 1
    np.testing.assert_array_equal(dot_score(q, k, scale=1), [[1.0]])
    steps = trace(q, k, k, score=score)
    assert str(steps["scores"].symbols[0, 0]) == "AdditiveScore(a_Q, a_K)"
    np.testing.assert_allclose(steps["scores"].array, [[1.7256217368]])


@pytest.mark.point(34)
def test_additive_scores_all_at_once_are_those_one_by_one_and_bounded():
    score = AdditiveScore(random(3, 6), random(4, 6), random(6))
    queries, keys = 3 * random(5, 3), 3 * random(7, 4)
    one_by_one = [[score(q[None], k[None])[0, 0] for k in keys] for q in queries]
    np.testing.assert_allclose(score(queries, keys), one_by_one, atol=1e-14)
    loop = [
        [sum(score.w * np.tanh(q @ score.w_query + k @ score.w_key)) for k in keys] for q in queries
    ]
    np.testing.assert_allclose(score(queries, keys), loop, atol=1e-13)
    extreme = score(1000 * queries, 1000 * keys)
    assert np.abs(extreme).max() <= np.abs(score.w).sum() + 1e-12
