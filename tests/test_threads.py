"""Threads: as many as BLAS has, given back afterwards, and safe to call from several at once."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from qkvsearch.attention import attention, dot_score


def tensors(dtype: str, lead: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=(*lead, n, 8)).astype(dtype) for n in (300, 600, 600))


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info()]


def test_the_threads_of_blas_are_given_back():
    given = tensors("float32", lead=(4,))
    attention(*given)
    before = blas_threads()
    attention(*given)
    with pytest.raises(ZeroDivisionError):
        attention(*given, score=lambda query, key, scale: 1 / 0)
    assert blas_threads() == before


def test_calls_from_several_threads_at_once_agree():
    given = tensors("float32", lead=(4,))
    expected = attention(*given)
    before = blas_threads()
    outputs: list[np.ndarray] = []
    callers = [threading.Thread(target=lambda: outputs.append(attention(*given))) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(outputs) == 6
    for output in outputs:
        np.testing.assert_array_equal(output, expected)
    assert blas_threads() == before


def test_a_score_may_itself_attend():
    x = np.random.default_rng(0).normal(size=(300, 4))

    def attentive(query: np.ndarray, key: np.ndarray, scale: float | None) -> np.ndarray:
        return dot_score(attention(query, x, x, block_size=50), key, scale)

    got = attention(x, x, x, score=attentive, block_size=100)
    whole = attention(x, x, x, score=attentive, return_weights=True)[0]
    np.testing.assert_allclose(got, whole, atol=1e-12)
