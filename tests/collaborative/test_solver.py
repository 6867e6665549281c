"""The compiled kernels where numba finds no place to keep its machine code."""

from __future__ import annotations

import os
import subprocess
import sys

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
for module in ("attention.block_kernel", "retrieval._kernels", "collaborative.solver"):
    import_module(f"qkvsearch.{module}")
import_module("qkvsearch.attention.layers.packed")

import numpy as np
from scipy.sparse import csr_matrix
from qkvsearch.collaborative.biased_mf import BiasedMF
print(np.isfinite(BiasedMF(2).fit(csr_matrix(np.eye(3))).user_embeddings_).all())
"""


def test_a_read_only_install_compiles_without_keeping_the_code():
    """Guards against `RuntimeError: cannot cache function`, as in a container without a home."""
    command = [sys.executable, "-c", FIT_WITHOUT_A_PLACE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n") == ["no place", "True", ""], done.stderr


FIT = """
import hashlib
import numpy as np
from scipy.sparse import csr_matrix
from qkvsearch.collaborative.als import ImplicitALS
from qkvsearch.collaborative.solver import solve_rows

watched = np.random.default_rng(1).random((200, 80)) < 0.1
model = ImplicitALS(40, max_iter=1, random_state=0).fit(csr_matrix(watched, dtype=np.float32))
print(sum(solve_rows.stats.cache_hits.values()))
print(hashlib.sha256(model.user_embeddings_.tobytes()).hexdigest())
"""


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
