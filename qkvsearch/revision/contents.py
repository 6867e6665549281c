"""What a build becomes where items join, leave or change their texts: part by part."""

from __future__ import annotations

from qkvsearch.progress import Progress
from qkvsearch.stored import BuildReader, Change, parts_of
from qkvsearch.workspace import BuildContents, Snapshot


def revised_contents(build: Snapshot, change: Change, progress: Progress) -> BuildContents:
    """Rows that stay are copied, new texts are read by the encoders that there are, and arrays that
    stay as they are belong to both builds. Raises `LookupError` for an array that is no part's.
    """
    facts = {name: fact for name, fact in build.facts.items() if name not in ("files", "format")}
    facts["n_items"] = len(change.catalog)
    users = build.tables.ids("users")
    contents = BuildContents(change.catalog, users, facts=facts, base=build)
    former, parts = BuildReader(build), parts_of(build.facts)
    for name in build.facts["files"]:
        if not any(part.owns(name) for part in parts):
            raise LookupError(f"{name}: no stored part knows what becomes of it")
    for step, part in enumerate(parts):
        progress("revising", step, len(parts))
        part.revise(contents, former, change, progress)
    progress("revising", len(parts), len(parts))
    return contents
