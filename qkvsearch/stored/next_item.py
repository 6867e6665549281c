"""The stored model of what comes next: a history that attends to itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qkvsearch.progress import Progress
from qkvsearch.stored.part import BuildReader, Change, StoredPart
from qkvsearch.workspace import BuildContents

if TYPE_CHECKING:
    from qkvsearch.sequences.model import NextItemModel


@dataclass(frozen=True)
class NextItemPart(StoredPart["NextItemModel"]):
    """Where a build was asked for it."""

    group: str = "next_item"
    arrays: ClassVar = ("item_embeddings", "positions", "encoder")

    def store(self, contents: BuildContents, model: NextItemModel) -> None:
        arrays, contents.facts[self.group] = model.state()
        self.put(contents, **arrays)

    def load(self, build: BuildReader) -> NextItemModel:
        from qkvsearch.sequences.model import NextItemModel

        numbers = build.snapshot.facts[self.group]
        return NextItemModel.from_state(self.read_all(build.snapshot), numbers)

    def revise(self, contents: BuildContents, change: Change, progress: Progress) -> None:
        """Embeddings go along with their items; one that joins has zeros, and no score."""
        self.take_rows(contents, change.origin, "item_embeddings")
        self.share(contents, "positions", "encoder")
