"""Embeddings with their ids to a file for other programs: safetensors, Parquet or NumPy's .npz.

Rows are written block by block, so that no more than one block is in memory; nothing is pickled.
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

from qkvsearch._utils.files import is_on_disk, replacing
from qkvsearch._utils.progress import Progress
from qkvsearch.data.ids import Ids, id_text
from qkvsearch.data.writers import require_pyarrow
from qkvsearch.errors import QkvError, suggest
from qkvsearch.index import StoredModels
from qkvsearch.recommend.recommend import HEAD as COLLABORATIVE
from qkvsearch.recommend.recommend import Recommender
from qkvsearch.retrieval.remote_keys import Rows

ITEMS, USERS = OF = ("items", "users")
# Rows of a block of items; those of users come in the blocks of their histories.
BLOCK = 8192
# The longest header that the library of safetensors reads.
MOST_HEADER = 100_000_000
NOTHING_KNOWN = "nothing is known of them"
Block = np.ndarray


class ExportedEmbeddings(NamedTuple):
    """How many rows of how many components a file has, of which head; what is to be said of it."""

    rows: int
    components: int
    head: str
    notes: list[str]


@dataclass(frozen=True)
class EmbeddingTable:
    """Embeddings of one head, a row an id. blocks: float32 (n, components), in the ids' order."""

    of: str
    head: str
    ids: Ids
    components: int
    blocks: Callable[[], Iterator[Block]]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.ids), self.components

    @property
    def own_ids(self) -> list[Any]:
        """As the owner has them: all whole numbers, or all texts."""
        every = [self.ids[row] for row in range(len(self.ids))]
        return every if all(isinstance(one, int) for one in every) else list(map(id_text, every))


def dense_head(models: StoredModels, head: str | None) -> str:
    """A dense head of a build by name, the main one for None. Raises `QkvError`."""
    names = list(models.head_weights)[1:]
    name = models.main_head if head is None else head
    if name not in names:
        raise QkvError(
            f"`head`: no head {name!r} that has embeddings{suggest(name, names)} (there are "
            f"{', '.join(names)})"
        )
    return name


def embedding_table(recommender: Recommender, of: str, head: str | None) -> EmbeddingTable:
    """The keys of a dense head, or the embeddings that were learned from interactions, of items or
    users. Raises `QkvError` for what there is not.
    """
    models = recommender.models
    if of not in OF:
        raise QkvError(f"`of` is {' or '.join(OF)}, not {of!r}{suggest(of, list(OF))}")
    if of == USERS:
        if head not in (None, COLLABORATIVE):
            raise QkvError(
                f"`head`: users have no embedding by {head!r}, only one by {COLLABORATIVE}"
            )
        users, size = recommender.histories, recommender.factors.item_embeddings.shape[1]

        def solved() -> Iterator[Block]:
            for start, stop in users.blocks():
                found = recommender.embeddings([users.at(row) for row in range(start, stop)])
                yield found.astype(np.float32)

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
    """Write a table to a file, whose suffix says in which form; it appears whole or not at all.

    .safetensors: the tensor "embeddings", and in the metadata "ids", a JSON list. .npz: the arrays
    "ids" and "embeddings". .parquet: the columns "id" and "embedding". Raises `QkvError`.
    """
    write = WRITERS.get(path.suffix.lower())
    if path.suffix.lower() == ".npy":
        raise QkvError(f"{path}: a .npy has no room for ids; name it .npz, which has both arrays")
    if write is None:
        raise QkvError(f"{path}: embeddings go to a file called {', '.join(WRITERS)}")
    if path.suffix.lower() == ".parquet":
        require_pyarrow(path)
    if not is_on_disk(path):
        raise QkvError(f"{path}: embeddings go to a file on disk")
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
            f"{n_zeros:,} of {len(table.ids):,} {table.of} have zeros alone: {NOTHING_KNOWN}."
        )
    return ExportedEmbeddings(*table.shape, table.head, notes)


def _write_safetensors(file: IO[bytes], table: EmbeddingTable, blocks: Iterator[Block]) -> None:
    """By the format's description: the length of a header, the header in JSON, the numbers."""
    n, d = table.shape
    ids = json.dumps(table.own_ids, ensure_ascii=False)
    header = {
        "__metadata__": {"ids": ids, "of": table.of, "head": table.head},
        "embeddings": {"dtype": "F32", "shape": [n, d], "data_offsets": [0, 4 * n * d]},
    }
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER:
        raise QkvError(
            f"{n:,} ids are longer than the {MOST_HEADER:,} bytes that a safetensors file has room "
            "for: name it .parquet or .npz"
        )
    file.write(struct.pack("<Q", len(text)) + text)
    for block in blocks:
        file.write(block.astype("<f4", copy=False).tobytes())


def _write_npz(file: IO[bytes], table: EmbeddingTable, blocks: Iterator[Block]) -> None:
    """As `numpy.savez` does it, but for the blocks."""
    own = table.own_ids
    ids = np.array(own, dtype=np.int64 if own and isinstance(own[0], int) else np.str_)
    form = {"descr": "<f4", "fortran_order": False, "shape": table.shape}
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open("ids.npy", "w", force_zip64=True) as entry:
            np.lib.format.write_array(entry, ids, allow_pickle=False)
        with archive.open("embeddings.npy", "w", force_zip64=True) as entry:
            np.lib.format.write_array_header_2_0(entry, form)
            for block in blocks:
                entry.write(block.astype("<f4", copy=False).tobytes())


def _write_parquet(file: IO[bytes], table: EmbeddingTable, blocks: Iterator[Block]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    own = table.own_ids
    kind = pa.int64() if own and isinstance(own[0], int) else pa.string()
    schema = pa.schema(
        [("id", kind), ("embedding", pa.list_(pa.float32(), table.components))],
        metadata={"of": table.of, "head": table.head},
    )
    with pq.ParquetWriter(file, schema) as writer:
        start = 0
        for block in blocks:
            ids = pa.array(own[start : start + len(block)], kind)
            rows = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), table.components)
            writer.write_table(pa.table([ids, rows], schema=schema))
            start += len(block)


WRITERS: dict[str, Callable[[IO[bytes], EmbeddingTable, Iterator[Block]], None]] = {
    ".safetensors": _write_safetensors,
    ".parquet": _write_parquet,
    ".npz": _write_npz,
}
