"""Attention beside ONNX's node tests of its `Attention` operator, all 93 of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from .onnx_adapter import onnx_attention

onnx = pytest.importorskip("onnx", reason="needs onnx")
node_tests = pytest.importorskip("onnx.backend.test.case.node", reason="needs onnx")
# To import them is to generate them; the public `collect_testcases` would take nine seconds more,
# for the cases of all other operators.
pytest.importorskip("onnx.backend.test.case.node.attention", reason="needs onnx")

# ONNX's runner's own. bfloat16 has 8 significant bits, so neighbours lie up to 2⁻⁷ apart; the
# reference rounds to them after every step and strays 1.2 such gaps from the result in float64,
# `attention` rounds once and strays half a gap: 1.7 together, and two are allowed.
ATOL = 1e-7
RTOL = {"float16": 1e-3, "float32": 1e-3, "float64": 1e-3, "bfloat16": 2**-6}

# Half a gap between neighbours: what rounding a result to that dtype may change in it.
ROUNDED_ONCE = {"float16": 2**-11, "bfloat16": 2**-8}


class Case(NamedTuple):
    """A node test: the operator's inputs, attributes and expected outputs, by their names."""

    inputs: dict[str, np.ndarray]
    attributes: dict[str, Any]
    expected: dict[str, np.ndarray]


def case(test):
    """ONNX's test as a Case; an input or output that is left out has an empty name there."""
    (node,) = test.model.graph.node
    ((inputs, outputs),) = test.data_sets
    return Case(
        dict(zip(filter(None, node.input), inputs, strict=True)),
        {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute},
        dict(zip(filter(None, node.output), outputs, strict=True)),
    )


# Each case comes a second time, as a graph of simpler operators: a test of ONNX's, not of ours.
CASES = {
    test.name: case(test)
    for test in node_tests._NodeTestCases
    if [node.op_type for node in test.model.graph.node] == ["Attention"]
}
HALVES = [name for name in CASES if CASES[name].inputs["Q"].dtype.name in ROUNDED_ONCE]


def assert_close(got, wanted, rtol):
    """In float64, because NumPy would take the tolerance itself to float16."""
    np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=rtol, atol=ATOL)


def test_no_case_has_disappeared():
    assert len(CASES) == 93
    dtypes = [case.inputs["Q"].dtype.name for case in CASES.values()]
    counts = {dtype: dtypes.count(dtype) for dtype in sorted(set(dtypes))}
    assert counts == {"bfloat16": 5, "float16": 6, "float32": 82}


@pytest.mark.parametrize("name", CASES)
def test_every_output_of_a_case(name):
    inputs, attributes, expected = CASES[name]
    outputs = onnx_attention(**inputs, **attributes)
    for output, wanted in expected.items():
        got = getattr(outputs, output)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), output
        assert_close(got, wanted, RTOL[wanted.dtype.name])


@pytest.mark.parametrize("name", HALVES)
def test_half_precision_is_rounded_only_once(name):
    inputs, attributes, _ = CASES[name]
    dtype = inputs["Q"].dtype
    exact = {key: x.astype(float) if x.dtype == dtype else x for key, x in inputs.items()}
    got = onnx_attention(**inputs, **attributes).Y
    # A hundredth more for what float32 itself rounds.
    assert_close(got, onnx_attention(**exact, **attributes).Y, 1.01 * ROUNDED_ONCE[dtype.name])
