"""Keys that a build has elsewhere: written before its own files, dropped after its folder."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from platform import node
from typing import TYPE_CHECKING, Any

from qkvsearch.engines.milvus.collections import EXACT, SegmentKeys, drop_others, write
from qkvsearch.engines.milvus.connection import address, connect
from qkvsearch.workspace.catalog.file import CATALOG
from qkvsearch.workspace.segments import BUILDS_FOLDER, MANIFEST
from qkvsearch.workspace.signed import read_signed

if TYPE_CHECKING:
    from qkvsearch.workspace.publish import BuildContents

# The fact that says where; and how the arrays are called that go there.
FACT, ARRAY = "keys", ".keys"
WORDS = ("terms", "indptr", "indices", "counts", "lengths")


@dataclass(frozen=True)
class KeyPlace:
    """uri: as the client is told it. prefix: how the names of the workspace's collections begin.
    collection: of the segment whose fact this is. index: of dense heads.
    """

    uri: str
    prefix: str
    collection: str = ""
    index: str = EXACT

    @classmethod
    def new(cls, given: str, former: Mapping[str, Any]) -> KeyPlace:
        """As `milvus:URI` names it, for a build in the place of one with these facts. Raises
        `QkvError`, also where nobody answers there.
        """
        uri, index = address(given)
        connect(uri, make=True)
        before = cls.of(former)
        is_same = before is not None and before.uri == uri
        prefix = before.prefix if before and is_same else f"qkv_{uuid.uuid4().hex[:8]}_"
        return cls(uri, prefix, index=index or EXACT)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> KeyPlace | None:
        """As a build has it among its facts; None where its keys are here."""
        found = facts.get(FACT)
        return None if found is None else cls(**found)

    def to_fact(self) -> dict[str, str]:
        """As it is stored."""
        return asdict(self)


def write_keys(name: str, folder: Path, contents: BuildContents) -> None:
    """Write those of a segment to a collection that is named by its build, if it has any: they are
    no arrays of the build any more. folder: where its catalog is already.
    """
    place = KeyPlace.of(contents.facts)
    heads = [array for array in contents.arrays if array.endswith(ARRAY)]
    if place is None or not heads:
        return
    collection = place.prefix + name.replace("-", "_")
    keys = {array.removesuffix(ARRAY): contents.arrays.pop(array) for array in heads}
    words = {array: contents.arrays[f"lexical.{array}"] for array in WORDS}
    found = SegmentKeys(keys, words, folder / CATALOG)
    write(place.uri, collection, found, _owner(folder.parent.parent), place.index)
    contents.facts[FACT] = KeyPlace(place.uri, place.prefix, collection, place.index).to_fact()


def places_in(workspace: Path) -> list[KeyPlace]:
    """Of all builds that have a folder, whoever lists them."""
    folders = (workspace / BUILDS_FOLDER).glob(f"*/{MANIFEST}")
    found = (KeyPlace.of(read_signed(path)["facts"]) for path in folders)
    return [place for place in found if place is not None]


def drop_keys(before: Iterable[KeyPlace], workspace: Path) -> None:
    """Drop the collections that no build of the workspace needs any more. before: what its builds
    had when there were more of them.
    """
    kept = {place.collection for place in places_in(workspace)}
    for uri, prefix in {(place.uri, place.prefix) for place in before}:
        drop_others(uri, prefix, kept, _owner(workspace))


def _owner(workspace: Path) -> str:
    """What collections say of whose they are: a copy of a workspace drops none of the other's."""
    return f"qkvsearch keys of {node()}:{workspace.resolve()}"
