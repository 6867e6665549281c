"""Attention on PyTorch's tensors: gradients, beside what is hidden and of what the caller keeps."""

import math

import pytest

from qkvsearch.attention import AdditiveScore, attention, softmax

torch = pytest.importorskip("torch", reason="needs torch")

NAN, INF = float("nan"), float("inf")


def random(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


MASK = random(5, 6) > -0.5
MASK[2] = False  # a query that sees nothing
BIAS = random(5, 6, seed=1)


def by_hand(q, k, v, mask=None, bias=None, softcap=0.0, score="dot", normalize="softmax", **sides):
    """The formula in PyTorch's own functions."""
    if score == "cosine":
        unit = torch.nn.functional.normalize
        scores = unit(q, dim=-1) @ unit(k, dim=-1).mT
    else:
        scores = q @ k.mT / math.sqrt(q.shape[-1])
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    i, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])[None]
    visible = torch.ones(len(i), j.shape[1], dtype=torch.bool) if mask is None else mask
    left, right = sides.get("window", (99, 99))
    visible = visible & (j >= i - left) & (j <= i + (0 if sides.get("is_causal") else right))
    empty = ~visible.any(-1, keepdim=True)
    if normalize == "softmax":
        weights = torch.softmax(scores.masked_fill(~visible & ~empty, -INF), -1)
        return weights.masked_fill(~visible, 0) @ v
    terms = scores.masked_fill(~visible, 0)
    if normalize == "relu":
        terms = torch.relu(terms)
        total = terms.sum(-1, keepdim=True)
        terms = terms / torch.where(total == 0, 1, total)
    return terms @ v


OPTIONS = {
    "plain": {},
    "mask": {"mask": MASK},
    "bias": {"bias": BIAS},
    "mask and bias": {"mask": MASK, "bias": BIAS},
    "softcap": {"softcap": 2.0, "mask": MASK, "bias": BIAS},
    "window": {"window": (1, 1)},
    "causal": {"is_causal": True},
    "cosine": {"score": "cosine", "mask": MASK},
    "relu": {"normalize": "relu", "mask": MASK},
    "none": {"normalize": "none", "mask": MASK},
}


@pytest.mark.parametrize("with_weights", [False, True])
@pytest.mark.parametrize("lead", [(), (2, 3)], ids=str)
@pytest.mark.parametrize("name", OPTIONS)
def test_gradients_are_those_of_the_formula_by_hand(name, lead, with_weights):
    gradients = []
    for compute in (attention, by_hand):
        inputs = [random(*lead, n, 4, seed=n).requires_grad_() for n in (5, 6, 6)]
        options = dict(OPTIONS[name])
        if "bias" in options:
            options["bias"] = BIAS.clone().requires_grad_()
            inputs.append(options["bias"])
        if compute is attention and with_weights:
            output, _ = attention(*inputs[:3], **options, return_weights=True)
        else:
            output = compute(*inputs[:3], **options)
        output.square().sum().backward()
        assert all(x.requires_grad for x in inputs)
        gradients.append([output.detach(), *(x.grad for x in inputs)])
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-10)


def test_learned_scores_and_biases_keep_their_gradients(monkeypatch):
    def asarray(x, **keywords):
        raise AssertionError("PyTorch before 2.13 detaches tensors here, and freezes the caller's")

    monkeypatch.setattr(torch, "asarray", asarray)
    parameters = [random(4, 3), random(4, 3, seed=1), random(3, seed=2), random(5, 6, seed=3)]
    for parameter in parameters:
        parameter.requires_grad_()
    inputs = [random(n, 4, seed=n) for n in (5, 6, 6)]
    score = AdditiveScore(*parameters[:3])
    attention(*inputs, score=score, bias=parameters[3], mask=MASK).square().sum().backward()
    for parameter in parameters:
        assert parameter.requires_grad
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0


def test_the_gradients_of_additive_scores_are_finite_differences():
    inputs = [random(n, 4, seed=n).requires_grad_() for n in (2, 3, 3)]
    weights = [random(4, 2), random(4, 2, seed=1), random(2, seed=2)]
    weights = [weight.requires_grad_() for weight in weights]

    def compute(q, k, v, *weights):
        return attention(q, k, v, score=AdditiveScore(*weights))

    assert torch.autograd.gradcheck(compute, (*inputs, *weights))


def test_a_number_that_is_a_tensor_is_refused_since_its_gradient_would_be_lost():
    inputs = [random(2, 4)] * 3
    for name in ("scale", "softcap"):
        with pytest.raises(TypeError, match=name):
            attention(*inputs, **{name: torch.tensor(2.0, requires_grad=True)})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("who", ["query", "key", "hidden key"])
def test_a_zero_vector_has_no_gradient_under_the_cosine(who, dtype):
    q, k, v = (random(n, 4, seed=n).to(dtype) for n in (3, 5, 5))
    (q if who == "query" else k)[2] = 0
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[:, 2] = who != "hidden key"
    inputs = [x.requires_grad_() for x in (q, k, v)]
    output = attention(*inputs, score="cosine", mask=mask)
    output.square().sum().backward()
    assert torch.isfinite(output).all()
    assert all(torch.isfinite(x.grad).all() for x in inputs)
    assert ((q if who == "query" else k).grad[2] == 0).all()


def gradients_of(inputs, **options):
    """The output and the gradients where the loss is of the first five queries alone."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    output = attention(*inputs, **options)
    output[..., :5, :].square().sum().backward()
    return [output.detach(), *(x.grad for x in inputs)]


HIDING = {
    "causal": {"is_causal": True},
    "window": {"window": (2, 0)},
    "mask": {"mask": torch.arange(6) < 5},
    "bias": {"bias": torch.where(torch.arange(6) < 5, 0.0, -INF).double()},
    "softcap": {"is_causal": True, "softcap": 3.0},
    "cosine": {"is_causal": True, "score": "cosine"},
    "relu": {"is_causal": True, "normalize": "relu"},
    "additive": {
        "is_causal": True,
        "score": AdditiveScore(random(4, 3), random(4, 3, seed=1), random(3, seed=2)),
    },
}


@pytest.mark.parametrize("lead", [(), (2, 2)], ids=str)
@pytest.mark.parametrize("broken", [NAN, INF, -INF])
@pytest.mark.parametrize("name", HIDING)
def test_a_hidden_token_has_no_effect_on_gradients(name, broken, lead):
    clean = [random(*lead, 6, 4, seed=seed) for seed in range(3)]
    dirty = [x.clone() for x in clean]
    for x in dirty:
        x[..., 5, :] = broken
    expected, found = (gradients_of(inputs, **HIDING[name]) for inputs in (clean, dirty))
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours[..., :5, :], theirs[..., :5, :])


def test_hidden_tokens_of_one_text_are_seen_in_another():
    q, k, v = random(2, 3, 4), random(6, 4, seed=1), random(2, 6, 4, seed=2)
    mask = torch.ones(2, 3, 6, dtype=torch.bool)
    mask[0, :, 4] = False
    broken = k.clone()
    broken[4] = NAN
    k_, q_ = broken.requires_grad_(), q.clone().requires_grad_()
    output = attention(q_, k_, v, mask=mask)
    output[0].square().sum().backward()
    assert torch.isnan(output[1]).all()
    q.requires_grad_()
    attention(q, k, v, mask=mask)[0].square().sum().backward()
    assert torch.allclose(q_.grad, q.grad)
    assert torch.isfinite(k_.grad).all()


def test_a_row_of_hidden_scores_has_no_gradient():
    scores = torch.tensor([[-INF, -INF], [1.0, -INF]], requires_grad=True)
    softmax(scores).square().sum().backward()
    assert (scores.grad == 0).all()


@pytest.mark.parametrize("normalize", ["softmax", "relu", "none"])
@pytest.mark.parametrize("with_weights", [False, True])
def test_an_empty_row_that_is_nan_leaves_the_gradients_of_the_others(normalize, with_weights):
    """They are those of the same rows where an empty one is zero."""
    seen = torch.tensor([0, 1, 3, 4])
    gradients = []
    for empty_rows in ("zero", "nan"):
        q, k, v = (random(*shape).requires_grad_() for shape in ((2, 5, 4), (6, 4), (2, 6, 3)))
        found = attention(
            q, k, v, mask=MASK, bias=BIAS.abs() + 9, normalize=normalize, empty_rows=empty_rows,
            return_weights=with_weights,
        )  # fmt: skip
        output = found[0] if with_weights else found
        assert output[:, 2].isnan().all().item() is (empty_rows == "nan")
        output[:, seen].square().sum().backward()
        gradients.append([x.grad for x in (q, k, v)])
    for zero, nan in zip(*gradients, strict=True):
        torch.testing.assert_close(nan, zero)
