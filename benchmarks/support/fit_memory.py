"""Prints the bytes by which a process, its code loaded, grows for a fit of ImplicitALS.

python -m benchmarks.support.fit_memory MATRIX.npz COMPONENTS    (Linux)
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.sparse import csr_matrix, load_npz

from benchmarks.support.memory import peak
from qkvsearch.embeddings import ImplicitALS

if __name__ == "__main__":
    path, d = sys.argv[1:]
    ImplicitALS(int(d), max_iter=1).fit(csr_matrix(np.eye(64, dtype=np.float32)))
    matrix = load_npz(path)
    loaded = peak()
    ImplicitALS(int(d), max_iter=2, random_state=0).fit(matrix)
    print(peak() - loaded)
