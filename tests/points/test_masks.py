"""Points 47 to 61: tokens a, b, c, D, the last of them padding, step by step and under masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.attention import attention, dot_score, hide, look_ahead_mask, padding_mask, softmax
from qkvsearch.attention.gradients.functions import softmax_vjp
from qkvsearch.attention.layers.basic import FeedForward, LayerNorm, Linear
from qkvsearch.attention.layers.transformer import Decoder, Encoder
from qkvsearch.attention.masks import add
from qkvsearch.attention.trace import Trace, trace, trace_self_attention

X = np.array([[1, 0, 2], [0, 1, 1], [1, 1, 0], [2, 0, 1]], dtype=float)
W_QUERY = np.array([[1, 0], [0, 1], [1, 1]], dtype=float)
W_KEY = np.array([[0, 1], [1, 0], [1, 0]], dtype=float)
W_VALUE = np.array([[1, 1], [2, 0], [0, 1]], dtype=float)
PADDED = padding_mask([3], size=4)

# Worked out by hand as far as the scores, by a calculator after that.
SCORES = [[8, 6, 5, 7], [4, 2, 3, 5], [3, 2, 2, 3], [7, 6, 4, 5]]
NO_MASK = (
    [[0.53877607, 0.13098548, 0.06458484, 0.26565361],
     [0.26565361, 0.06458484, 0.13098548, 0.53877607],
     [0.33488077, 0.16511923, 0.16511923, 0.33488077],
     [0.53877607, 0.26565361, 0.06458484, 0.13098548]],
    [[1.52580877, 2.60885937], [1.86533187, 2.60885937],
     [1.83023845, 2.33952310], [1.52580877, 2.33952310]],
)  # fmt: skip
PADDING = (
    [[0.73368111, 0.17837015, 0.08794874, 0],
     [0.57597535, 0.14002925, 0.28399541, 0],
     [0.50348984, 0.24825508, 0.24825508, 0],
     [0.61998512, 0.30569525, 0.07431963, 0]],
    [[1.35426763, 2.46736221], [1.70802006, 2.15195069],
     [1.74476523, 2.00697969], [1.45433451, 2.23997024]],
)  # fmt: skip
LOOK_AHEAD = (
    [[1, 0, 0, 0],
     [0.80442968, 0.19557032, 0, 0],
     [0.50348984, 0.24825508, 0.24825508, 0],
     [0.53877607, 0.26565361, 0.06458484, 0.13098548]],
    [[1, 3], [1.19557032, 2.60885937], [1.74476523, 2.00697969], [1.52580877, 2.33952310]],
)  # fmt: skip


def abcD(x: Any = X, **options: Any) -> Trace:
    return trace_self_attention(x, W_QUERY, W_KEY, W_VALUE, tokens="abcD", **options)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def moved(token: int, x: np.ndarray = X) -> np.ndarray:
    """The tokens, with one of them changed."""
    return x + 0.7 * (np.arange(len(x)) == token)[:, None]


def rows_changed(before: np.ndarray, after: np.ndarray) -> list[bool]:
    return (before != after).any(axis=-1).tolist()


def assert_weights_and_outputs(steps: Trace, expected: tuple[Any, Any]) -> None:
    np.testing.assert_allclose(steps["weights"].array, expected[0], atol=5e-9)
    np.testing.assert_allclose(steps["outputs"].array, expected[1], atol=5e-9)


# --- without a mask ---


@pytest.mark.point(47)
def test_queries_keys_and_values_in_symbols_and_in_numbers():
    steps = abcD()
    np.testing.assert_array_equal(steps["queries"].array, [[3, 2], [1, 2], [1, 1], [3, 1]])
    np.testing.assert_array_equal(steps["keys"].array, [[2, 1], [2, 0], [1, 1], [1, 2]])
    np.testing.assert_array_equal(steps["values"].array, [[1, 3], [2, 1], [3, 1], [2, 3]])
    assert str(steps["queries"].symbols[0, 0]) == "a1·q11 + a2·q21 + a3·q31"
    assert str(steps["keys"].symbols[1, 0]) == "b1·k11 + b2·k21 + b3·k31"
    assert str(steps["values"].symbols[3, 1]) == "D1·v12 + D2·v22 + D3·v32"


@pytest.mark.point(47)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mask": PADDED},
        {"is_causal": True},
        {"mask": PADDED & PADDED.T, "empty_rows": "uniform"},
        {"bias": random(4, 4), "scale": 0.3, "softcap": 2.0},
        {"normalize": "relu", "b_query": [1.0, -9.0]},
        {"score": "cosine", "normalize": "none"},
    ],
)
def test_the_symbols_evaluate_to_the_numbers(options):
    for step in abcD(**options):
        np.testing.assert_allclose(step.evaluated(), step.array, atol=1e-13, err_msg=step.name)


@pytest.mark.point(48)
def test_projections_never_mix_rows():
    before, after = abcD(), abcD(moved(1))
    for name in ("queries", "keys", "values"):
        changed = rows_changed(before[name].array, after[name].array)
        assert changed == [False, True, False, False]
    changed = before["scores"].array != after["scores"].array
    in_row_or_column_b = (np.arange(4) == 1) | (np.arange(4) == 1)[:, None]
    np.testing.assert_array_equal(changed, in_row_or_column_b)


@pytest.mark.point(48)
@given(st.permutations(range(4)))
def test_other_order_in_other_order_out(order):
    np.testing.assert_allclose(
        abcD(X[list(order)])["outputs"].array, np.array(NO_MASK[1])[list(order)], atol=5e-9
    )


@pytest.mark.point(49)
def test_the_scores_with_their_labels():
    scores = abcD()["scores"]
    assert scores.rows == scores.columns == ("a", "b", "c", "D")
    np.testing.assert_array_equal(scores.array, SCORES)
    for i, q in enumerate("abcD"):
        assert [str(score) for score in scores.symbols[i]] == [f"{q}_Q·{k}_K" for k in "abcD"]
    np.testing.assert_allclose(abcD()["scaled"].array, np.divide(SCORES, 1.4142135623730951))


@pytest.mark.point(50)
@pytest.mark.parametrize("d", [4, 64, 256])
def test_the_variance_of_a_dot_product_is_d_and_the_scale_undoes_it(d):
    q, k = random(500, d), random(500, d, seed=1)
    np.testing.assert_allclose(dot_score(q, k, scale=1).var(), d, rtol=0.06)
    np.testing.assert_allclose(dot_score(q, k).var(), 1, rtol=0.06)


@pytest.mark.point(50)
def test_without_the_scale_the_gradient_of_the_softmax_shrinks():
    q, k, gradient = random(200, 256), random(8, 256, seed=1), random(200, 8)
    sizes = []
    for scale in (1, None):
        weights, pull = softmax_vjp(dot_score(q, k, scale))
        sizes.append((np.abs(pull(gradient)).mean(), weights.max(axis=-1).mean()))
    (unscaled, sharpest), (scaled, sharp) = sizes
    assert unscaled < 0.2 * scaled
    assert sharpest > 0.9
    assert sharp < 0.5


@pytest.mark.point(51)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 6))
def test_every_row_of_weights_sums_to_1(seed, n_queries, n_keys):
    q, k = random(n_queries, 3, seed=seed), random(n_keys, 3, seed=seed)
    weights = trace(q, k, k)["weights"].array
    np.testing.assert_allclose(weights.sum(axis=-1), np.ones(n_queries))
    assert (weights > 0).all()


@pytest.mark.point(51)
def test_the_softmax_is_by_row_and_not_by_column():
    steps = abcD()
    assert_weights_and_outputs(steps, NO_MASK)
    assert (np.abs(steps["weights"].array.sum(axis=0) - 1) > 0.02).all()


@pytest.mark.point(52)
def test_without_a_mask_every_token_influences_every_token():
    for j in range(4):
        assert all(rows_changed(abcD()["outputs"].array, abcD(moved(j))["outputs"].array))
    assert (abcD()["weights"].array > 0).all()


# --- padding ---


@pytest.mark.point(53)
def test_minus_infinity_and_anything_is_minus_infinity():
    scores, mask = np.array([2.0, -3.0, np.inf, np.nan]), np.full(4, -np.inf)
    with np.errstate(invalid="ignore"):  # −∞ + ∞ is NaN elsewhere
        np.testing.assert_array_equal(add(scores, mask), mask)
    np.testing.assert_array_equal(hide(scores, [False] * 4), mask)
    np.testing.assert_array_equal(softmax([1.0, -np.inf, 1.0]), [0.5, 0, 0.5])


@pytest.mark.point(53)
def test_the_mask_is_added_before_the_softmax():
    added = abcD(bias=np.where(PADDED, 0, -np.inf))
    np.testing.assert_array_equal(added["outputs"].array, abcD(mask=PADDED)["outputs"].array)
    assert_weights_and_outputs(added, PADDING)
    masked = added["masked"]
    np.testing.assert_array_equal(masked.array[:, 3], np.full(4, -np.inf))
    np.testing.assert_allclose(masked.array[:, :3], np.array(SCORES)[:, :3] / np.sqrt(2))
    assert [str(score) for score in masked.symbols[:, 3]] == ["−∞"] * 4
    assert str(added["weights"].symbols[0, 3]) == "0"


@pytest.mark.point(54)
def test_padding_gets_a_weight_of_exactly_0_and_its_own_row_still_sums_to_1():
    words = ["I", "like", "coffee", "<PAD>"]
    steps = trace_self_attention(X, W_QUERY, W_KEY, W_VALUE, tokens=words, mask=PADDED)
    assert steps["masked"].columns[3] == "<PAD>"
    np.testing.assert_array_equal(steps["masked"].array == -np.inf, [[False] * 3 + [True]] * 4)
    np.testing.assert_array_equal(steps["weights"].array[:, 3], np.zeros(4))
    np.testing.assert_allclose(steps["weights"].array.sum(axis=1), np.ones(4))
    assert_weights_and_outputs(steps, PADDING)


@pytest.mark.point(54)
def test_padding_changed_changes_nothing_but_its_own_row():
    before, after = (abcD(x, mask=PADDED)["outputs"].array for x in (X, moved(3)))
    assert rows_changed(before, after) == [False, False, False, True]


@pytest.mark.point(54)
def test_the_paddings_own_row_holds_no_value_of_padding_only_its_query():
    steps = abcD(mask=PADDED)  # T4
    assert str(steps["outputs"].symbols[3]) == "S_Da·a_V + S_Db·b_V + S_Dc·c_V"
    q, k, v = (steps[name].array for name in ("queries", "keys", "values"))
    output = attention(q, k, v, mask=PADDED)
    np.testing.assert_array_equal(attention(q, moved(3, k), moved(3, v), mask=PADDED), output)
    changed = attention(q * [[1, 1], [1, 1], [1, 1], [2, 1]], k, v, mask=PADDED)
    assert rows_changed(output, changed) == [False, False, False, True]


@pytest.mark.point(55)
def test_a_padded_batch_is_its_sentences_one_by_one():
    lengths = [3, 1, 5]
    batch = random(3, 5, 4)
    mask = padding_mask(lengths)[:, None, :]
    encoder = Encoder.create(2, 4, 2, 8, rng=0, dtype=np.float64)
    attended, encoded = attention(batch, batch, batch, mask=mask), encoder(batch, mask=mask)
    for i, n in enumerate(lengths):
        alone = batch[i, :n]
        np.testing.assert_allclose(attended[i, :n], attention(alone, alone, alone), atol=1e-14)
        np.testing.assert_allclose(encoded[i, :n], encoder(alone), atol=1e-13)
    assert np.abs(encoded - encoder(batch))[1].max() > 1e-3  # unmasked, the padding would count


# --- padding as key and query ---


@pytest.mark.point(56)
@pytest.mark.parametrize(
    ("empty_rows", "weight", "output"),
    [("uniform", 0.25, [2, 2]), ("zero", 0, [0, 0]), ("nan", np.nan, [np.nan, np.nan])],
)
def test_masked_as_key_and_as_query_row_d_has_nothing_to_attend_to(empty_rows, weight, output):
    steps = abcD(mask=PADDED & PADDED.T, empty_rows=empty_rows)  # T1
    np.testing.assert_array_equal(steps["masked"].array[3], [-np.inf] * 4)
    np.testing.assert_array_equal(steps["weights"].array[3], [weight] * 4)
    np.testing.assert_allclose(steps["outputs"].array[3], output)  # [2, 2]: the mean of all V
    np.testing.assert_allclose(steps["weights"].array[:3], PADDING[0][:3], atol=5e-9)
    np.testing.assert_allclose(steps["outputs"].array[:3], PADDING[1][:3], atol=5e-9)


@pytest.mark.point(56)
def test_only_replacing_by_a_finite_number_gives_the_mean_everywhere():
    masked = hide([[1.0, 2.0, 3.0, 4.0]], [[False] * 4])
    assert np.isnan(softmax(masked, empty_rows="nan")).all()  # with −∞: 0/0
    replaced = np.where(masked == -np.inf, -1e9, masked)
    np.testing.assert_array_equal(softmax(replaced), [[0.25] * 4])


@pytest.mark.point(56)
@pytest.mark.parametrize(
    ("dtype", "expected"), [("float32", [0.25] * 4), ("float64", [0.032, 0.087, 0.237, 0.644])]
)
def test_adding_minus_a_billion_depends_on_the_precision(dtype, expected):
    keys = np.array([[1.0], [2.0], [3.0], [4.0]], dtype)
    steps = trace(np.ones((1, 1), dtype), keys, keys, scale=1, bias=np.full(4, -1e9, dtype))
    assert steps["weights"].array.dtype == dtype
    np.testing.assert_allclose(steps["weights"].array[0], expected, atol=5e-4)
    if dtype == "float32":
        np.testing.assert_array_equal(steps["weights"].array[0], expected)


# --- look-ahead ---

LOOKING_BACK = pytest.mark.parametrize(
    "options", [{"is_causal": True}, {"mask": look_ahead_mask(4)}], ids=["is_causal", "mask"]
)


@pytest.mark.point(57)
@LOOKING_BACK
def test_the_look_ahead_mask_is_a_triangle(options):
    steps = abcD(**options)
    np.testing.assert_array_equal(steps["masked"].array > -np.inf, np.tri(4, dtype=bool))
    np.testing.assert_array_equal(steps["weights"].array[0], [1, 0, 0, 0])
    np.testing.assert_array_equal(steps["weights"].array[1] > 0, [True, True, False, False])
    assert (steps["weights"].array[3] > 0).all()
    assert [str(output) for output in steps["outputs"].symbols[:2]] == [
        "a_V",
        "S_ba·a_V + S_bb·b_V",
    ]
    assert_weights_and_outputs(steps, LOOK_AHEAD)


@pytest.mark.point(58)
@LOOKING_BACK
def test_a_pass_for_every_prefix_gives_the_rows_of_one_pass(options):
    whole = abcD(**options)["outputs"].array
    for n in range(1, 5):
        prefix = trace_self_attention(X[:n], W_QUERY, W_KEY, W_VALUE)
        np.testing.assert_allclose(prefix["outputs"].array[-1], whole[n - 1], rtol=1e-13)
        np.testing.assert_allclose(prefix["outputs"].array[-1], LOOK_AHEAD[1][n - 1], atol=5e-9)


@pytest.mark.point(58)
def test_a_decoder_writes_three_words_in_three_passes_or_learns_them_in_one():
    source, target = random(3, 8), random(3, 8, seed=1)  # How are you -> cómo estás <end>
    decoder = Decoder.create(2, 8, 2, 16, rng=0, dtype=np.float64)
    whole = decoder(target, source)
    for n in range(1, 4):
        np.testing.assert_allclose(decoder(target[:n], source)[-1], whole[n - 1], atol=1e-13)


@pytest.mark.point(59)
def test_the_three_results_side_by_side():
    none, padding, causal = abcD(), abcD(mask=PADDED), abcD(is_causal=True)
    for steps, expected in ((none, NO_MASK), (padding, PADDING), (causal, LOOK_AHEAD)):
        np.testing.assert_array_equal(steps["scores"].array, SCORES)  # alike up to the mask
        assert_weights_and_outputs(steps, expected)
    outputs = [steps["outputs"].array for steps in (none, padding, causal)]
    assert rows_changed(outputs[0], outputs[1]) == [True] * 4
    np.testing.assert_allclose(outputs[0][3], outputs[2][3])  # the last token sees all
    np.testing.assert_allclose(outputs[1][2], outputs[2][2])  # c sees a, b, c either way


# --- in several layers ---


def change_by_padding(masked_layers: int, seed: int) -> np.ndarray:
    """How much a, b, c change with D, where so many of two layers, from the first, are masked."""
    encoder = Encoder.create(2, 8, 2, 16, rng=seed, dtype=np.float64)
    x = random(4, 8, seed=seed)
    outputs = []
    for tokens in (x, x + random(8, seed=seed) * [[0.0], [0], [0], [1]]):
        for i, layer in enumerate(encoder.layers):
            tokens = layer(tokens, mask=PADDED if i < masked_layers else None)
        outputs.append(tokens)
    return np.abs(outputs[0] - outputs[1])[:3]


@pytest.mark.point(60)
def test_padding_must_be_masked_in_every_layer():
    in_both, in_the_first, in_none = (
        np.mean([change_by_padding(n, seed) for seed in range(5)], axis=0) for n in (2, 1, 0)
    )
    np.testing.assert_array_equal(in_both, np.zeros((3, 8)))
    assert in_the_first.min() > 1e-3
    assert in_none.mean() > 1.2 * in_the_first.mean()


@pytest.mark.point(61)
@pytest.mark.parametrize(
    "layer",
    [
        lambda x, mask: attention(x, x, x, mask=mask),
        lambda x, mask: Encoder.create(2, 8, 2, 16, rng=0, dtype=np.float64)(x, mask=mask),
        lambda x, mask: Linear.create(8, 5, rng=0, dtype=np.float64)(x),
        lambda x, mask: LayerNorm.create(8, dtype=np.float64)(x),
        lambda x, mask: FeedForward.create(8, 16, rng=0, dtype=np.float64)(x),
    ],
    ids=["attention", "encoder", "linear", "norm", "feed forward"],
)
def test_every_layer_keeps_the_order_of_tokens(layer):
    x = random(4, 8)
    order = [2, 3, 0, 1]
    np.testing.assert_allclose(
        layer(x[order], PADDED[:, order]), layer(x, PADDED)[order], atol=1e-13
    )
    before, after = layer(x, PADDED), layer(moved(3, x) + random(8) * [[0], [0], [0], [1]], PADDED)
    assert rows_changed(before, after) == [False, False, False, True]  # D is still the last
