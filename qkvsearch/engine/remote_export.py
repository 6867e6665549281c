"""Blocks of users and of texts for the executors of an engine: each opens the workspace itself."""

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
from qkvsearch.recommend.batch import BatchRecommendations, Exported
from qkvsearch.recommend.recommend import Recommender
from qkvsearch.search.listing import own_columns
from qkvsearch.storage import Workspace

NOT_SHARED = (
    "{}: not there for an executor: the workspace has to be on a disk that all of them share, "
    "under the same path"
)


@dataclass(frozen=True)
class Elsewhere:
    """What an executor needs to go on by itself: the workspace, which build and records of it, and
    the arguments of `BatchRecommendations`. allowed: the mask, a bit an item.
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
        """Of the workspace as it is seen here. Raises `QkvError`."""
        if not Path(self.workspace).is_dir():
            raise QkvError(NOT_SHARED.format(self.workspace))
        snapshot = Workspace(self.workspace).open()
        models, catalog = StoredModels(snapshot), snapshot.catalog
        if f"{snapshot.name} {catalog.records.state}" != self.state:
            raise WorkspaceError(f"{self.workspace}: changed meanwhile; start again")
        mask = np.unpackbits(np.frombuffer(self.allowed, np.uint8), count=models.n_items) > 0
        columns = own_columns(catalog, list(self.fields))
        return BatchRecommendations(
            Recommender(models, catalog), self.k, mask, self.seen, self.recent, self.damping,
            self.model, columns,
        )  # fmt: skip


@lru_cache(maxsize=1)
def _opened(there: Elsewhere) -> BatchRecommendations:
    """Once in a process, whatever number of blocks it makes."""
    return there.batch()


def make_block(there: Elsewhere, number: int) -> Any:
    """The table of one block of users."""
    batch = _opened(there)
    return batch.arrow_table(*batch.blocks[number])


def write_elsewhere(
    engine: str,
    path: str | Path,
    format: str | None,
    batch: BatchRecommendations,
    there: Elsewhere,
    progress: Progress | None,
) -> Exported:
    """All users to a folder of Parquet. Raises `QkvError`."""
    from qkvsearch.engines.spark.batches import write_blocks

    if (format or Path(path).suffix.lower().removeprefix(".") or "parquet") != "parquet":
        raise QkvError(f"{path}: with `engine`, all users go to a folder of Parquet files")
    make: Callable[[int], Any] = partial(make_block, there)
    options = repr(astuple(there))
    blocks = batch.blocks
    n_done = write_blocks(
        engine, path, len(blocks), make, batch.arrow_schema, options, progress or silent
    )
    done = sum(stop - start for start, stop in blocks[:n_done])
    notes = ["The column of users is text, for some of those recorded are no whole numbers."]
    users = batch.recommender.histories
    return Exported(len(users), done, notes if users.mixed else [])


def encode_elsewhere(
    engine: str, texts: Sequence[str], workspace: Path | None, name: str, progress: Progress | None
) -> np.ndarray:
    """Embeddings (n, d) of texts by an encoder: of a head of a workspace, or, without one, one that
    is installed where the executors are. Raises `QkvError`.
    """
    from qkvsearch.engines.spark.batches import encode_on

    path = None if workspace is None else str(workspace.resolve())
    return encode_on(engine, texts, partial(_encoded, path, name), progress or silent)


def _encoded(workspace: str | None, name: str, texts: list[str]) -> np.ndarray:
    return np.asarray(_reader(workspace, name).encode_many(texts))


@lru_cache(maxsize=1)
def _reader(workspace: str | None, name: str) -> Any:
    """Once in a process."""
    if workspace is None:
        from qkvsearch.text.encoders import pretrained

        return pretrained(name)
    if not Path(workspace).is_dir():
        raise QkvError(NOT_SHARED.format(workspace))
    return StoredModels(Workspace(workspace).open()).encoder(name)
