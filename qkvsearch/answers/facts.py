"""What is known of a build: what it was made from and with what, its items and its users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from qkvsearch.answers.histories import Histories
from qkvsearch.data.ids import Id, Ids, id_text
from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace import Snapshot, Tables

if TYPE_CHECKING:
    import pandas as pd


def build_facts(snapshot: Snapshot) -> dict[str, Any]:
    """By the names that `info` shows."""
    facts, tables = snapshot.facts, snapshot.tables
    size = sum(file["bytes"] for file in facts["files"].values())
    return {
        "built": snapshot.created,
        "items": facts["n_items"],
        "users": facts.get("n_users", 0),
        "interactions": facts.get("n_interactions", 0),
        "recorded": tables.records.count(),
        "tuned": facts.get("tuned"),
        "next_item": facts.get("next_item"),
        "rating_scale": facts.get("rating_scale"),
        "encoder": facts["encoder"],
        "encoder_chosen": facts.get("encoder_chosen"),
        "head_weights": facts["head_weights"],
        "weights_from": facts.get("weights_from"),
        "texts_cut": facts.get("texts_cut"),
        "columns": facts.get("columns") or _columns(tables),
        "interaction_columns": facts.get("interaction_columns", []),
        "searched_columns": facts["text_columns"],
        "rows": facts["rows"],
        "megabytes": round(size / 1e6, 1),
        "format": facts["format"],
        "qkvsearch": facts["qkvsearch"],
    }


def _columns(tables: Tables) -> list[dict[str, Any]]:
    """Of a build that was made before columns had types: what its table tells of them."""
    records = []
    cells = zip(*tables.cells(), strict=True)
    for column, texts in zip(tables.catalog_columns, cells, strict=True):
        there = [text for text in texts if text is not None]
        records.append(
            {
                "name": column.name,
                "role": column.role,
                "type": column.type,
                "empty": round(1 - len(there) / len(texts), 4),
                "example": str(there[0]) if there else "",
                "changed": {},
                "stored": column.stored if column.stored != column.name else "",
            }
        )
    return records


def verified(snapshot: Snapshot) -> str:
    """That every file is as it was written. Raises `WorkspaceError` where one is not."""
    if damaged := snapshot.damaged_files():
        raise WorkspaceError(f"{snapshot.folder}: damaged: {', '.join(damaged)}; build it again")
    return "all files as written"


class Rows(ABC):
    """Ids in the order of their row numbers, each with a row, by column; nothing can be set."""

    ids: Ids
    kind: ClassVar[str]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Id]:
        return iter(self.ids)

    def __contains__(self, id_: object) -> bool:
        return id_ in self.ids

    def keys(self) -> Ids:
        """The ids."""
        return self.ids

    @abstractmethod
    def __getitem__(self, id_: Any) -> dict[str, Any]:
        """One row. Raises `UnknownIdError` with near matches."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """All rows, one an id."""

    def __repr__(self) -> str:
        return f"<{len(self):,} {self.kind}>"


@dataclass(eq=False, repr=False)
class ItemRows(Rows):
    """The catalog: a title that only one item has finds it as well as its id."""

    tables: Tables
    kind: ClassVar = "items"

    @cached_property
    def ids(self) -> Ids:  # type: ignore[override]
        return self.tables.ids("items")

    def __getitem__(self, id_: Any) -> dict[str, Any]:
        return self.tables.row(self.tables.item_position(id_))

    def to_frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self.tables.cells(), columns=self.tables.columns)


@dataclass(eq=False, repr=False)
class UserRows(Rows):
    """The users of the build, then those recorded since: with how many items each interacted."""

    histories: Histories
    kind: ClassVar = "users"

    @cached_property
    def ids(self) -> Ids:  # type: ignore[override]
        return self.histories.ids

    def __getitem__(self, id_: Any) -> dict[str, Any]:
        n = len(self.histories.of("" if id_ is None else id_))
        # Recorded since this view was made, or all of whose items have left: as it was asked for.
        known = self.ids[int(self.ids.positions([id_])[0])] if id_ in self.ids else id_text(id_)
        return {"id": known, "interactions": n}

    def to_frame(self) -> pd.DataFrame:
        import pandas as pd

        counts = [len(self.histories.at(row)) for row in range(len(self))]
        return pd.DataFrame({"id": list(self.ids), "interactions": counts})
