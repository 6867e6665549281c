"""Export and encode on Spark: each executor opens the workspace itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch._utils.progress import Progress, silent
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.index import StoredModels
from qkvsearch.recommend.batch import MIXED_USERS, BatchRecommendations, Exported
from qkvsearch.recommend.recommend import Recommender
from qkvsearch.search.listing import own_columns
from qkvsearch.storage import Workspace

NOT_SHARED = (
    "{}: an executor does not find the workspace: put it on a disk that all of them share, under "
    "the same path"
)


@dataclass(frozen=True)
class RemoteBatch:
    """The arguments of `BatchRecommendations` for an executor, with the workspace and the state of
    its build and records. allowed: the mask, one bit for each item.
    """

    workspace: str
    state: str
    k: int
    allowed: bytes
    seen: bool
    recent: int | None
    damping: float
    model: str
    fields: tuple[str, ...]

    def batch(self) -> BatchRecommendations:
        """Open the workspace on this machine. Raises `QkvError`."""
        if not Path(self.workspace).is_dir():
            raise QkvError(NOT_SHARED.format(self.workspace))
        snapshot = Workspace(self.workspace).open()
        models, catalog = StoredModels(snapshot), snapshot.catalog
        if f"{snapshot.name} {catalog.records.state}" != self.state:
            raise WorkspaceError(f"{self.workspace}: it was changed meanwhile; start again")
        mask = np.unpackbits(np.frombuffer(self.allowed, np.uint8), count=models.n_items) > 0
        columns = own_columns(catalog, list(self.fields))
        return BatchRecommendations(
            Recommender(models, catalog), self.k, mask, self.seen, self.recent, self.damping,
            self.model, columns,
        )  # fmt: skip


@lru_cache(maxsize=1)
def _opened(remote: RemoteBatch) -> BatchRecommendations:
    """Open the workspace once in a process."""
    return remote.batch()


def make_block(remote: RemoteBatch, number: int) -> Any:
    """Return the table of one block of users."""
    batch = _opened(remote)
    return batch.arrow_table(*batch.blocks[number])


def write_remotely(
    engine: str,
    path: str | Path,
    format: str | None,
    batch: BatchRecommendations,
    remote: RemoteBatch,
    progress: Progress | None,
) -> Exported:
    """Write recommendations for all users to a folder of Parquet files. Raises `QkvError`."""
    from qkvsearch.engines.spark.batches import write_blocks

    if (format or Path(path).suffix.lower().removeprefix(".") or "parquet") != "parquet":
        raise QkvError(f"{path}: with `engine` the output is a folder of Parquet files")
    make: Callable[[int], Any] = partial(make_block, remote)
    options = repr(astuple(remote))
    blocks = batch.blocks
    n_done = write_blocks(
        engine, path, len(blocks), make, batch.arrow_schema, options, progress or silent
    )
    done = sum(stop - start for start, stop in blocks[:n_done])
    users = batch.recommender.histories
    return Exported(len(users), done, [MIXED_USERS] if users.mixed else [])


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
