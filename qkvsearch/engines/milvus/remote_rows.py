"""The keys of a dense head on a server, as an array whose rows are read when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Rows that are read at a time where all are.
BLOCK = 4096


@dataclass(frozen=True)
class RemoteRows:
    """The keys of a dense head as an array (n_items, d), which reads only the rows asked for.

    store: `MilvusKeys`, or the like.
    """

    store: Any
    head: str
    width: int
    dtype = np.dtype(np.float32)
    ndim = 2

    def __len__(self) -> int:
        return self.store.n_items

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.width

    def __getitem__(self, rows: Any) -> np.ndarray:
        if isinstance(rows, (int, np.integer)):
            return self[[rows]][0]
        positions = np.arange(len(self))[rows]
        blocks = [positions[i : i + BLOCK] for i in range(0, len(positions), BLOCK)]
        keys = [self.store.rows(self.head, block) for block in blocks]
        return np.concatenate([np.zeros((0, self.width), np.float32), *keys])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype)
