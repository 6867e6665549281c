"""Keys in a quarter of the memory: int8 to find candidates, the float32 originals to rank them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from qkvsearch._utils.threads import available_cores, run_in_threads
from qkvsearch.retrieval.topk import MOST_KEYS, Score, search_blocks, top_k
from qkvsearch.text.labelled import LEVELS

# For at most 2 queries, a pass over the codes for each beats turning them into float32 for BLAS.
FEW = 2
# Codes become float32 1,024 at a time, half a megabyte of 128 dimensions.
PIECE = 1024
# Of a step of int8, what float32 may add to the error of rounding: sums of some hundred components.
ROUNDING = 0.01


@dataclass(frozen=True)
class QuantizedKeys:
    """codes: int8 (N, d). scales: float32 (N,). A key is about code · scale, to half a scale.

    Each row has a scale of its own, its largest absolute number over 127, and zero stays zero
    (symmetric quantization; Krishnamoorthi 2018, arXiv 1806.08342, 2.2). Queries stay float32.
    """

    codes: np.ndarray
    scales: np.ndarray

    @classmethod
    def from_keys(cls, keys: np.ndarray, rows: int = 2**14) -> Self:
        """Quantize keys (N, d), as well a memory map: `rows` of them are read at a time.

        Raises `ValueError` for keys that are not finite or not (N, d).

        >>> quantized = QuantizedKeys.from_keys(np.array([[1.27, -0.5], [0, 0]], np.float32))
        >>> quantized.codes.tolist()
        [[127, -50], [0, 0]]
        """
        if keys.ndim != 2:
            raise ValueError(f"keys must be (N, d), not {keys.shape}")
        codes = np.empty(keys.shape, np.int8)
        scales = np.empty(len(keys), np.float32)
        for begin in range(0, len(keys), rows):
            block = np.asarray(keys[begin : begin + rows], np.float32)
            if not np.isfinite(block).all():
                raise ValueError(f"keys {begin} to {begin + len(block)} are not all finite")
            scale = np.abs(block).max(axis=1, initial=0) / np.float32(LEVELS)
            # In float64, where the reciprocal of no float32 overflows.
            steps = block / np.where(scale > 0, scale, 1)[:, None].astype(np.float64)
            codes[begin : begin + rows] = np.rint(np.clip(steps, -LEVELS, LEVELS))
            scales[begin : begin + rows] = scale
        return cls(codes, scales)

    def __len__(self) -> int:
        return len(self.codes)

    def arrays(self) -> dict[str, np.ndarray]:
        """What to store, by name; `from_arrays` takes it back, memory-mapped or not."""
        return {"codes": self.codes, "scales": self.scales}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        return cls(arrays["codes"], arrays["scales"])

    def products(self, query: np.ndarray) -> np.ndarray:
        """code · scale · query of every key, float32 (N,), in as many threads as there are cores.

        query: float32 (d,).
        """
        # Numba takes longer to import than most searches.
        from qkvsearch.retrieval._kernels import products

        found = np.empty((len(self), 1), np.float32)
        queries = np.ascontiguousarray(query, np.float32)[None]

        def worker() -> Callable[[int], None]:
            def take(begin: int) -> None:
                some = slice(begin, begin + MOST_KEYS)
                products(self.codes[some], self.scales[some], queries, found[some])

            return take

        run_in_threads(worker, range(0, len(self), MOST_KEYS), available_cores())
        return found[:, 0]

    def most_error(self, query: np.ndarray) -> float:
        """By how much a product may differ from that of the key itself: half a step of the coarsest
        key in each component, and as much as float32 rounds.
        """
        total = float(np.abs(query).sum(dtype=np.float64))
        return total * (0.5 + ROUNDING) * float(self.scales.max(initial=0))

    def search(
        self,
        queries: np.ndarray,
        keys: np.ndarray,
        k: int,
        mask: np.ndarray | None = None,
        candidates: int = 10,
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `search_dense`, of candidates · k keys found by their codes; scores are exact.

        queries: (n, d). keys: (N, d), those that were quantized; only the candidates are read.
        Raises `ValueError` where shapes do not fit.
        """
        if queries.ndim != 2 or keys.shape != self.codes.shape:
            raise ValueError(f"keys {keys.shape} are not those quantized, {self.codes.shape}")
        if queries.shape[1] != keys.shape[1]:
            raise ValueError(f"queries {queries.shape} do not fit keys {keys.shape}")
        queries = np.ascontiguousarray(queries, dtype=np.float32)

        def scorer(chosen: slice) -> Callable[[], Score]:
            some = queries[chosen]
            return self._by_pass(some) if len(some) <= FEW else self._by_blas(some)

        near, _ = search_blocks(scorer, len(queries), len(keys), k * candidates, mask)
        return _rescore(queries, keys, near, k)

    def _by_pass(self, queries: np.ndarray) -> Callable[[], Score]:
        # Numba takes longer to import than most searches, and a batch does without.
        from qkvsearch.retrieval._kernels import products

        def score(places: slice | np.ndarray) -> np.ndarray:
            codes, scales = self.codes[places], self.scales[places]
            found = np.empty((len(codes), len(queries)), np.float32)
            products(np.asarray(codes), np.asarray(scales), queries, found)
            return found

        return lambda: score

    def _by_blas(self, queries: np.ndarray) -> Callable[[], Score]:
        def worker() -> Score:
            wide = np.empty((PIECE, queries.shape[1]), np.float32)
            room = np.empty((MOST_KEYS, len(queries)), np.float32)

            def score(places: slice | np.ndarray) -> np.ndarray:
                codes, scales = self.codes[places], self.scales[places]
                found = room[: len(codes)]
                for i in range(0, len(codes), PIECE):
                    piece = wide[: len(codes[i : i + PIECE])]
                    np.copyto(piece, codes[i : i + PIECE])
                    np.matmul(piece, queries.T, out=found[i : i + PIECE])
                found *= scales[:, None]
                return found

            return score

        return worker


def _rescore(
    queries: np.ndarray, keys: np.ndarray, near: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The k best of each query's candidates `near` (n, c), by their exact products."""
    width = min(k, near.shape[1])
    positions = np.empty((len(queries), width), np.int64)
    scores = np.empty((len(queries), width), np.float32)
    for i, query in enumerate(queries):
        # In ascending order a file is read forwards, and ties go to the smaller position.
        rows = np.sort(near[i])
        exact = keys[rows] @ query
        best = top_k(exact, width)
        positions[i], scores[i] = rows[best], exact[best]
    return positions, scores
