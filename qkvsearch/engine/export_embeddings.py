"""Export embeddings with their ids to safetensors, Parquet or NumPy's .npz.

Rows are written block by block, so that only one block is in memory. Nothing is pickled.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.files import is_on_disk, replacing
from qkvsearch.collaborative.preferences import COLLABORATIVE
from qkvsearch.data.ids import Ids, id_text
from qkvsearch.data.writers import require_pyarrow
from qkvsearch.errors import QkvError, suggest
from qkvsearch.index import StoredModels
from qkvsearch.recommend.recommend import Recommender
from qkvsearch.retrieval.remote_keys import Rows

ITEMS, USERS = KINDS = ("items", "users")
# Rows of items in a block; users have the blocks of `Histories`.
BLOCK = 8192
# The longest header that the safetensors library reads.
MAX_HEADER = 100_000_000
Block = np.ndarray


class ExportedEmbeddings(NamedTuple):
    """Size and head of the exported embeddings, and notes about them."""

    rows: int
    components: int
    head: str
    notes: list[str]


@dataclass(frozen=True)
class EmbeddingTable:
    """Embeddings of one head, one row for each id. blocks: float32 (n, components)."""

    of: str
    head: str
    ids: Ids
    components: int
    blocks: Callable[[], Iterator[Block]]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.ids), self.components

    @property
    def plain_ids(self) -> list[Any]:
        """The ids: all whole numbers, or all texts."""
        ids = list(self.ids)
        return ids if all(isinstance(id_, int) for id_ in ids) else list(map(id_text, ids))


def dense_head(models: StoredModels, head: str | None) -> str:
    """Return the name of a dense head, by default the main one. Raises `QkvError` for others."""
    names = models.dense_heads
    name = models.main_head if head is None else head
    if name not in names:
        raise QkvError(
            f"`head`: no head {name!r} with embeddings{suggest(name, names)} (there are "
            f"{', '.join(names)})"
        )
    return name


def embedding_table(recommender: Recommender, of: str, head: str | None) -> EmbeddingTable:
    """Return a dense head's keys, or learned embeddings of items or users. Raises `QkvError`."""
    models = recommender.models
    if of not in KINDS:
        raise QkvError(f"`of` is {' or '.join(KINDS)}, not {of!r}{suggest(of, list(KINDS))}")
    if of == USERS:
        if head not in (None, COLLABORATIVE):
            raise QkvError(
                f"`head`: users have no embedding by {head!r}, only one by {COLLABORATIVE}"
            )
        users, size = recommender.histories, recommender.factors.item_embeddings.shape[1]

        def solved() -> Iterator[Block]:
            for start, stop in users.blocks():
                histories = [users.at(row) for row in range(start, stop)]
                yield recommender.embeddings(histories).astype(np.float32)

        return EmbeddingTable(USERS, COLLABORATIVE, users.ids, size, solved)
    if head == COLLABORATIVE:
        vectors: Rows = recommender.factors.item_embeddings
    else:
        head = dense_head(models, head)
        vectors = models.dense_keys(head).vectors

    def stored() -> Iterator[Block]:
        for start in range(0, len(vectors), BLOCK):
            yield np.ascontiguousarray(vectors[start : start + BLOCK], dtype=np.float32)

    return EmbeddingTable(ITEMS, head, recommender.catalog.ids("items"), vectors.shape[1], stored)


def export_embeddings(
    table: EmbeddingTable, path: Path, progress: Progress | None = None
) -> ExportedEmbeddings:
    """Write a table to a file, in the format of its suffix. After an error there is no file.

    .safetensors: the tensor "embeddings", and in the metadata "ids", a JSON list. .npz: the arrays
    "ids" and "embeddings". .parquet: the columns "id" and "embedding". Raises `QkvError`.
    """
    write = WRITERS.get(path.suffix.lower())
    if path.suffix.lower() == ".npy":
        raise QkvError(f"{path}: a .npy file cannot contain ids; use .npz, which has both arrays")
    if write is None:
        raise QkvError(f"{path}: name a file that ends in {', '.join(WRITERS)}")
    if path.suffix.lower() == ".parquet":
        require_pyarrow(path)
    if not is_on_disk(path):
        raise QkvError(f"{path}: embeddings can be written only to a file on disk")
    n_zeros = 0

    def counted() -> Iterator[Block]:
        nonlocal n_zeros
        done = 0
        for block in table.blocks():
            n_zeros += int((~block.any(axis=1)).sum())
            yield block
            done += len(block)
            if progress is not None:
                progress("exporting embeddings", done, len(table.ids))

    with replacing(path) as file:
        write(file, table, counted())
    notes = []
    if n_zeros:
        notes.append(
            f"{n_zeros:,} of {len(table.ids):,} {table.of} have only zeros: nothing is known about "
            "them."
        )
    return ExportedEmbeddings(*table.shape, table.head, notes)


def _write_safetensors(file: IO[bytes], table: EmbeddingTable, blocks: Iterator[Block]) -> None:
    """Write the length of the header, the header in JSON, and the numbers."""
    n, d = table.shape
    ids = json.dumps(table.plain_ids, ensure_ascii=False)
    header = {
        "__metadata__": {"ids": ids, "of": table.of, "head": table.head},
        "embeddings": {"dtype": "F32", "shape": [n, d], "data_offsets": [0, 4 * n * d]},
    }
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise QkvError(
            f"{n:,} ids are longer than the {MAX_HEADER:,} bytes that a safetensors file can "
            "contain: use .parquet or .npz"
        )
    file.write(struct.pack("<Q", len(text)) + text)
    for block in blocks:
        file.write(block.astype("<f4", copy=False).tobytes())


def _write_npz(file: IO[bytes], table: EmbeddingTable, blocks: Iterator[Block]) -> None:
    """Write what `numpy.savez` would, block by block."""
    plain_ids = table.plain_ids
    is_integer = plain_ids and isinstance(plain_ids[0], int)
    ids = np.array(plain_ids, dtype=np.int64 if is_integer else np.str_)
    header = {"descr": "<f4", "fortran_order": False, "shape": table.shape}
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open("ids.npy", "w", force_zip64=True) as entry:
            np.lib.format.write_array(entry, ids, allow_pickle=False)
        with archive.open("embeddings.npy", "w", force_zip64=True) as entry:
            np.lib.format.write_array_header_2_0(entry, header)
            for block in blocks:
                entry.write(block.astype("<f4", copy=False).tobytes())


def _write_parquet(file: IO[bytes], table: EmbeddingTable, blocks: Iterator[Block]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain_ids = table.plain_ids
    kind = pa.int64() if plain_ids and isinstance(plain_ids[0], int) else pa.string()
    schema = pa.schema(
        [("id", kind), ("embedding", pa.list_(pa.float32(), table.components))],
        metadata={"of": table.of, "head": table.head},
    )
    with pq.ParquetWriter(file, schema) as writer:
        start = 0
        for block in blocks:
            ids = pa.array(plain_ids[start : start + len(block)], kind)
            rows = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), table.components)
            writer.write_table(pa.table([ids, rows], schema=schema))
            start += len(block)


WRITERS: dict[str, Callable[[IO[bytes], EmbeddingTable, Iterator[Block]], None]] = {
    ".safetensors": _write_safetensors,
    ".parquet": _write_parquet,
    ".npz": _write_npz,
}
