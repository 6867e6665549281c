"""What is known of a build: what it was made from, and with what."""

from __future__ import annotations

from typing import Any

from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace import Snapshot


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
        "columns": tables.columns,
        "searched_columns": facts["text_columns"],
        "rows": facts["rows"],
        "megabytes": round(size / 1e6, 1),
        "format": facts["format"],
        "qkvsearch": facts["qkvsearch"],
    }


def verified(snapshot: Snapshot) -> str:
    """That every file is as it was written. Raises `WorkspaceError` where one is not."""
    if damaged := snapshot.damaged_files():
        raise WorkspaceError(f"{snapshot.folder}: damaged: {', '.join(damaged)}; build it again")
    return "all files as written"
