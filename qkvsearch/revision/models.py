"""The arrays of a build for items of which some left, some joined, and some have other texts."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress

import numpy as np

from qkvsearch.progress import Progress
from qkvsearch.retrieval.late_interaction import MOST_TOKENS, item_tokens
from qkvsearch.revision.items import Change, places, unmoved
from qkvsearch.revision.lexical import remake_lexical
from qkvsearch.stored import StoredModels, array_kind, note_reading, store_interactions
from qkvsearch.texts.item_keys import encode_items
from qkvsearch.workspace import BuildContents, Snapshot


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
        elif kind == "text spans":
            _take_spans(contents, models, head, read, fields, report)
    for head in list(models.head_weights)[1:] if fields[0] else ():
        made = encode_items(head, models.encoder(head), fields, report)
        contents.arrays[f"{head}.keys"][read < 0] = made.keys
        if made.cut is not None:
            contents.arrays[f"{head}.cut"][read < 0] = made.cut
    main = models.main_head
    if f"{main}.probes" in build and f"{main}.keys" in contents.arrays:
        note_reading(contents, main)
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
    report: Progress,
) -> None:
    """Each item's span of rows in its new place, and between them those of the new texts; nothing
    where that is more than a build keeps.
    """
    build = models.snapshot
    former = build.array(f"{head}.token_indptr")
    name = next(
        name
        for name in build.facts["files"]
        if name.startswith(f"{head}.") and array_kind(name) == "span rows"
    )
    if unmoved(read, len(former) - 1):
        contents.shared |= {f"{head}.token_indptr", name}
        return
    lengths = np.where(read < 0, 0, np.diff(former)[read])
    array = build.array(name)
    spans = [array[:0]]
    if fields[0]:
        found = item_tokens(
            models.encoder(head),
            fields,
            lambda _, n, of: report("reading tokens", n, of),
            room=MOST_TOKENS - int(lengths.sum()),
        )
        if found is None:
            return
        spans += found
        lengths[read < 0] = [len(span) for span in found]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    is_new = np.repeat(read < 0, lengths)
    origins = np.arange(indptr[-1]) + np.repeat(former[read] - indptr[:-1], lengths)
    rows = np.empty((len(origins), *array.shape[1:]), array.dtype)
    rows[~is_new] = array[origins[~is_new]]
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
