"""What is known of a build: what it was made from, and with what."""

from __future__ import annotations

from typing import Any

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
