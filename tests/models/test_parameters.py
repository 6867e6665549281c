"""Parameters that cannot work are refused by name, before any work, by both models."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from qkvsearch.errors import DataError
from qkvsearch.models.estimators import BiasedMF, ImplicitALS

WHOLE = (0, -1, 2.5, 5.0, "5", None, True, np.nan)
POSITIVE = (0, -1, np.nan, np.inf, 1e39, 1e-60, "0.1", None, True)
WRONG: dict[type, dict[str, tuple[Any, ...]]] = {
    ImplicitALS: {
        "n_components": WHOLE,
        "max_iter": WHOLE,
        "cg_steps": WHOLE,
        "n_threads": (0, 1.5, "2", True),
        "alpha0": (*POSITIVE, "Auto"),
        "reg": (*POSITIVE, "Auto"),
        "init_scale": (*POSITIVE, "auto"),
        "nu": (-0.5, np.nan, np.inf, "1", None),
    },
    BiasedMF: {
        "n_components": WHOLE,
        "max_iter": WHOLE,
        "learning_rate": POSITIVE,
        "reg": (*POSITIVE, "auto"),
        "damping": POSITIVE,
        "bias_reg": POSITIVE,
        "init_scale": POSITIVE,
        "n_threads": (0, 1.5, "2", True),
    },
}
CASES = [
    (model, name, value)
    for model, names in WRONG.items()
    for name, values in names.items()
    for value in values
]


@pytest.mark.parametrize(("model", "name", "value"), CASES)
def test_a_parameter_that_cannot_work_is_named(model, name, value):
    with pytest.raises(DataError, match=f"^`{name}` must be .*, not {re.escape(repr(value))}$"):
        model(**{name: value}).fit(csr_matrix(np.eye(3)))


@pytest.mark.parametrize(
    ("model", "numbers"),
    [
        (
            ImplicitALS,
            {"n_components": np.int32(2), "alpha0": np.float32(0.5), "nu": np.float64(0)}
            | {"max_iter": np.uint8(3), "cg_steps": np.int64(2), "init_scale": np.float16(0.25)},
        ),
        (
            BiasedMF,
            {"n_components": np.int64(2), "reg": np.float32(0.25), "max_iter": np.uint8(2)}
            | {"damping": np.float16(2), "learning_rate": np.float32(0.0625)},
        ),
    ],
)
def test_numpy_numbers_are_numbers(model, numbers):
    """They fit the same bits as Python's own of the same value."""
    data = csr_matrix(np.eye(5) + np.eye(5, k=1) * 3)
    plain = {name: number.item() for name, number in numbers.items()}
    found, expected = (model(random_state=0, **kwargs).fit(data) for kwargs in (numbers, plain))
    assert np.array_equal(found.user_embeddings_, expected.user_embeddings_)
    assert np.array_equal(found.item_embeddings_, expected.item_embeddings_)
    assert found.item_embeddings_.shape == (5, 2)
    assert np.any(found.item_embeddings_)
    other = model(random_state=0, **{**plain, "max_iter": plain["max_iter"] + 1}).fit(data)
    assert not np.array_equal(found.item_embeddings_, other.item_embeddings_)
