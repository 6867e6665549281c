"""Export embeddings with their ids to safetensors, Parquet or NumPy's .npz. Nothing is pickled."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.files import is_on_disk, replacing
from qkvsearch._utils.scratch import scratch_array
from qkvsearch.engines.milvus.remote_rows import BLOCK, RemoteRows
from qkvsearch.errors import QkvError, quantity, suggest
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.models.recommend_heads import COLLABORATIVE
from qkvsearch.rank.recommender import Recommender
from qkvsearch.tables.ids import Ids, id_text
from qkvsearch.tables.writers import require_pyarrow

ITEMS, USERS = KINDS = ("items", "users")
# The longest header that the safetensors library reads.
MAX_HEADER = 100_000_000


class ExportedEmbeddings(NamedTuple):
    """Size and head of the exported embeddings, and notes about them."""

    rows: int
    components: int
    head: str
    notes: list[str]


@dataclass(frozen=True)
class EmbeddingTable:
    """Embeddings of one head, float32 (n, d), one row for each id."""

    of: str
    head: str
    ids: list[Any]
    vectors: np.ndarray


def dense_head(models: StoredModels, head: str | None, also: Sequence[str] = ()) -> str:
    """Return the name of a dense head, by default the main one. Raises `QkvError` for others. also:
    heads to name there that the caller takes as well.
    """
    name = models.main_head if head is None else head
    if name not in models.dense_heads:
        names = [*models.dense_heads, *also]
        raise QkvError(
            f"`head`: no head {name!r} with embeddings{suggest(name, names)} (there are "
            f"{', '.join(names)})"
        )
    return name


def export_embeddings(
    recommender: Recommender, path: Path, of: str, head: str | None, progress: Progress | None
) -> ExportedEmbeddings:
    """Write embeddings to a file, in the format of its suffix. After an error there is no file.

    .safetensors: the tensor "embeddings", and in the metadata "ids", a JSON list. .npz: the arrays
    "ids" and "embeddings". .parquet: the columns "id" and "embedding". Raises `QkvError`.
    """
    write = _writer_of(path)  # what cannot be written is an error before all the work
    table = _table(recommender, of, head, progress)
    with replacing(path) as file:
        write(file, table)
    n, d = table.vectors.shape
    n_zeros = n - int(table.vectors.any(axis=1).sum())
    notes = []
    if n_zeros:
        has, it = ("has", "it") if n_zeros == 1 else ("have", "them")
        of_all = f"{n_zeros:,} of {quantity(n, table.of.removesuffix('s'))}"
        notes.append(f"{of_all} {has} only zeros: nothing is known about {it}.")
    return ExportedEmbeddings(n, d, table.head, notes)


def _table(
    recommender: Recommender, of: str, head: str | None, progress: Progress | None
) -> EmbeddingTable:
    """Return the keys of a dense head, or the embeddings of items or users that were learned from
    interactions. Raises `QkvError` where there are none.
    """
    if of not in KINDS:
        raise QkvError(f"`of` is {' or '.join(KINDS)}, not {of!r}{suggest(of, list(KINDS))}")
    if of == USERS:
        return _users(recommender, head, progress)
    return _items(recommender, head, progress)


def _users(recommender: Recommender, head: str | None, progress: Progress | None) -> EmbeddingTable:
    """Solve for the users' embeddings, block by block."""
    if head not in (None, COLLABORATIVE):
        raise QkvError(f"`head`: users have no embedding by {head!r}, only one by {COLLABORATIVE}")
    users = recommender.histories
    shape = (len(users), recommender.factors.item_embeddings.shape[1])
    vectors = scratch_array(shape, np.float32)
    for start, stop in users.blocks():
        histories = [users.at(row) for row in range(start, stop)]
        vectors[start:stop] = recommender.embeddings(histories)
        if progress is not None:
            progress("solving embeddings", stop, len(users))
    return EmbeddingTable(USERS, COLLABORATIVE, _plain_ids(users.ids), vectors)


def _items(recommender: Recommender, head: str | None, progress: Progress | None) -> EmbeddingTable:
    """Read the items' keys in a dense head, or their embeddings."""
    if head == COLLABORATIVE:
        keys: Any = recommender.factors.item_embeddings
    else:
        head = dense_head(recommender.models, head)
        keys = recommender.models.dense_keys(head).vectors
    vectors = keys if isinstance(keys, np.ndarray) else _fetched(keys, progress)
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    return EmbeddingTable(ITEMS, head, _plain_ids(recommender.catalog.ids("items")), vectors)


def _plain_ids(ids: Ids) -> list[Any]:
    """Return ids that are all numbers, or all texts."""
    plain = list(ids)
    if all(isinstance(id_, int) for id_ in plain):
        return plain
    return [id_text(id_) for id_ in plain]


def _fetched(keys: RemoteRows, progress: Progress | None) -> np.ndarray:
    """Return the keys (n, d) of a server, block by block."""
    vectors = scratch_array(keys.shape, np.float32)
    for start in range(0, len(vectors), BLOCK):
        rows = slice(start, min(start + BLOCK, len(vectors)))
        vectors[rows] = keys[rows]
        if progress is not None:
            progress("reading embeddings", rows.stop, len(vectors))
    return vectors


def _writer_of(path: Path) -> Callable[[IO[bytes], EmbeddingTable], None]:
    """Return the writer for the suffix of a file. Raises `QkvError` where it cannot be written."""
    write = WRITERS.get(path.suffix.lower())
    if path.suffix.lower() == ".npy":
        raise QkvError(f"{path}: a .npy file cannot contain ids; use .npz, which has both arrays")
    if write is None:
        raise QkvError(f"{path}: name a file that ends in {', '.join(WRITERS)}")
    if path.suffix.lower() == ".parquet":
        require_pyarrow(path)
    if not is_on_disk(path):
        raise QkvError(f"{path}: embeddings can be written only to a file on disk")
    return write


def _write_safetensors(file: IO[bytes], table: EmbeddingTable) -> None:
    """Write the length of the header, the header in JSON, and the numbers."""
    n, d = table.vectors.shape
    ids = json.dumps(table.ids, ensure_ascii=False)
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
    file.write(table.vectors.astype("<f4", copy=False).data)


def _write_npz(file: IO[bytes], table: EmbeddingTable) -> None:
    np.savez(file, ids=np.array(table.ids), embeddings=table.vectors)


def _write_parquet(file: IO[bytes], table: EmbeddingTable) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = pa.array(table.vectors.ravel())
    rows = pa.FixedSizeListArray.from_arrays(flat, table.vectors.shape[1])
    metadata = {"of": table.of, "head": table.head}
    columns = pa.table({"id": pa.array(table.ids), "embedding": rows})
    pq.write_table(columns.replace_schema_metadata(metadata), file)


WRITERS: dict[str, Callable[[IO[bytes], EmbeddingTable], None]] = {
    ".safetensors": _write_safetensors,
    ".parquet": _write_parquet,
    ".npz": _write_npz,
}
