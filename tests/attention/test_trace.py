"""The trace: the same numbers as `attention`, each step from the one before, in symbols too."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkvsearch.attention import AdditiveScore, attention, dot_score
from qkvsearch.attention.symbols import Expression
from qkvsearch.attention.trace import trace, trace_self_attention
from tests.attention.numbers import random

X = np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
W_KEY = [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
W_QUERY = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
W_VALUE = [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]


def eight_steps(**options):
    return trace_self_attention(X, W_QUERY, W_KEY, W_VALUE, **options)


def written(step):
    return [str(entry) for entry in step.symbols.flat]


# --- one cannot drift from the other ---


@st.composite
def cases(draw):
    L, S, d, dv = (draw(st.integers(1, 4)) for _ in range(4))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    dtype = draw(st.sampled_from(["float64", "float32", "float16"]))
    bias = np.where(rng.random((L, S)) < 0.2, -np.inf, rng.normal(size=(L, S)))
    additive = AdditiveScore(*(rng.normal(size=shape) for shape in ((d, 3), (d, 3), 3)))
    side = st.none() | st.integers(0, 3)
    arrays = [rng.normal(size=shape).astype(dtype) for shape in ((L, d), (S, d), (S, dv))]
    return arrays, {
        "mask": draw(st.sampled_from([None, rng.random((L, S)) < 0.6, rng.random(S) < 0.6])),
        "bias": draw(st.sampled_from([None, bias])),
        "is_causal": draw(st.booleans()),
        "causal_offset": draw(st.integers(-2, 2)),
        "window": draw(st.none() | st.tuples(side, side)),
        "scale": draw(st.sampled_from([None, 1, 0.5])),
        "softcap": draw(st.sampled_from([0.0, 0.7])),
        "score": draw(st.sampled_from(["dot", "cosine", additive, dot_score])),
        "normalize": draw(st.sampled_from(["softmax", "relu", "none"])),
        "empty_rows": draw(st.sampled_from(["zero", "uniform", "nan"])),
    }


@settings(max_examples=40)
@given(cases())
def test_the_trace_is_attention_bit_for_bit_and_its_symbols_evaluate_to_it(case):
    arrays, options = case
    steps = trace(*arrays, **options)
    output, weights = attention(*arrays, return_weights=True, **options)
    np.testing.assert_array_equal(steps["outputs"].array, output, strict=True)
    np.testing.assert_array_equal(steps["weights"].array, weights, strict=True)
    tolerance = 30 * float(np.finfo(output.dtype).eps)
    for step in steps:
        np.testing.assert_allclose(
            step.evaluated(), step.array, rtol=tolerance, atol=10 * tolerance, err_msg=step.name
        )


@pytest.mark.parametrize("options", [{}, {"scale": 1, "is_causal": True}, {"softcap": 3.0}])
def test_self_attention_is_attention_of_the_projections_bit_for_bit(options):
    x, *weights = random(5, 4), *random(3, 4, 3)
    steps = trace_self_attention(x, *weights, **options)
    projected = [x @ w for w in weights]
    for name, array in zip(("queries", "keys", "values"), projected, strict=True):
        np.testing.assert_array_equal(steps[name].array, array)
    np.testing.assert_array_equal(steps["outputs"].array, attention(*projected, **options))
    for step in steps:
        np.testing.assert_allclose(step.evaluated(), step.array, atol=1e-14)


def test_each_step_leads_to_the_next():
    steps = eight_steps(is_causal=True)
    names = "inputs w_query w_key w_value queries keys values scores scaled masked weights weighted"
    assert [step.name for step in steps] == [*names.split(), "outputs"]
    scores, scaled, masked = (steps[name].array for name in ("scores", "scaled", "masked"))
    np.testing.assert_array_equal(scores, [[2, 4, 4], [4, 16, 12], [4, 12, 10]])
    np.testing.assert_allclose(scaled, scores / np.sqrt(3))
    np.testing.assert_array_equal(masked, np.where(np.tri(3, dtype=bool), scaled, -np.inf))
    weights, weighted = steps["weights"].array, steps["weighted"].array
    np.testing.assert_array_equal(weighted[1, 0], weights[1, 0] * steps["values"].array[0])
    assert weighted.shape == (3, 3, 3)
    np.testing.assert_allclose(weighted.sum(axis=1), steps["outputs"].array)


def test_a_softcap_has_a_step_of_its_own():
    steps = trace(X, X, X, softcap=5.0)
    names = [step.name for step in steps]
    assert names[names.index("scaled") :][:3] == ["scaled", "capped", "masked"]
    np.testing.assert_array_equal(steps["capped"].array, 5.0 * np.tanh(steps["scaled"].array / 5.0))
    assert str(steps["capped"].symbols[0, 1]) == "5·tanh(((a_Q·b_K)/√4)/5)"


def test_a_hidden_key_takes_nothing_from_a_broken_value():
    values = [[1.0], [np.nan], [3.0]]
    steps = trace(X, X, values, mask=[True, False, True])
    np.testing.assert_array_equal(steps["weighted"].array[:, 1], np.zeros((3, 1)))
    np.testing.assert_allclose(steps["weighted"].array.sum(axis=1), steps["outputs"].array)
    np.testing.assert_allclose(steps["outputs"].evaluated(), steps["outputs"].array)


# --- in symbols ---


def test_every_step_reads_as_in_the_books():
    x, (w_query, w_key, w_value) = random(4, 3), random(3, 3, 2)
    steps = trace_self_attention(
        x, w_query, w_key, w_value, tokens="abcD", mask=[True] * 3 + [False]
    )
    assert steps["inputs"].rows == ("a", "b", "c", "D")
    assert written(steps["inputs"])[:3] == ["a1", "a2", "a3"]
    assert written(steps["queries"])[1] == "a1·q12 + a2·q22 + a3·q32"
    assert written(steps["keys"])[6] == "D1·k11 + D2·k21 + D3·k31"
    assert written(steps["scores"])[:4] == ["a_Q·a_K", "a_Q·b_K", "a_Q·c_K", "a_Q·D_K"]
    assert written(steps["scaled"])[1] == "(a_Q·b_K)/√2"
    assert written(steps["masked"])[3] == "−∞"
    powers = [f"exp((b_Q·{key}_K)/√2)" for key in "abc"]
    assert written(steps["weights"])[6:8] == [f"{powers[2]}/({' + '.join(powers)})", "0"]
    assert written(steps["weighted"])[:4] == ["S_aa·a_V", "S_ab·b_V", "S_ac·c_V", "0"]
    assert written(steps["outputs"])[3] == "S_Da·a_V + S_Db·b_V + S_Dc·c_V"
    assert steps["keys"].formula == "K = X·W_k"


def test_an_empty_row_reads_as_its_numbers():
    steps = trace(X, X, X, query_labels="abc", mask=[[True] * 3, [True] * 3, [False] * 3])
    assert written(steps["outputs"])[2] == "0"
    uniform = trace(X[:2], X[:2], X[:2], mask=[[True] * 2, [False] * 2], empty_rows="uniform")
    assert written(uniform["outputs"])[1] == "0.5·a_V + 0.5·b_V"


def test_other_scores_and_normalizers_read_by_name():
    steps = trace(X, X[:2], X[:2], score="cosine", normalize="relu", bias=-0.5, scale=2)
    assert written(steps["masked"])[1] == "2·cosine(a_Q, b_K) − 0.5"
    parts = [f"max(0, 2·cosine(a_Q, {key}_K) − 0.5)" for key in "ab"]
    assert written(steps["weights"])[0] == f"{parts[0]}/({parts[0]} + {parts[1]})"
    plain = trace(X, X, X, score=AdditiveScore(np.eye(4), np.eye(4), np.ones(4)), normalize="none")
    assert written(plain["weights"])[1] == "AdditiveScore(a_Q, b_K)"


def test_labels_of_longer_words_and_of_the_same_word_twice_stay_apart():
    steps = trace(X, X[:2], X[:2], query_labels=["I", "saw", "saw"], key_labels=["I", "saw"])
    assert steps["scores"].rows == ("I", "saw", "saw")
    assert steps["scores"].columns == ("I", "saw")
    assert written(steps["scores"])[4:] == ["saw′_Q·I_K", "saw′_Q·saw_K"]
    assert written(steps["outputs"])[2] == "S_saw′,I·I_V + S_saw′,saw·saw_V"


def test_a_label_that_looks_like_a_number_is_no_number():
    steps = trace(X, X, X, query_labels=["0", "1", "−∞"])
    assert written(steps["scores"])[0] == "0_Q·0_K"
    for step in steps:
        np.testing.assert_allclose(step.evaluated(), step.array)
    assert str(Expression("0", 2.0) * Expression("1", 3.0)) == "0·1"


def test_more_tokens_than_letters_and_more_columns_than_digits():
    steps = trace(random(30, 11), random(2, 11), random(2, 1))
    assert steps["queries"].rows[-1] == "t30"
    assert written(steps["queries"])[10] == "t1_Q,11"
    for first, second in pairwise(steps["queries"].columns):
        assert int(second) == int(first) + 1


# --- refusals ---


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: trace(X[None], X, X), r"query must have axes .*\(1, 3, 4\): trace one sentence"),
        (lambda: trace(X, X, X, mask=np.ones((2, 3, 3), bool)), r"one mask and bias \(L, S\)"),
        (lambda: trace(X, X, X, query_labels="ab"), r"query_labels must be 3, .* got 2: \('a'"),
        (lambda: trace(X, X[:2], X[:2], key_labels="abc"), r"key_labels must be 2, .* got 3"),
        (lambda: eight_steps(tokens=["one"]), r"tokens must be 3, one for each token, got 1"),
        (lambda: trace_self_attention(X, W_QUERY, W_KEY[:3], W_VALUE),
         r"w_key needs 4 rows, one for each column of x, got shape \(3, 3\) for x \(3, 4\)"),
        (lambda: trace_self_attention(X, W_QUERY, np.ones(4), W_VALUE), r"w_key must have axes"),
        (lambda: eight_steps()["score"], r"step must be one of inputs, .* got 'score'"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()
