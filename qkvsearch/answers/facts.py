"""What is known of a build: what it was made from, and with what."""

from __future__ import annotations

from typing import Any, cast

from qkvsearch.data.columns.facts import ColumnFacts, ColumnType
from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace import Snapshot, Tables


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
    for column, cells in zip(
        tables.catalog_columns, zip(*tables.cells(), strict=True), strict=True
    ):
        there = [str(cell) for cell in cells if cell is not None]
        known = ColumnFacts(
            column.name, column.role, cast(ColumnType, column.type),
            empty=round(1 - len(there) / len(cells), 4), example=next(iter(there), ""),
            stored="" if column.stored == column.name else column.stored,
        )  # fmt: skip
        records.append(known.to_record())
    return records


def verified(snapshot: Snapshot) -> str:
    """That every file is as it was written. Raises `WorkspaceError` where one is not."""
    if damaged := snapshot.damaged_files():
        raise WorkspaceError(f"{snapshot.folder}: damaged: {', '.join(damaged)}; build it again")
    return "all files as written"
