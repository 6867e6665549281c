"""Arrays of other libraries, and dtypes that NumPy borrows: the same numbers, in their own kind."""

import numpy as np
import pytest

from qkvsearch.attention import AdditiveScore, attention, softmax

INF = np.inf
Q, K, V = (np.random.default_rng(i).normal(size=(2, 4, n, 8)) for i, n in enumerate((5, 7, 7)))
SOME = np.random.default_rng(9).random((5, 7)) < 0.5
SOME[2] = False
ADDITIVE = [np.random.default_rng(i).normal(size=s) for i, s in enumerate([(8, 3), (8, 3), (3,)])]

OPTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "offset": {"is_causal": True, "causal_offset": -2},
    "window": {"window": (1, 2), "causal_offset": 1},
    "mask": {"mask": SOME},
    "bias": {"bias": np.where(SOME, 0.7, -INF), "scale": 2.0},
    "both": {"mask": SOME, "bias": np.linspace(-1, 1, 7), "is_causal": True},
    "uniform": {"mask": SOME, "empty_rows": "uniform"},
    "nan": {"mask": SOME, "empty_rows": "nan"},
    "softcap": {"softcap": 1.5},
    "cosine": {"score": "cosine", "scale": 3.0},
    "additive": {"score": AdditiveScore(*ADDITIVE), "mask": SOME},
    "relu": {"normalize": "relu", "is_causal": True},
    "none": {"normalize": "none", "mask": SOME},
}


def library(name):
    return pytest.importorskip(name, reason=f"needs {name}")


@pytest.fixture(params=["array_api_strict", "torch"])
def xp(request):
    return library(request.param)


def as_numpy(x):
    return np.asarray(x.detach() if hasattr(x, "detach") else x)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("return_weights", [True, False])
def test_another_library_gives_numpys_numbers_in_its_own_arrays(xp, options, return_weights):
    given = [xp.asarray(x) for x in (Q, K, V)]
    got = attention(*given, return_weights=return_weights, **options)
    expected = attention(Q, K, V, return_weights=return_weights, **options)
    if not return_weights:
        got, expected = (got,), (expected,)
    for ours, numpys in zip(got, expected, strict=True):
        assert type(ours) is type(given[0])
        assert ours.dtype == given[0].dtype
        np.testing.assert_allclose(as_numpy(ours), numpys, rtol=1e-12, atol=1e-13)


def test_shared_heads_and_broadcast_axes(xp):
    k, v = K[:1, :2], V[:, :2]
    got = attention(*(xp.asarray(x) for x in (Q, k, v)))
    np.testing.assert_allclose(as_numpy(got), attention(Q, k, v), rtol=1e-12)


def test_whole_numbers_and_two_axes(xp):
    x = np.array([[1, 2], [3, 4]])
    np.testing.assert_allclose(
        as_numpy(attention(*[xp.asarray(x)] * 3)), attention(x, x, x), rtol=1e-12
    )


def test_nothing_leaks_from_a_hidden_key(xp):
    k, v = K.copy(), V.copy()
    k[..., 6, :], v[..., 6, :] = np.nan, INF
    mask = np.arange(7) < 6
    got = attention(*(xp.asarray(x) for x in (Q, k, v)), mask=mask)
    np.testing.assert_allclose(as_numpy(got), attention(Q, K, V, mask=mask), rtol=1e-12)


def test_many_scores_of_another_library(xp):
    x = np.random.default_rng(3).normal(size=(600, 4)).astype(np.float32)
    got = attention(*[xp.asarray(x)] * 3, is_causal=True)
    np.testing.assert_allclose(as_numpy(got), attention(x, x, x, is_causal=True), atol=1e-5)


def test_softmax_of_another_library(xp):
    scores = np.where(SOME, 1.5, -INF)
    np.testing.assert_allclose(as_numpy(softmax(xp.asarray(scores))), softmax(scores), rtol=1e-12)


def test_libraries_do_not_mix(xp):
    with pytest.raises(TypeError, match=r"arrays of one library at a time, got .*numpy"):
        attention(xp.asarray(Q), K, V)


def test_a_mask_of_numbers_is_refused_in_any_library(xp):
    with pytest.raises(TypeError, match="mask must be boolean"):
        attention(*(xp.asarray(x) for x in (Q, K, V)), mask=xp.asarray(np.ones((5, 7))))


# --- PyTorch's own kernel ---


def fused_calls(monkeypatch, **options):
    torch = library("torch")
    calls = []
    kernel = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional,
        "scaled_dot_product_attention",
        lambda *a, **k: calls.append(1) or kernel(*a, **k),
    )
    attention(*(torch.asarray(x) for x in (Q, K, V)), **options)
    return len(calls)


SAME = ("plain", "causal", "offset", "window", "mask", "bias", "both")


@pytest.mark.parametrize("name", OPTIONS)
def test_the_fused_kernel_is_used_where_it_means_the_same(monkeypatch, name):
    assert fused_calls(monkeypatch, **OPTIONS[name]) == (name in SAME)
    assert fused_calls(monkeypatch, return_weights=True, **OPTIONS[name]) == 0


@pytest.mark.parametrize(("shape", "n_masks"), [((5, 7), 1), ((7,), 1), ((2, 1, 1, 7), 2)])
def test_a_mask_that_batches_share_is_made_once_for_all_of_them(monkeypatch, shape, n_masks):
    torch = library("torch")
    masks = []
    kernel = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional,
        "scaled_dot_product_attention",
        lambda *a, **k: masks.append(k["attn_mask"]) or kernel(*a, **k),
    )
    mask = np.random.default_rng(3).random(shape) < 0.5
    got = attention(*(torch.asarray(x) for x in (Q, K, V)), mask=torch.asarray(mask))
    np.testing.assert_allclose(got, attention(Q, K, V, mask=mask))
    assert [made.untyped_storage().nbytes() for made in masks] == [n_masks * 5 * 7 * 8]


def test_gradients_flow_through_either_path():
    torch = library("torch")
    grads = []
    for options in ({}, {"return_weights": True}):
        given = [torch.asarray(x).requires_grad_() for x in (Q, K, V)]
        output = attention(*given, mask=SOME, **options)
        (output[0] if options else output).square().sum().backward()
        grads.append([x.grad for x in given])
    for fused_grad, dense_grad in zip(*grads, strict=True):
        np.testing.assert_allclose(fused_grad, dense_grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_tensors_come_back_as_they_were(dtype):
    torch = library("torch")
    given = [torch.asarray(x).to(getattr(torch, dtype)) for x in (Q, K, V)]
    for output in (attention(*given), attention(*given, softcap=30.0)):
        assert output.dtype == given[0].dtype
    np.testing.assert_allclose(attention(*given).float(), attention(Q, K, V), atol=0.05)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_arrays_stay_on_their_device(options):
    strict = library("array_api_strict")
    device = strict.Device("device1")
    given = [strict.asarray(x, device=device) for x in (Q, K, V)]
    assert attention(*given, **options).device == device


# --- dtypes that NumPy borrows ---


def test_bfloat16_is_computed_in_float32():
    ml_dtypes = library("ml_dtypes")
    q, k, v = (x.astype(ml_dtypes.bfloat16) for x in (Q, K, V))
    wide = attention(*(x.astype(np.float32) for x in (q, k, v)))
    for output in (attention(q, k, v), attention(q, k, v, block_size=3)):
        assert output.dtype == ml_dtypes.bfloat16
        # Eight bits of precision: the last step, rounding, is the only one to lose any.
        np.testing.assert_allclose(output.astype(np.float32), wide, rtol=2**-8)


def test_bfloat16_with_float32_gives_float32():
    ml_dtypes = library("ml_dtypes")
    assert attention(Q.astype(ml_dtypes.bfloat16), *(x.astype("f4") for x in (K, V))).dtype == "f4"
