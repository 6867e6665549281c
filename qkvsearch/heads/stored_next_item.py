"""The stored model of what comes next after a history."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from qkvsearch._utils.callbacks import Progress
from qkvsearch.errors import DamagedError, QkvError
from qkvsearch.heads.component import BuildModels, LearnedComponent
from qkvsearch.heads.interaction_rows import counts_by_item, rows_where
from qkvsearch.store import BuildContents
from qkvsearch.store.array_spec import ArraySpec
from qkvsearch.tables.interactions import Interactions

if TYPE_CHECKING:
    from qkvsearch.models.next_item_model import NextItemModel


@dataclass(frozen=True)
class NextItemComponent(LearnedComponent["NextItemModel"]):
    """The next-item model, if the build was asked for one. A new item has zeros and no score."""

    group: str = "next_item"
    arrays: ClassVar = {
        "item_embeddings": ArraySpec("f", ("items", "components"), rows="interactions"),
        "positions": ArraySpec("f", ("positions", "components")),
        "encoder": ArraySpec("f", ("weights",)),
    }

    def check(self, log: Interactions | None) -> None:
        """Raise `QkvError` where the model cannot be learned from a log."""
        from qkvsearch.models.next_item import NextItem

        if log is None:
            raise QkvError(
                "`next_item` learns from interactions: give `interactions`, or leave it out"
            )
        NextItem().check(log)

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Train `NextItem`, which takes minutes, and store it."""
        from qkvsearch.models.next_item import NextItem

        callback = partial(progress, "learning what comes next")
        self.store(contents, NextItem(random_state=0, callback=callback).fit(log).model_)

    def forget(self, contents: BuildContents, log: Interactions) -> None:
        embeddings = rows_where(counts_by_item(log) > 0, self.pending(contents, "item_embeddings"))
        self.put(contents, item_embeddings=embeddings)

    def store(self, contents: BuildContents, model: NextItemModel) -> None:
        arrays, contents.facts[self.group] = model.state()
        self.put(contents, **arrays)

    def load(self, models: BuildModels) -> NextItemModel:
        from qkvsearch.models.next_item_model import NextItemModel

        arrays, numbers = self.read(models.snapshot), models.snapshot.facts[self.group]
        try:
            return NextItemModel.from_state(arrays, numbers)
        except ValueError as error:
            file = models.snapshot.file(f"{self.group}.encoder")
            raise DamagedError(file.path, f"not the weights of an encoder: {error}") from None
