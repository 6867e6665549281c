"""A step's code is the source of the function that computed it, and a cell needs no other."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.attention import attention, softmax
from qkvsearch.lessons.cells import called, codes, given, literal, ran
from qkvsearch.lessons.compute.masks import influence

X, W = np.eye(2), np.array([[1.0, 2.0], [0.0, 1.0]])


def projected(X, W_K, W_Q, W_V):
    K, Q, V = X @ W_K, X @ W_Q, X @ W_V
    return K, Q, V


def scored(Q, K):
    scores = Q @ K.T
    return scores


def all_products(users, films):
    return users @ films.T


def weighed(scores):
    weights = softmax(scores)
    return weights


def weights_again(weights):
    """Not shown."""
    weights = softmax(weights)
    # This is.
    return weights


def test_the_body_is_the_code_and_what_is_returned_is_its_last_line():
    cell, value = ran(weights_again, weights=X)
    assert cell.lines == "weights = softmax(weights)\n# This is.\nweights"
    np.testing.assert_array_equal(value, softmax(X))


def test_a_cell_takes_up_what_the_one_before_left():
    by_letters, (K, Q, _) = ran(projected, X=X, W_K=W, W_Q=W, W_V=W)
    scores, value = ran(scored, Q=Q, K=K)
    first, second, third = codes([by_letters, scores, ran(weighed, scores=value)[0]])
    assert first.endswith("K, Q, V = X @ W_K, X @ W_Q, X @ W_V\nK, Q, V")
    assert second == "scores = Q @ K.T\nscores"
    assert third.endswith("import softmax\nweights = softmax(scores)\nweights")
    assert "Q = np.array(" in scores.text()  # alone it names its inputs


def test_another_value_under_the_same_name_is_assigned_again():
    again = [ran(all_products, users=users, films=X)[0] for users in (X, W, W)]
    first, second, third = codes(again)
    assert first.count("np.array(") == 2
    assert second == f"users = {literal(W)}\nusers @ films.T"
    assert third == "users @ films.T"


def test_what_a_cell_overwrites_is_assigned_again():
    scores = np.array([[0.0, 1.0]])
    _, second = codes([ran(weighed, scores=scores)[0], ran(weights_again, weights=X)[0]])
    assert "weights = np.array([[1.0, 0.0], [0.0, 1.0]])" in second
    left, value = ran(weights_again, weights=X)
    assert codes([left, ran(weights_again, weights=X)[0]])[1].startswith("weights = np.array")
    assert codes([left, given(weights=value)])[1] == "weights"


def test_a_call_brings_the_function_and_those_that_it_calls_once(monkeypatch):
    monkeypatch.setattr("qkvsearch.lessons.cells.COURSE", "qkvsearch.lessons.compute")
    cell, _ = called(influence, X=X, W_Q=W, W_K=W, W_V=W)
    first, second = codes([cell, cell])
    for name in ("moved", "raised", "influence"):
        assert first.count(f"def {name}(") == 1
    assert first.startswith("import numpy as np\nfrom ")
    assert first.endswith("\ninfluence(X, W_Q, W_K, W_V)")
    assert second == "influence(X, W_Q, W_K, W_V)"
    assert attention.__name__ in first


@pytest.mark.parametrize("value", [object(), np.float64, [object()]])
def test_what_code_cannot_say_is_no_input(value):
    with pytest.raises((ValueError, SyntaxError)):
        literal(value)
