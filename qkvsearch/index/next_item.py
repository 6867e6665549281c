"""The stored model of what comes next: a history that attends to itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from qkvsearch._utils.progress import Progress
from qkvsearch.data.interactions import Interactions
from qkvsearch.errors import DamagedError, QkvError
from qkvsearch.index.component import BuildReader, LearnedComponent
from qkvsearch.index.schema import ArraySpec
from qkvsearch.storage import BuildContents

if TYPE_CHECKING:
    from qkvsearch.collaborative.sequences.model import NextItemModel


@dataclass(frozen=True)
class NextItemComponent(LearnedComponent["NextItemModel"]):
    """Where a build was asked for it. An item that joins has zeros, and no score."""

    group: str = "next_item"
    arrays: ClassVar = {
        "item_embeddings": ArraySpec("f", ("items", "components"), rows="interactions"),
        "positions": ArraySpec("f", ("positions", "components")),
        "encoder": ArraySpec("f", ("weights",)),
    }

    def check(self, log: Interactions | None) -> None:
        """Raise `QkvError` where what comes next cannot be learned."""
        from qkvsearch.collaborative.sequences.next_item import NextItem

        if log is None:
            raise QkvError("nothing comes next where nobody's interactions were given")
        NextItem().check(log)

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Train `NextItem`, which takes minutes, and store what answers."""
        from qkvsearch.collaborative.sequences.next_item import NextItem

        callback = partial(progress, "learning what comes next")
        self.store(contents, NextItem(random_state=0, callback=callback).fit(log).model_)

    def store(self, contents: BuildContents, model: NextItemModel) -> None:
        arrays, contents.facts[self.group] = model.state()
        self.put(contents, **arrays)

    def load(self, build: BuildReader) -> NextItemModel:
        from qkvsearch.collaborative.sequences.model import NextItemModel

        arrays, numbers = self.read(build.snapshot), build.snapshot.facts[self.group]
        try:
            return NextItemModel.from_state(arrays, numbers)
        except ValueError as error:
            file = build.snapshot.file(f"{self.group}.encoder")
            raise DamagedError(file.path, f"not the weights of an encoder: {error}") from None
