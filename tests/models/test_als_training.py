"""The compiled solver beside a plain one, and compiled code where numba finds no place for it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from qkvsearch.attention import attention
from qkvsearch.models.als_training import MAX_GATHERED, Equations, solve_rows, width_of
from qkvsearch.models.estimators import BiasedMF, ImplicitALS
from qkvsearch.models.pairs import Pairs


def solved_plainly(y, c, spectrum, ridge, x, steps):
    """One row by the preconditioned conjugate gradient of the textbook, float64."""
    x = x.astype(np.float64)
    matrix = y.T @ (c[:, None] * y) + np.diag(spectrum + ridge)
    residual = y.T @ c - matrix @ x
    direction, before = np.zeros(len(x)), 1.0
    for _ in range(steps):
        preconditioned = residual / np.diag(matrix)
        squared = residual @ preconditioned
        if squared < 1e-20:
            break
        direction = preconditioned + squared / before * direction
        step, before = squared / (direction @ matrix @ direction), squared
        x += step * direction
        residual -= step * (matrix @ direction)
    return x


@pytest.mark.parametrize("d", [16, 288])
@pytest.mark.parametrize("lengths", [(5, 0, 4, 1), (MAX_GATHERED + 3, 7)])
def test_a_few_steps_from_where_a_row_stands_are_those_of_the_textbook(d, lengths):
    rng = np.random.default_rng(0)
    others = rng.normal(0, 0.2, (50, d)).astype(np.float32)
    columns = rng.integers(0, 50, sum(lengths)).astype(np.int32)
    confidences = rng.uniform(0.5, 2, sum(lengths)).astype(np.float32)
    spectrum, ridges = (rng.uniform(0.5, 1, n).astype(np.float32) for n in (d, len(lengths)))
    before = rng.normal(0, 0.2, (len(lengths), d)).astype(np.float32)
    indptr, solved, width = np.cumsum([0, *lengths]), before.copy(), width_of(d)

    rows = np.arange(len(lengths))
    pairs = Pairs(indptr, columns, confidences)
    solve_rows(rows, pairs, Equations(spectrum, ridges, others), solved, 2, width)

    for row in rows:
        own = slice(indptr[row], indptr[row + 1])
        y, c = others[columns[own]].astype(np.float64), confidences[own].astype(np.float64)
        expected = solved_plainly(y, c, spectrum, ridges[row], before[row], 2)
        assert np.abs(solved[row] - expected).max() < 1e-4
        assert np.abs(solved[row] - before[row]).max() > 0.1


FIT_WITHOUT_A_PLACE = """
from numba.core import caching

def read_only(locator):
    raise PermissionError("read-only file system")

caching._CacheLocator.ensure_cache_path = read_only

import numba
try:
    numba.njit(cache=True)(lambda: 0)
except RuntimeError:
    print("no place")

from importlib import import_module
for module in ("attention.kernels", "heads.quantized", "models.als_training"):
    import_module(f"qkvsearch.{module}")
"""
# Numbers that compiled code has a part in: the solver's, the descent's, attention block by block.
COMPUTED = """
from scipy.sparse import csr_matrix

data = csr_matrix(np.eye(9) * 3 + np.eye(9, k=2))
found = [
    model.fit(data).predict(0, [0, 1, 2]).tolist()
    for model in (ImplicitALS(4, random_state=0), BiasedMF(2, random_state=0))
]
x = np.random.default_rng(0).normal(size=(600, 4)).astype(np.float32)
found.append(attention(x, x, x)[:3].ravel().tolist())
"""
IMPORTS = """
import json
import numpy as np
from qkvsearch.attention import attention
from qkvsearch.models.estimators import BiasedMF, ImplicitALS
"""


@pytest.mark.slow
def test_a_read_only_install_compiles_without_keeping_the_code_and_computes_the_same():
    """Guards against `RuntimeError: cannot cache function`, as in a container without a home."""
    code = FIT_WITHOUT_A_PLACE + IMPORTS + COMPUTED + "print(json.dumps(found))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout.splitlines() or ["", "[]"]
    assert said[0] == "no place", done.stderr
    here = {"np": np, "attention": attention, "BiasedMF": BiasedMF, "ImplicitALS": ImplicitALS}
    exec(COMPUTED, here)
    for there, expected in zip(json.loads(said[1]), here["found"], strict=True):
        assert there == pytest.approx(expected, rel=1e-5, abs=1e-6)
        assert np.ptp(expected) > 0.1


FIT = """
import hashlib
import numpy as np
from scipy.sparse import csr_matrix
from qkvsearch.models.estimators import ImplicitALS
from qkvsearch.models.als_training import solve_rows

watched = np.random.default_rng(1).random((200, 80)) < 0.1
model = ImplicitALS(40, max_iter=1, random_state=0).fit(csr_matrix(watched, dtype=np.float32))
print(sum(solve_rows.stats.cache_hits.values()))
print(hashlib.sha256(model.user_embeddings_.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_a_fit_is_the_same_whether_its_code_was_compiled_just_now_or_before(tmp_path):
    found = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", FIT],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        )
        found.append(done.stdout.split())
    (compiled, first), (cached, second) = found
    assert (int(compiled), int(cached)) == (0, 1)
    assert first == second
