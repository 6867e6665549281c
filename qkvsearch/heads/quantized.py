"""int8 keys, a quarter of the memory: they find candidates, which float32 keys score exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qkvsearch._utils.compiled import compiled_for_any
from qkvsearch._utils.threads import available_cores, run_in_threads
from qkvsearch.heads.dense_keys import ItemKeys
from qkvsearch.scores.approximate import ApproximateQuery, Filter
from qkvsearch.scores.components import PartsOf
from qkvsearch.scores.fusion import Scores
from qkvsearch.scores.topk import MAX_KEYS, top_k
from qkvsearch.text.labelled import LEVELS

# What float32 may add to the rounding error, as a share of a step of int8: sums of some hundred
# components.
ROUNDING = 0.01


def quantize(keys: np.ndarray, n_rows: int = 2**14) -> dict[str, np.ndarray]:
    """Return keys (N, d) as codes, int8 (N, d), and scales, float32 (N,), by name. A key is about
    code · scale, to half a scale. `n_rows` rows are read at a time.

    Each row has a scale of its own, its largest absolute number over 127, and zero stays zero
    (symmetric quantization; Krishnamoorthi 2018, arXiv 1806.08342, 2.2). Queries stay float32.
    Raises `ValueError` for keys that are not finite or not (N, d).

    >>> quantize(np.array([[1.27, -0.5], [0, 0]], np.float32))["codes"].tolist()
    [[127, -50], [0, 0]]
    """
    if keys.ndim != 2:
        raise ValueError(f"keys must be (N, d), not {keys.shape}")
    codes = np.empty(keys.shape, np.int8)
    scales = np.empty(len(keys), np.float32)
    for start in range(0, len(keys), n_rows):
        block = np.asarray(keys[start : start + n_rows], np.float32)
        if not np.isfinite(block).all():
            raise ValueError(f"keys {start} to {start + len(block)} are not all finite")
        scale = np.abs(block).max(axis=1, initial=0) / np.float32(LEVELS)
        # In float64, where the reciprocal of no float32 overflows.
        steps = block / np.where(scale > 0, scale, 1)[:, None].astype(np.float64)
        codes[start : start + n_rows] = np.rint(np.clip(steps, -LEVELS, LEVELS))
        scales[start : start + n_rows] = scale
    return {"codes": codes, "scales": scales}


@dataclass(frozen=True)
class QuantizedKeys(ItemKeys["QuantizedQuery"]):
    """Dense keys of many items, with int8 copies."""

    # float32 (N, d).
    vectors: np.ndarray
    # As `quantize` returns them: int8 (N, d), and float32 (N,).
    codes: np.ndarray
    scales: np.ndarray

    def scored(self, name: str, vector: np.ndarray, parts: PartsOf) -> QuantizedQuery:
        return QuantizedQuery(name, self, vector, parts)

    def products(self, vector: np.ndarray) -> np.ndarray:
        """Return code · scale · query for each key, float32 (N,), with a thread for each core."""
        products = np.empty(len(self.codes), np.float32)

        def worker() -> Callable[[int], None]:
            def score(start: int) -> None:
                block = slice(start, start + MAX_KEYS)
                _products(self.codes[block], self.scales[block], vector, products[block])

            return score

        run_in_threads(worker, range(0, len(products), MAX_KEYS), available_cores())
        return products

    def max_error(self, vector: np.ndarray) -> float:
        """Return the largest possible difference of a product from the exact one: half a step of
        the coarsest key in each component, and rounding.
        """
        total = float(np.abs(vector).sum(dtype=np.float64))
        return total * (0.5 + ROUNDING) * float(self.scales.max(initial=0))

    def exact(self, vector: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return the exact scores of these items, (n,)."""
        # BLAS would make the last bits of a product depend on which other keys there are.
        return np.einsum("ij,j->i", self.vectors[positions], vector)


class QuantizedQuery(ApproximateQuery):
    """One query to int8 keys."""

    min_candidates = 50  # estimates are so good that few others can be among the best

    def __init__(self, name: str, keys: QuantizedKeys, vector: np.ndarray, parts: PartsOf) -> None:
        self.name = name
        self.keys = keys
        self.vector = vector
        self.parts = parts
        # Exact scores replace estimates as candidates are named.
        self._scores = keys.products(vector)
        self._is_exact = np.zeros(len(self._scores), dtype=bool)

    def nearest(self, k: int, allowed: Filter) -> np.ndarray:
        """Return all items that may be among the k best."""
        best = top_k(self._scores, k, allowed.mask)
        if not len(best):
            return best
        limit = float(self._scores[best[-1]]) - 2 * self.keys.max_error(self.vector)
        is_near = self._scores >= limit
        if allowed.mask is not None:
            is_near &= allowed.mask
        return np.flatnonzero(is_near)

    def scores(self, candidates: np.ndarray) -> Scores:
        self._score(candidates)
        return Scores(self.name, self._scores.copy(), self.parts, exact_above=self.above)

    def above(self, threshold: float) -> np.ndarray:
        distance = np.abs(self._scores - np.float32(threshold))
        self._score(np.flatnonzero(distance <= self.keys.max_error(self.vector)))
        return self._scores > threshold

    def _score(self, rows: np.ndarray) -> None:
        """Replace the estimates of these items by exact scores."""
        new = rows[~self._is_exact[rows]]
        self._scores[new] = self.keys.exact(self.vector, new)
        self._is_exact[new] = True


@compiled_for_any
def _products(
    codes: np.ndarray, scales: np.ndarray, query: np.ndarray, products: np.ndarray
) -> None:
    """products[i] = scales[i] · (codes[i] · query), in float32: int8 · int8 would round the query
    too, and takes longer.

    codes: int8 (B, d). scales: float32 (B,). query: float32 (d,). products: float32 (B,).
    """
    for i in range(codes.shape[0]):
        code = codes[i]
        total = np.float32(0)
        for c in range(query.shape[0]):
            total += np.float32(code[c]) * query[c]
        products[i] = total * scales[i]
