"""The arrays of a build for items of which some left, some joined, and some have other texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import compress

import numpy as np

from qkvsearch.embeddings.encoders import item_keys
from qkvsearch.revision.items import Change, places, unmoved
from qkvsearch.revision.lexical import remake_lexical
from qkvsearch.stored import (
    SPAN_READERS,
    StoredModels,
    array_kind,
    store_interactions,
)
from qkvsearch.workspace import BuildContents, Snapshot

# What is being done, how far, of how much.
Progress = Callable[[str, int, int], None]


def revised_contents(build: Snapshot, change: Change, report: Progress) -> BuildContents:
    """What `build` becomes: rows that stay are copied, new texts are read by the encoders that
    there are, and arrays that stay as they are belong to both builds.
    """
    facts = {name: fact for name, fact in build.facts.items() if name not in ("files", "format")}
    facts["n_items"] = len(change.catalog)
    users = build.tables.ids("users")
    contents = BuildContents(change.catalog, users, facts=facts, base=build)
    models = StoredModels(build)
    # Row numbers of those whose texts were read; −1 for the others.
    read = np.where(change.unread, -1, change.origin)
    fields = [list(compress(texts, change.unread)) for texts in change.catalog.fields()]
    names = list(build.facts["files"])
    for step, name in enumerate(names):
        report("revising", step, len(names))
        kind, head = array_kind(name), name.partition(".")[0]
        if kind == "fixed":
            contents.shared.add(name)
        elif kind == "item rows":
            _take_rows(contents, build, name, change.origin)
        elif kind == "text rows":
            _take_rows(contents, build, name, read)
            if fields[0]:
                new = item_keys(models.encoder(head).encode_many, fields)
                contents.arrays[name][read < 0] = new
        elif kind == "text spans":
            _take_spans(contents, models, head, read, fields)
    texts = ["\n".join(columns) for columns in zip(*fields, strict=True)]
    remake_lexical(contents, build, read, texts)
    if "implicit" in facts:
        _remake_gram(contents, build, change.origin)
    if "interactions.indptr" in build:
        _remake_interactions(contents, models, change.origin)
    report("revising", len(names), len(names))
    return contents


def _take_rows(contents: BuildContents, build: Snapshot, name: str, origin: np.ndarray) -> None:
    """Rows of an array in their new places; zeros where there was none."""
    former = build.array(name)
    if unmoved(origin, len(former)):
        contents.shared.add(name)
        return
    rows = np.zeros((len(origin), *former.shape[1:]), former.dtype)
    kept = origin >= 0
    rows[kept] = former[origin[kept]]
    contents.arrays[name] = rows


def _take_spans(
    contents: BuildContents,
    models: StoredModels,
    head: str,
    read: np.ndarray,
    fields: list[list[str]],
) -> None:
    """Each item's span of rows in its new place, and between them those of the new texts."""
    build = models.snapshot
    former = build.array(f"{head}.token_indptr")
    names = [
        name
        for name in build.facts["files"]
        if name.startswith(f"{head}.") and array_kind(name) == "span rows"
    ]
    if unmoved(read, len(former) - 1):
        contents.shared |= {f"{head}.token_indptr", *names}
        return
    lengths = np.diff(former)[read]
    for name in names:
        spans = SPAN_READERS[name.partition(".")[2]](models, head, fields) if fields[0] else []
        lengths[read < 0] = [len(span) for span in spans]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        is_new = np.repeat(read < 0, lengths)
        origins = np.arange(indptr[-1]) + np.repeat(former[read] - indptr[:-1], lengths)
        array = build.array(name)
        rows = np.empty((len(origins), *array.shape[1:]), array.dtype)
        rows[~is_new] = array[origins[~is_new]]
        if spans:
            rows[is_new] = np.concatenate(spans)
        contents.arrays |= {name: rows, f"{head}.token_indptr": indptr.astype(former.dtype)}


def _remake_gram(contents: BuildContents, build: Snapshot, origin: np.ndarray) -> None:
    """Σ y yᵀ over the items that there still are; y = 0 for one that nobody met."""
    former = build.array("implicit.item_embeddings")
    gone = places(origin, len(former)) < 0
    if not former[gone].any():
        contents.shared.add("implicit.gram")
        return
    kept = former[~gone].astype(np.float64)
    contents.arrays["implicit.gram"] = kept.T @ kept
    numbers = contents.facts["implicit"]
    met = numbers["n_items"] - np.count_nonzero(former[gone].any(axis=1))
    # At least one, or the solve for someone who met nothing would divide by nothing.
    contents.facts["implicit"] = numbers | {"n_items": max(int(met), 1)}


def _remake_interactions(contents: BuildContents, models: StoredModels, origin: np.ndarray) -> None:
    """The log in the new row numbers, without the items that left. The scale of the ratings stays
    the one that everything was learned on.
    """
    if unmoved(origin[: models.n_items], models.n_items):  # who joined comes after all others
        names = [name for name in models.snapshot.facts["files"] if name.startswith("interactions")]
        contents.shared |= set(names)
        return
    log = models.log()
    assert log is not None
    place = places(origin, models.n_items)
    log = log.take(place[log.items] >= 0)
    items = place[log.items].astype(np.int32)
    order = np.lexsort((items, log.users))  # ids that become numbers are sorted anew
    log = replace(log, items=items, item_ids=contents.catalog.ids).take(order)
    scale = contents.facts.get("rating_scale")
    store_interactions(contents, log)
    if scale is not None:
        contents.facts["rating_scale"] = scale
