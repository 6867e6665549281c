"""Facts about a build, the list of builds, and reports of damage."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from qkvsearch.errors import Count, DamagedError, WorkspaceError
from qkvsearch.heads.component import (
    BETTER_ENCODER,
    COLUMN_WEIGHTS,
    HEADS_LEFT_OUT,
    LANGUAGE,
    LANGUAGES,
    RECOMMEND_HEADS,
    TUNED,
)
from qkvsearch.heads.dense import damaged_keys
from qkvsearch.heads.search_settings import TUNED_SEARCH, SearchSettings
from qkvsearch.heads.stored_log import LOG_ROWS
from qkvsearch.learn.add import revised_lines
from qkvsearch.rank.display import unit_of
from qkvsearch.rank.listing import Listing
from qkvsearch.store import Snapshot, StoredCatalog, Workspace
from qkvsearch.store.remote_collections import RemoteCollection
from qkvsearch.store.workspace import LOST_SETTINGS
from qkvsearch.tables.catalog_columns import CatalogColumns
from qkvsearch.text.encoders import advice

BUILD_NAMES = ("id", "created", "command", "items", "segments", "megabytes", "current")
# The damaged files that a message names.
MAX_NAMED = 20
ADVICE = "run qkvsearch repair"


def build_facts(snapshot: Snapshot) -> dict[str, Any]:
    """Return the facts by the names that `info` shows."""
    facts, catalog = snapshot.facts, snapshot.catalog
    # Facts that most builds do not have.
    rare: dict[str, Any] = {}
    remote = RemoteCollection.of(facts)
    if remote is not None:
        rare["keys"] = remote.uri
    if TUNED_SEARCH in facts:
        settings = SearchSettings.of(facts).shown(catalog.catalog_columns.name_of)
        rare[TUNED_SEARCH] = {**facts[TUNED_SEARCH], "settings": settings}
    if HEADS_LEFT_OUT in facts:
        rare[HEADS_LEFT_OUT] = facts[HEADS_LEFT_OUT]
    if COLUMN_WEIGHTS in facts:
        rare[COLUMN_WEIGHTS] = named_column_weights(facts)
    lost = [f"not taken over: {reason}" for reason in facts.get(LOST_SETTINGS, ())]
    return {
        "built": snapshot.created,
        "items": facts["n_items"],
        "users": facts.get("n_users", 0),
        "interactions": facts.get("n_interactions", 0),
        "recorded": snapshot.records.count(),
        "tuned": facts.get(TUNED),
        "next_item": facts.get("next_item"),
        "rating_scale": facts.get("rating_scale"),
        "encoder": facts["encoder"],
        "encoder_chosen": facts.get("encoder_chosen"),
        "advice": advice_on(facts),
        "language": facts[LANGUAGE],
        "language_chosen": facts.get("language_chosen"),
        "head_weights": facts["head_weights"],
        "recommend_heads": facts.get(RECOMMEND_HEADS),
        **rare,
        "texts_cut": facts.get("texts_cut"),
        "columns": _columns(facts["columns"], catalog),
        "interaction_columns": facts.get("interaction_columns", []),
        "searched_columns": [catalog.catalog_columns.name_of(s) for s in facts["text_columns"]],
        "rows": [*facts["rows"], *lost, *facts.get(LOG_ROWS, ()), *revised_lines(facts)],
        "segments": len(snapshot.segments),
        "megabytes": round(sum(file.entry["bytes"] for file in snapshot.files) / 1e6, 1),
        "format": snapshot.segments[-1].manifest["format"],
        "qkvsearch": facts["qkvsearch"],
    }


def advice_on(facts: Mapping[str, Any]) -> str:
    """Return the line on the encoder that would find more in the texts of a build, or ""."""
    return advice(facts.get(BETTER_ENCODER, ""), facts.get(LANGUAGES, ()))


def named_column_weights(facts: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return for each head the weights of the searched columns by the owner's names."""
    records = facts["columns"]
    stored_names = [record.get("stored") or record["name"] for record in records]
    columns = CatalogColumns.of([(name, "TEXT") for name in stored_names], records)
    by_head: dict[str, dict[str, float]] = facts.get(COLUMN_WEIGHTS, {})
    return {
        head: {columns.name_of(stored): share for stored, share in weights.items()}
        for head, weights in by_head.items()
    }


def _columns(records: list[dict[str, Any]], catalog: StoredCatalog) -> list[dict[str, Any]]:
    """Return the columns' records with the share of cells that are empty now, and with the currency
    of a column of prices as its unit.
    """
    empty = catalog.empty_counts()
    n_items = max(len(catalog.rows), 1)
    columns = []
    for record in records:
        stored = record.get("stored") or record["name"]
        unit = record["unit"] or unit_of(catalog, catalog.catalog_columns.stored_as(stored))
        columns.append({**record, "empty": round(empty[stored] / n_items, 4), "unit": unit})
    return columns


def build_rows(workspace: Workspace) -> Listing:
    """List the builds, the latest first, each with the `megabytes` that it added on disk. The notes
    name damaged builds. Raises `WorkspaceError`.
    """
    with closing(workspace.open()) as build:
        current = build.name
    rows, notes = [], []
    counted: set[tuple[int, int]] = set()
    for entry in workspace.builds():
        try:
            with closing(Snapshot.of(workspace.path, entry)) as build:
                segments, folder = len(build.segments), build.segments[-1].folder
        except DamagedError as error:
            notes.append(str(error))
            segments, folder = None, None
        row = {
            "id": entry.name,
            "created": entry.created,
            "command": entry.command,
            "items": entry.items,
            "segments": segments,
            "megabytes": None if folder is None else _added(folder, counted),
            "current": entry.name == current,
        }
        rows.append(row)
    return Listing(rows[::-1], len(rows), BUILD_NAMES, notes=notes)


def _added(folder: Path, counted: set[tuple[int, int]]) -> float:
    """Return the megabytes of a folder's files that are not `counted` yet, and count them."""
    sizes = {}
    with suppress(FileNotFoundError):  # a writer removes it meanwhile
        for stat in map(Path.stat, folder.iterdir()):
            sizes[stat.st_dev, stat.st_ino] = stat.st_size
    size = sum(sizes[file] for file in sizes.keys() - counted)
    counted.update(sizes)
    return round(size / 1e6, 2)


def explain_damage(error: DamagedError, build: Snapshot) -> WorkspaceError:
    """Return the error with advice. Where the build was removed, the error says that instead."""
    if not build.segments[-1].folder.is_dir():
        return WorkspaceError(
            f"{build.workspace}: the opened build, {build.name}, was removed; forget removes every "
            "build with the user's data; open the workspace again"
        )
    return DamagedError(error.file, error.what, ADVICE)


def verify(workspace: Workspace) -> str:
    """Compare every file with its checksum, and return a sentence. Raises one `DamagedError` for
    all damaged files.
    """
    path, damaged = workspace.path, workspace.damaged_files()
    with suppress(WorkspaceError), closing(workspace.open()) as build:
        damaged += damaged_keys(build)
    if not damaged:
        return "all files are undamaged"
    names = [f"{Path(error.file).relative_to(path)} ({error.what})" for error in damaged]
    named = ", ".join(names[:MAX_NAMED])
    if len(names) > MAX_NAMED:
        named += f", and {len(names) - MAX_NAMED:,} more"
    n = Count(len(damaged))
    raise DamagedError(path, f"{n} {n:file is|files are} damaged: {named}", ADVICE)
