"""Prints what a fit takes, as JSON, in a process whose code is compiled: `added` bytes over the
loaded matrix, `peak` bytes, and processor `seconds` of all threads.

python -m benchmarks.support.fit_memory MATRIX.npz [COMPONENTS]    (Linux)

Of ImplicitALS, two iterations, or without components of ItemNeighbours.
"""

from __future__ import annotations

import json
import sys
from time import process_time

import numpy as np
from scipy.sparse import csr_matrix, load_npz

from benchmarks.support.memory import peak
from qkvsearch.models import item_neighbours
from qkvsearch.models.estimators import ImplicitALS, ItemNeighbours


def fit(matrix: csr_matrix, components: list[str]) -> None:
    if components:
        ImplicitALS(int(components[0]), max_iter=2, random_state=0).fit(matrix)
    else:
        ItemNeighbours().fit(matrix)


if __name__ == "__main__":
    path, *components = sys.argv[1:]
    item_neighbours.MAX_DENSE_ITEMS = 0  # compiles what large catalogs take
    fit(csr_matrix(np.eye(64, dtype=np.float32)), components)
    matrix = load_npz(path)
    loaded, began = peak(), process_time()
    fit(matrix, components)
    seconds = process_time() - began
    print(json.dumps({"added": peak() - loaded, "peak": peak(), "seconds": seconds}))
