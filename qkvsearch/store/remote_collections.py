"""Keys on a vector database server: written before a build's files, dropped after its folder."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from platform import node
from typing import TYPE_CHECKING, Any

import xxhash

from qkvsearch._utils.files import real_path
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.store.checksums import read_checksummed
from qkvsearch.store.segments import BUILDS_FOLDER, MANIFEST

if TYPE_CHECKING:
    from qkvsearch.store.build_contents import BuildContents

# The fact that names the server, and the end of the names of the arrays that are written there.
FACT, ARRAY = "keys", ".keys"
# The array with the sum of a head's keys, which also tells their length.
SUM = "key_sum"


@dataclass(frozen=True)
class RemoteCollection:
    """A collection with the keys of one segment."""

    # Of the server.
    uri: str
    # The start of the names of the workspace's collections.
    prefix: str
    # Its name.
    collection: str = ""
    # The kind of index of dense heads, "" for an exact one.
    index: str = ""

    @classmethod
    def new(cls, address: str, previous: Mapping[str, Any]) -> RemoteCollection:
        """Parse `milvus:URI` and connect to the server. previous: the facts of the build that is
        replaced. Raises `QkvError`, also where no server answers.
        """
        from qkvsearch.engines.milvus.connection import address as parse_address
        from qkvsearch.engines.milvus.connection import connect

        uri, index = parse_address(address)
        connect(uri, make=True, is_trusted=True)
        before = cls.of(previous)
        is_same = before is not None and before.uri == uri
        prefix = before.prefix if before and is_same else f"qkv_{uuid.uuid4().hex[:8]}_"
        return cls(uri, prefix, index=index)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> RemoteCollection | None:
        """Return the collection in the facts of a build; None where the keys are local. Raises
        `WorkspaceError` for a fact of another form.
        """
        fact = facts.get(FACT)
        if fact is None:
            return None
        names = {field.name for field in fields(cls)}
        if not isinstance(fact, dict) or fact.keys() != names:
            raise WorkspaceError(f"the manifest of the build does not say where its {FACT} are")
        return cls(**{name: str(text) for name, text in fact.items()})

    def to_fact(self) -> dict[str, str]:
        """Return the collection as it is stored among the facts."""
        return asdict(self)


def write_keys(name: str, workspace: Path, contents: BuildContents) -> None:
    """Write the keys of a segment, if the build has them on a server, to a collection named by the
    build, and remove them from the arrays.
    """
    remote = RemoteCollection.of(contents.facts)
    if remote is None or not any(array.endswith(ARRAY) for array in contents.arrays):
        return
    # Most builds have local keys and need none of this.
    from qkvsearch.engines.milvus.collections import write
    from qkvsearch.text.encoders import dense_heads

    collection = _owned(remote.prefix, workspace) + name.replace("-", "_")
    heads = dense_heads(contents.facts["head_weights"])
    keys = {head: _keys(contents, head, remote) for head in heads}
    write(remote.uri, collection, keys, remote.index)
    contents.facts[FACT] = RemoteCollection(
        remote.uri, remote.prefix, collection, remote.index
    ).to_fact()


def _keys(contents: BuildContents, head: str, remote: RemoteCollection) -> Any:
    """Take a head's keys out of the arrays, or read unchanged ones from their collection."""
    keys = contents.arrays.pop(f"{head}{ARRAY}", None)
    if keys is not None:
        return keys
    from qkvsearch.engines.milvus.store import rows_of

    width = len(contents.array(f"{head}.{SUM}"))
    return rows_of(remote.uri, remote.collection, head, contents.facts["n_items"], width)


def collections_of(workspace: Path) -> list[RemoteCollection]:
    """Return the collections of all builds that have a folder and can be read."""
    return [item for item in _collections(workspace) if isinstance(item, RemoteCollection)]


def _collections(workspace: Path) -> Iterator[RemoteCollection | QkvError | None]:
    for path in (workspace / BUILDS_FOLDER).glob(f"*/{MANIFEST}"):
        try:
            yield RemoteCollection.of(read_checksummed(path)["facts"])
        except (QkvError, OSError, LookupError, TypeError, ValueError) as error:
            yield WorkspaceError(f"{path}: {error}")


def drop_keys(before: Iterable[RemoteCollection], workspace: Path) -> None:
    """Drop the collections that no build of the workspace needs any more. before: the collections
    of its builds before some were removed.
    """
    prefixes = {(remote.uri, remote.prefix) for remote in before}
    remaining = list(_collections(workspace)) if prefixes else []
    if not prefixes or any(isinstance(item, QkvError) for item in remaining):
        return  # which collections a damaged build needs is not known
    from qkvsearch.engines.milvus.collections import drop_others

    needed = {item.collection for item in remaining if isinstance(item, RemoteCollection)}
    for uri, prefix in prefixes:
        drop_others(uri, _owned(prefix, workspace), needed)


def _owned(prefix: str, workspace: Path) -> str:
    """Return the prefix of collections written by this workspace on this machine and path, so that
    a copy of the workspace drops none of the original's.
    """
    owner = xxhash.xxh32_hexdigest(f"{node()}:{real_path(workspace)}".encode())
    return f"{prefix}{owner}_"
