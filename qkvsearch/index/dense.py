"""A stored dense head: the items' keys, and the encoder that made them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from qkvsearch._utils.progress import Progress
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.index.component import Addition, ArraySpec, IndexComponent, main_head
from qkvsearch.index.remote_vectors import PRODUCTS, key_store, remote_keys, sums
from qkvsearch.retrieval import DenseKeys
from qkvsearch.retrieval.remote_keys import RemoteKeys, RemoteRows, Rows
from qkvsearch.storage import BuildContents, Snapshot
from qkvsearch.storage.remote_collections import SUM, RemoteCollection
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.encoders import restored_encoder
from qkvsearch.text.text_encoder import TextEncoder, encode_items

if TYPE_CHECKING:
    from qkvsearch.index import StoredModels


# A pretrained encoder is the one that made the keys where no component of its vector for this text
# differs by more.
PROBE, SAME = "qnhibbae qxnpzsqo", 1e-3
# A build of so many items has keys as int8 as well: reading all of them takes most of a query. One
# that grows so large gets them when it is built anew, for merged segments answer as before.
MANY = 100_000
CODES = "codes", "scales"
# What is stored of an encoder.
ENCODER = ("probe", "terms", "vectors", "weights")


class StoredHead:
    """A dense head of an opened build. Its keys answer where its encoder is gone."""

    def __init__(self, part: DenseComponent, snapshot: Snapshot, analyzer: Analyzer) -> None:
        # Not the reader that keeps this: in a circle, files would wait for the garbage collector.
        self._part, self._snapshot, self._analyzer = part, snapshot, analyzer

    @cached_property
    def keys(self) -> DenseKeys | RemoteKeys:
        rows = self._part.keys_of(self._snapshot)
        if isinstance(rows, RemoteRows):
            sums = self._part.read(self._snapshot, SUM, PRODUCTS)
            return remote_keys(rows, *sums.values())
        has_codes = CODES[0] in self._part.names_in(self._snapshot)
        found = self._part.read(self._snapshot, "keys", *CODES[: 2 * has_codes])
        keys = found.pop("keys")
        if not found:
            return DenseKeys(keys)
        from qkvsearch.retrieval.quantized import QuantizedKeys

        return DenseKeys(keys, QuantizedKeys.from_arrays(found))

    @cached_property
    def encoder(self) -> TextEncoder:
        """Raises `WorkspaceError` where it is gone, or is not the one that made the keys."""
        head, build = self._part.group, self._snapshot
        names = [name for name in ENCODER if name in self._part.names_in(build)]
        arrays = self._part.read(build, *names, components=self._width) if names else {}
        try:
            encoder = restored_encoder(head, build.facts["encoder"], arrays, self._analyzer)
            if encoder.is_pretrained:
                self._check_same(encoder, arrays["probe"])
        except QkvError as error:
            without = [name for name in build.facts["head_weights"] if f"{name}.terms" in build]
            raise WorkspaceError(
                f"{error}; without {head} there is search with `heads` {','.join(without)}"
            ) from None
        return encoder

    @property
    def _width(self) -> int:
        """Of the keys, by the manifest: an encoder is found where its keys are damaged."""
        here = self._part.is_here(self._snapshot)
        files, array = self._snapshot.base.files, "keys" if here else SUM
        shape = files.get(f"{self._part.group}.{array}.npy", {}).get("shape", ())
        return int(shape[-1]) if shape else self.keys.vectors.shape[1]

    def _check_same(self, encoder: TextEncoder, made: np.ndarray) -> None:
        """Raises `WorkspaceError` where the encoder is not the one that made the keys."""
        there = encoder.encode(PROBE).total
        if there.shape != made.shape or np.abs(there - made).max() > SAME:
            raise WorkspaceError(
                f"{self._snapshot.workspace}: its {self._part.group} keys were made with another "
                "model than the one that is here now; build the workspace again, or put that model "
                "back"
            )


@dataclass(frozen=True)
class DenseComponent(IndexComponent[StoredHead]):
    """`group` is the head's name.

    A learned encoder is stored whole. A pretrained one stays where it is installed, but for what it
    learned from the catalog; its vector for `PROBE` is stored, to recognize it.
    """

    arrays: ClassVar = {
        "keys": ArraySpec("f", ("items", "components"), rows="texts"),
        "codes": ArraySpec("i", ("items", "components"), rows="texts"),
        "scales": ArraySpec("f", ("items",), rows="texts"),
        SUM: ArraySpec("f", ("components",)),
        PRODUCTS: ArraySpec("f", ("components", "components")),
        "cut": ArraySpec("u", ("items",), rows="texts"),
        "probe": ArraySpec("f", ("components",)),
        "terms": ArraySpec("S", ("terms",)),
        "vectors": ArraySpec("f", ("terms", "components")),
        "weights": ArraySpec("f", ("terms",)),
    }

    def store(
        self,
        contents: BuildContents,
        encoder: TextEncoder,
        keys: np.ndarray,
        cut: np.ndarray | None = None,
    ) -> None:
        """keys: float32 (n_items, d). cut: uint16 (n_items,), how many of each one's texts were
        longer than the encoder reads, or None for an encoder without a limit.
        """
        self.put(contents, keys=keys, cut=cut)
        if RemoteCollection.of(contents.facts) is not None:
            self.put(contents, **sums(keys))
        elif len(keys) >= MANY:
            self.put(contents, **_quantized(keys))
        if cut is not None:
            contents.facts["token_limit"] = encoder.limit
        self.put(contents, **encoder.learned_arrays())
        if encoder.is_pretrained:
            self.put(contents, probe=encoder.encode(PROBE).total)

    def load(self, models: StoredModels) -> StoredHead:
        return StoredHead(self, models.snapshot, models.analyzer)

    def keys_of(self, snapshot: Snapshot) -> Rows:
        """The keys of the items of a build, float32 (n_items, d), wherever they are."""
        if self.is_here(snapshot):
            return self.read(snapshot, "keys")["keys"]
        width = len(self.read(snapshot, SUM)[SUM])
        store = key_store(snapshot, {self.group: width})
        assert store is not None
        return RemoteRows(store, self.group, width)

    def is_here(self, snapshot: Snapshot) -> bool:
        """Whether the keys are on this machine."""
        return RemoteCollection.of(snapshot.facts) is None

    def pending(self, contents: BuildContents, array: str) -> np.ndarray:
        place = RemoteCollection.of(contents.facts)
        if array == "keys" and place is not None and not self.is_pending(contents, array):
            width = len(self.pending(contents, SUM))
            n_items = contents.facts["n_items"]
            from qkvsearch.engines.milvus.store import rows_of

            return np.asarray(rows_of(place.uri, place.collection, self.group, n_items, width))
        return super().pending(contents, array)

    def _keys_at(self, snapshot: Snapshot, positions: np.ndarray) -> np.ndarray:
        """Keys of items by their rows, (n, d), zeros where that is −1."""
        if self.is_here(snapshot):
            return self.rows_at(snapshot, "keys", positions)
        keys = self.keys_of(snapshot)
        found = np.zeros((len(positions), keys.shape[1]), np.float32)
        found[positions >= 0] = keys[positions[positions >= 0]]
        return found

    def _resum(
        self,
        contents: BuildContents,
        snapshot: Snapshot,
        leaving: np.ndarray,
        joining: np.ndarray | None = None,
    ) -> None:
        """The sums over all keys, where items leave and others join."""
        if self.is_here(snapshot):
            return
        former = self.read(snapshot, SUM, PRODUCTS)
        gone = sums(self._keys_at(snapshot, leaving))
        come = {} if joining is None else sums(joining)
        self.put(
            contents,
            **{name: former[name] - gone[name] + come.get(name, 0) for name in (SUM, PRODUCTS)},
        )

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        """Keys of texts that were read go along; the encoder makes those of the others."""
        former, unread = addition.former.snapshot, addition.unread
        before = np.where(unread, -1, addition.positions)
        names = [name for name in (*CODES, "cut") if name in self.names_in(former)]
        found = {"keys": self._keys_at(former, before)}
        found |= {name: self.rows_at(former, name, before) for name in names}
        if unread.any():
            encoder = addition.former.load(self).encoder
            made = encode_items(self.group, encoder, addition.new_fields, progress)
            keys = made.keys(addition.former.column_weights(self.group))
            found["keys"][unread] = keys
            if CODES[0] in found:
                for name, values in _quantized(keys).items():
                    found[name][unread] = values
            if "cut" in found:
                found["cut"][unread] = made.cut
        self.put(contents, **found)
        self._resum(contents, former, addition.replaced, found["keys"])
        self._note_change(contents, former, addition.replaced, found.get("cut"))

    def withdraw(self, contents: BuildContents, models: StoredModels, leaving: np.ndarray) -> None:
        self._resum(contents, models.snapshot, leaving)
        self._note_change(contents, models.snapshot, leaving)

    def merge(self, contents: BuildContents, models: StoredModels, progress: Progress) -> None:
        super().merge(contents, models, progress)
        if not self.is_here(models.snapshot) and not models.snapshot.rows.is_plain:
            self.put(contents, keys=self.keys_of(models.snapshot))

    def note_texts(self, contents: BuildContents) -> None:
        """Note among the facts how many texts are longer than a pretrained main head reads."""
        has_limit = self.is_pending(contents, "cut")
        self._note(contents, int(self.pending(contents, "cut").sum()) if has_limit else 0)

    def _note_change(
        self,
        contents: BuildContents,
        snapshot: Snapshot,
        leaving: np.ndarray,
        cut: np.ndarray | None = None,
    ) -> None:
        """Note the same where the items in the rows `leaving` of a build leave, and others join."""
        if self.group != main_head(contents.facts) or "cut" not in self.names_in(snapshot):
            return
        stays = np.delete(self.read(snapshot, "cut")["cut"], leaving)
        self._note(contents, int(stays.sum()) + (0 if cut is None else int(cut.sum())))

    def _note(self, contents: BuildContents, n_cut: int) -> None:
        facts = contents.facts
        facts.pop("texts_cut", None)
        if n_cut:
            facts["texts_cut"] = (
                f"{n_cut:,} of {facts['n_items'] * len(facts['text_columns']):,} texts are longer "
                f"than {self.group}'s {facts['token_limit']} tokens and were cut"
            )


def _quantized(keys: np.ndarray) -> dict[str, np.ndarray]:
    """Keys float32 (n_items, d) as int8, by the names of their arrays."""
    from qkvsearch.retrieval.quantized import QuantizedKeys

    return QuantizedKeys.from_keys(keys).arrays()
