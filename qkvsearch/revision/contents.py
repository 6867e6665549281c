"""What a build becomes where items join, leave or change their texts: part by part."""

from __future__ import annotations

from qkvsearch.progress import Progress
from qkvsearch.stored import Change, parts_of
from qkvsearch.workspace import BuildContents


def revised_contents(change: Change, progress: Progress) -> BuildContents:
    """Rows that stay are copied, new texts are read by the encoders that there are, and arrays that
    stay as they are belong to both builds. Nothing is learned. Raises `LookupError` for an array
    that no part owns: what becomes of it is unknown.
    """
    build = change.former.snapshot
    facts = {name: fact for name, fact in build.facts.items() if name not in ("files", "format")}
    facts["n_items"] = len(change.catalog)
    contents = BuildContents(change.catalog, build.tables.ids("users"), facts=facts, base=build)
    parts = [part for part in parts_of(change.former) if part.is_in(build)]
    for name in build.facts["files"]:
        if not any(part.owns(name) for part in parts):
            raise LookupError(name)
    for step, part in enumerate(parts):
        progress("revising", step, len(parts))
        part.revise(contents, change, progress)
    progress("revising", len(parts), len(parts))
    return contents
