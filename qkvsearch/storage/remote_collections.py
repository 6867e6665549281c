"""Keys that a build has elsewhere: written before its own files, dropped after its folder."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from platform import node
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.storage.array_files import read_array
from qkvsearch.storage.catalog.file import CATALOG
from qkvsearch.storage.checksummed import read_checksummed
from qkvsearch.storage.segments import BUILDS_FOLDER, MANIFEST

if TYPE_CHECKING:
    from qkvsearch.data.catalog_columns import CatalogColumns
    from qkvsearch.query.where import Where
    from qkvsearch.storage.publish import BuildContents

# The fact that says where; and how the arrays are called that go there.
FACT, ARRAY = "keys", ".keys"
# The array of a head that says how long its keys are: their sum.
SUM = "key_sum"
WORDS = ("terms", "indptr", "indices", "counts", "lengths")


@dataclass(frozen=True)
class RemoteCollection:
    """uri: as the client is told it. prefix: how the names of the workspace's collections begin.
    collection: of the segment whose fact this is. index: of dense heads, "" for one that leaves no
    key out.
    """

    uri: str
    prefix: str
    collection: str = ""
    index: str = ""

    @classmethod
    def new(cls, given: str, former: Mapping[str, Any]) -> RemoteCollection:
        """As `milvus:URI` names it, for a build in the place of one with these facts. Raises
        `QkvError`, also where nobody answers there.
        """
        from qkvsearch.engines.milvus.connection import address, connect

        uri, index = address(given)
        connect(uri, make=True, is_trusted=True)
        before = cls.of(former)
        is_same = before is not None and before.uri == uri
        prefix = before.prefix if before and is_same else f"qkv_{uuid.uuid4().hex[:8]}_"
        return cls(uri, prefix, index=index)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> RemoteCollection | None:
        """As a build has it among its facts; None where its keys are here. Raises `WorkspaceError`
        for facts that nobody wrote.
        """
        found = facts.get(FACT)
        if found is None:
            return None
        names = {field.name for field in fields(cls)}
        if not isinstance(found, dict) or found.keys() != names:
            raise WorkspaceError(f"the manifest of the build does not say where its {FACT} are")
        return cls(**{name: str(text) for name, text in found.items()})

    def to_fact(self) -> dict[str, str]:
        """As it is stored."""
        return asdict(self)


def write_keys(name: str, folder: Path, contents: BuildContents) -> None:
    """Write those of a segment to a collection that is named by its build, if it has any: they are
    no arrays of the build any more. folder: where its catalog is already.
    """
    place = RemoteCollection.of(contents.facts)
    if place is None or not any(array.endswith(ARRAY) for array in contents.arrays):
        return
    # Most builds have their keys here, and need none of this.
    from qkvsearch.engines.milvus.collections import SegmentKeys, write

    collection = _owned(place.prefix, folder.parent.parent) + name.replace("-", "_")
    keys = {head: _keys(contents, head, place) for head in list(contents.facts["head_weights"])[1:]}
    words = {array: _pending(contents, f"lexical.{array}") for array in WORDS}
    found = SegmentKeys(keys, words, folder / CATALOG)
    write(place.uri, collection, found, place.index)
    contents.facts[FACT] = RemoteCollection(
        place.uri, place.prefix, collection, place.index
    ).to_fact()


def _keys(contents: BuildContents, head: str, place: RemoteCollection) -> Any:
    """A head's keys, which leave the arrays; those that stay as they are, from where they are."""
    keys = contents.arrays.pop(f"{head}{ARRAY}", None)
    if keys is not None:
        return keys
    from qkvsearch.engines.milvus.store import rows_of

    width = len(_pending(contents, f"{head}.{SUM}"))
    return rows_of(place.uri, place.collection, head, contents.facts["n_items"], width)


def _pending(contents: BuildContents, name: str) -> np.ndarray:
    """An array as it will be published, be it another build's."""
    if name in contents.arrays:
        return contents.arrays[name]
    return read_array(contents.shared[f"{name}.npy"])


def places_in(workspace: Path) -> list[RemoteCollection]:
    """Of all builds that have a folder, whoever lists them, but for what cannot be read."""
    return [place for place in _places(workspace) if isinstance(place, RemoteCollection)]


def _places(workspace: Path) -> Iterator[RemoteCollection | QkvError | None]:
    for path in (workspace / BUILDS_FOLDER).glob(f"*/{MANIFEST}"):
        try:
            yield RemoteCollection.of(read_checksummed(path)["facts"])
        except (QkvError, OSError, LookupError, TypeError, ValueError) as error:
            yield WorkspaceError(f"{path}: {error}")


def drop_keys(before: Iterable[RemoteCollection], workspace: Path) -> None:
    """Drop the collections that no build of the workspace needs any more. before: what its builds
    had when there were more of them.
    """
    former = {(place.uri, place.prefix) for place in before}
    there = list(_places(workspace)) if former else []
    if not former or any(isinstance(place, QkvError) for place in there):
        return  # nobody can tell what it needs
    from qkvsearch.engines.milvus.collections import drop_others

    kept = {place.collection for place in there if isinstance(place, RemoteCollection)}
    for uri, prefix in former:
        drop_others(uri, _owned(prefix, workspace), kept)


def _owned(prefix: str, workspace: Path) -> str:
    """How the names of collections begin that the workspace wrote where it is now: a copy of it
    drops none of the other's.
    """
    owner = xxhash.xxh32_hexdigest(f"{node()}:{workspace.resolve()}".encode())
    return f"{prefix}{owner}_"


def filter_of(where: Where, columns: CatalogColumns, fields: Mapping[str, str]) -> str | None:
    """A condition as Milvus has it; None where it has none that says the same. fields: the types of
    the fields that there are of columns.
    """
    from qkvsearch.engines.milvus.expression import Field, expression
    from qkvsearch.query.where import condition_tree

    places = {column.stored: f"c{place}" for place, column in enumerate(columns)}

    def field(name: str) -> Field | None:
        column = columns.find(name)
        place = places[column.stored]
        # Dates are compared as far as both are given, which Milvus does not.
        known = place in fields and column.type != "date"
        return Field(place, fields[place]) if known else None

    return expression(*condition_tree(where), field)
