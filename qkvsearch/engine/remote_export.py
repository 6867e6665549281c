"""Export and encode on Spark: each executor opens the workspace itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.index import StoredModels
from qkvsearch.recommend.batch import BatchRecommendations, Exported
from qkvsearch.recommend.export_file import MIXED_USERS
from qkvsearch.recommend.recommend import Recommender
from qkvsearch.search.listing import own_columns
from qkvsearch.storage import Workspace

NOT_SHARED = (
    "{}: an executor does not find the workspace: put it on a disk that all of them share, under "
    "the same path"
)


def write_remotely(
    engine: str,
    workspace: Path,
    state: str,
    path: str | Path,
    format: str | None,
    batch: BatchRecommendations,
    progress: Progress | None,
) -> Exported:
    """Write all users' recommendations as Parquet. state: build and records. Raises `QkvError`."""
    from qkvsearch.engines.spark.batches import write_blocks

    if (format or Path(path).suffix.lower().removeprefix(".") or "parquet") != "parquet":
        raise QkvError(f"{path}: with `engine` the output is a folder of Parquet files")
    arguments = (
        str(workspace.resolve()), state, batch.k, np.packbits(batch.mask).tobytes(), batch.seen,
        batch.recent, batch.damping, batch.model, tuple(column.name for column in batch.columns),
        batch.heads and tuple(batch.heads),
    )  # fmt: skip
    make: Callable[[int], Any] = partial(_block, arguments)
    blocks, users = batch.blocks, batch.recommender.histories
    n_done = write_blocks(
        engine, path, len(blocks), make, batch.arrow_schema, repr(arguments), progress or silent
    )
    done = sum(stop - start for start, stop in blocks[:n_done])
    return Exported(len(users), done, [MIXED_USERS] if users.mixed else [])


def _block(arguments: tuple[Any, ...], number: int) -> Any:
    """Return the table of one block of users, on an executor."""
    batch = _opened_batch(*arguments)
    return batch.arrow_table(*batch.blocks[number])


@lru_cache(maxsize=1)
def _opened_batch(
    path: str, state: str, k: int, packed_mask: bytes, seen: bool, recent: int | None,
    damping: float, model: str, fields: tuple[str, ...], heads: Sequence[str] | None,
) -> BatchRecommendations:  # fmt: skip
    """Open the workspace on an executor, once in a process. Raises `QkvError`."""
    if not Path(path).is_dir():
        raise QkvError(NOT_SHARED.format(path))
    snapshot = Workspace(path).open()
    models, catalog = StoredModels(snapshot), snapshot.catalog
    if f"{snapshot.name} {catalog.records.state}" != state:
        raise WorkspaceError(f"{path}: it was changed meanwhile; start again")
    mask = np.unpackbits(np.frombuffer(packed_mask, np.uint8), count=models.n_items) > 0
    columns = own_columns(catalog, list(fields))
    return BatchRecommendations(
        Recommender(models, catalog), k, mask, seen, recent, damping, model, columns,
        heads=heads,
    )  # fmt: skip


def encode_remotely(
    engine: str, texts: Sequence[str], workspace: Path | None, name: str, progress: Progress | None
) -> np.ndarray:
    """Return embeddings (n, d) of texts by the encoder of a head of the workspace, or without a
    workspace by one that is installed on the executors. Raises `QkvError`.
    """
    from qkvsearch.engines.spark.batches import encode_on

    path = None if workspace is None else str(workspace.resolve())
    return encode_on(engine, texts, partial(_encoded, path, name), progress or silent)


def _encoded(workspace: str | None, name: str, texts: list[str]) -> np.ndarray:
    return np.asarray(_reader(workspace, name).encode_many(texts))


@lru_cache(maxsize=1)
def _reader(workspace: str | None, name: str) -> Any:
    """Load the encoder once in a process."""
    if workspace is None:
        from qkvsearch.text.encoders import pretrained

        return pretrained(name)
    if not Path(workspace).is_dir():
        raise QkvError(NOT_SHARED.format(workspace))
    return StoredModels(Workspace(workspace).open()).encoder(name)
