"""Parameters that cannot work are refused by name, before any work, by both models."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from qkvsearch.collaborative.als import ImplicitALS
from qkvsearch.collaborative.biased_mf import BiasedMF
from qkvsearch.errors import DataError

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
    with pytest.raises(DataError, match=f"^{name} must be .*, got {re.escape(repr(value))}$"):
        model(**{name: value}).fit(csr_matrix(np.eye(3)))


def test_numpy_numbers_are_numbers():
    data = csr_matrix(np.eye(3))
    ImplicitALS(np.int32(2), alpha0=np.float32(0.1), nu=np.float64(0)).fit(data)
    BiasedMF(np.int64(2), reg=np.float32(0.1), max_iter=np.uint8(2)).fit(data)
