"""Long logs and large catalogs as Parquet, some rows at a time, the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

# Rows that are made at a time.
PIECE = 1_000_000
# Popularity falls with this power of an item's rank, and activity with this one of a user's: a
# tenth of the items has about half of the interactions.
ITEM_POWER, USER_POWER = 0.7, 0.5


def write_long_log(path: Path, n: int, n_users: int, n_items: int, seed: int = 0) -> None:
    """n rows of user and item, int32. Pairs may repeat."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    names = rng.permutation(n_items).astype(np.int32)
    schema = pa.schema([("user", pa.int32()), ("item", pa.int32())])
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, n, PIECE):
            count = min(PIECE, n - start)
            users = _drawn(n_users, USER_POWER, count, rng)
            items = names[_drawn(n_items, ITEM_POWER, count, rng)]
            file.write_table(pa.table({"user": users, "item": items}, schema))


def write_catalog(path: Path, n_items: int, n_words: int, seed: int = 0) -> None:
    """Titles of so many words, of a vocabulary of 50,000; without words "thing 7"."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    schema = pa.schema([("id", pa.int32()), ("title", pa.string())])
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, n_items, PIECE):
            count = min(PIECE, n_items - start)
            ids = np.arange(start, start + count, dtype=np.int32)
            words = _drawn(50_000, ITEM_POWER, count * n_words, rng).reshape(count, n_words)
            named = [" ".join(f"w{word:x}" for word in row) for row in words.tolist()]
            titles = named if n_words else [f"thing {number}" for number in ids.tolist()]
            file.write_table(pa.table({"id": ids, "title": titles}, schema))


def _drawn(n: int, power: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Ranks below n, int32 (count,), of which each falls with a power of it: by inversion."""
    return (n * rng.random(count) ** (1 / (1 - power))).astype(np.int32)
