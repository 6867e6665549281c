"""A stored dense head: the items' keys, and the encoder that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress
from qkvsearch.engines.milvus.remote_rows import BLOCK, RemoteRows
from qkvsearch.errors import Count, DamagedError, QkvError, WorkspaceError, quantity
from qkvsearch.heads.component import Addition, BuildModels, IndexComponent, main_head
from qkvsearch.heads.dense_keys import DenseKeys, ItemKeys
from qkvsearch.heads.late_interaction import LONGEST_ITEM
from qkvsearch.heads.passages import Passages, PassagesComponent
from qkvsearch.heads.remote_keys import DRAWN, KeyRows, RemoteKeys
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.array_spec import ArraySpec
from qkvsearch.store.remote_collections import SUM, RemoteCollection
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.encoders import dense_heads, restored_encoder
from qkvsearch.text.text_encoder import TextEncoder, encode_items

if TYPE_CHECKING:
    from qkvsearch.engines.milvus.store import MilvusKeys


# A pretrained encoder counts as the one that made the keys if no component of its probe differs by
# more.
TOLERANCE = 1e-3
# A build of this many items also has int8 keys, because reading all keys takes most of a query. A
# build that grows this large gets them when it is built again: merged segments answer as before.
MIN_QUANTIZED = 100_000
CODES = "codes", "scales"
# The keys with the weights of columns that `tune search` found, by which a search ranks. What else
# reads keys reads `keys`, and so do searches after `tune --reset`.
TUNED_KEYS = "tuned_keys"
TUNED_CODES = "tuned_codes", "tuned_scales"
# The array with Σ kkᵀ, float64. With the array `SUM`, Σ k, it gives mean and covariance of a head's
# keys.
PRODUCTS = "key_products"
# Sums of changed keys differ by more.
SUM_TOLERANCE = 1e-4
# The arrays of an encoder.
ENCODER = ("probe", "terms", "vectors", "weights")


class StoredHead:
    """A dense head of an opened build. Its keys can be used where its encoder is missing."""

    def __init__(self, component: DenseComponent, snapshot: Snapshot, analyzer: Analyzer) -> None:
        # Without a reference to the build's models: files would wait for the garbage collector.
        self._component, self._snapshot, self._analyzer = component, snapshot, analyzer

    @cached_property
    def keys(self) -> ItemKeys[Any]:
        """The items' keys."""
        rows = self._component.keys_of(self._snapshot)
        if isinstance(rows, RemoteRows):
            sums = self._component.read(self._snapshot, SUM, PRODUCTS)
            return remote_keys(rows, *sums.values())
        return self._local_keys("keys", *CODES)

    @cached_property
    def tuned_keys(self) -> ItemKeys[Any]:
        """The items' keys with the weights of columns that `tune search` found."""
        return self._local_keys(TUNED_KEYS, *TUNED_CODES)

    def _local_keys(self, name: str, *codes: str) -> ItemKeys[Any]:
        if codes[0] not in self._component.names_in(self._snapshot):
            return DenseKeys(self._component.read(self._snapshot, name)[name])
        from qkvsearch.heads.quantized import QuantizedKeys

        keys, int8, scales = self._component.read(self._snapshot, name, *codes).values()
        return QuantizedKeys(keys, int8, scales)

    @cached_property
    def encoder(self) -> TextEncoder:
        """The encoder. Raises `WorkspaceError` where it is missing or did not make the keys."""
        head, build = self._component.group, self._snapshot
        names = [name for name in ENCODER if name in self._component.names_in(build)]
        arrays = self._component.read(build, *names, components=self._width) if names else {}
        try:
            encoder = restored_encoder(head, build.facts["encoder"], arrays, self._analyzer)
            if encoder.is_pretrained:
                self._check_same(encoder, arrays["probe"])
        except QkvError as error:
            sound = [name for name in build.facts["head_weights"] if f"{name}.terms" in build]
            raise WorkspaceError(
                f"{error}; without {head} there is search with `heads` {','.join(sound)}"
            ) from None
        return encoder

    @property
    def _width(self) -> int:
        """The length of a key, by the manifest, so that the keys may be damaged."""
        array = "keys" if self._component.is_local(self._snapshot) else SUM
        entry = self._snapshot.base.files.get(f"{self._component.name_of(array)}.npy", {})
        shape = entry.get("shape", ())
        return int(shape[-1]) if shape else self.keys.vectors.shape[1]

    def _check_same(self, encoder: TextEncoder, made: np.ndarray) -> None:
        """Raise `WorkspaceError` where the encoder's probe is not `made`, the stored one."""
        probe = encoder.probe
        if probe.shape != made.shape or np.abs(probe - made).max() > TOLERANCE:
            raise WorkspaceError(
                f"{self._snapshot.workspace}: its {self._component.group} keys were made with "
                "another model than the one that is installed; build the workspace again, or "
                "install that model"
            )


@dataclass(frozen=True)
class DenseComponent(IndexComponent[StoredHead]):
    """A dense head. `group` is its name.

    A learned encoder is stored whole. Of a pretrained encoder only what it learned from the catalog
    is stored, and its probe, to recognize it.
    """

    arrays: ClassVar = {
        "keys": ArraySpec("f", ("items", "components"), rows="texts"),
        "codes": ArraySpec("i", ("items", "components"), rows="texts"),
        "scales": ArraySpec("f", ("items",), rows="texts"),
        TUNED_KEYS: ArraySpec("f", ("items", "components"), rows="texts"),
        TUNED_CODES[0]: ArraySpec("i", ("items", "components"), rows="texts"),
        TUNED_CODES[1]: ArraySpec("f", ("items",), rows="texts"),
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
        """Store the encoder and the keys, float32 (n_items, d). cut: uint16 (n_items,), how many
        texts of each item were longer than the encoder reads; None for an encoder without a limit.
        """
        self.put(contents, keys=keys, cut=cut)
        if RemoteCollection.of(contents.facts) is not None:
            self.put(contents, **sums(keys))
        elif len(keys) >= MIN_QUANTIZED:
            self.put(contents, **_quantized(keys))
        if cut is not None:
            contents.facts["token_limit"] = encoder.limit
        self.put(contents, **encoder.learned_arrays())
        if encoder.is_pretrained:
            self.put(contents, probe=encoder.probe)

    def store_tuned(self, contents: BuildContents, keys: np.ndarray | None) -> None:
        """Store keys with other weights of columns, float32 (n_items, d); None to drop them."""
        arrays = dict.fromkeys([TUNED_KEYS, *TUNED_CODES])
        if keys is not None:
            arrays[TUNED_KEYS] = keys
            if len(keys) >= MIN_QUANTIZED:
                arrays |= dict(zip(TUNED_CODES, _quantized(keys).values(), strict=True))
        self.put(contents, **arrays)

    def load(self, models: BuildModels) -> StoredHead:
        return StoredHead(self, models.snapshot, models.analyzer)

    def keys_of(self, snapshot: Snapshot) -> KeyRows:
        """Return the keys of the items of a build, (n_items, d), local or remote."""
        if self.is_local(snapshot):
            return self.read(snapshot, "keys")["keys"]
        width = len(self.read(snapshot, SUM)[SUM])
        store = key_store(snapshot, {self.group: width})
        assert store is not None
        return RemoteRows(store, self.group, width)

    def is_local(self, snapshot: Snapshot) -> bool:
        """Return whether the keys are on this machine."""
        return RemoteCollection.of(snapshot.facts) is None

    def pending(self, contents: BuildContents, array: str) -> np.ndarray:
        remote = RemoteCollection.of(contents.facts)
        if array == "keys" and remote is not None and not self.is_pending(contents, array):
            width = len(self.pending(contents, SUM))
            n_items = contents.facts["n_items"]
            from qkvsearch.engines.milvus.store import rows_of

            return np.asarray(rows_of(remote.uri, remote.collection, self.group, n_items, width))
        return super().pending(contents, array)

    def _keys_at(self, snapshot: Snapshot, positions: np.ndarray) -> np.ndarray:
        """Return the keys of items by their rows, (n, d), zeros for −1."""
        if self.is_local(snapshot):
            return self.rows_at(snapshot, "keys", positions)
        keys = self.keys_of(snapshot)
        rows = np.zeros((len(positions), keys.shape[1]), np.float32)
        rows[positions >= 0] = keys[positions[positions >= 0]]
        return rows

    def _resum(
        self,
        contents: BuildContents,
        snapshot: Snapshot,
        deleted: np.ndarray,
        added: np.ndarray | None = None,
    ) -> None:
        """Update the sums over all remote keys. deleted: rows of items. added: keys."""
        if self.is_local(snapshot):
            return
        previous = self.read(snapshot, SUM, PRODUCTS)
        minus = sums(self._keys_at(snapshot, deleted))
        plus = {} if added is None else sums(added)
        self.put(
            contents,
            **{name: previous[name] - minus[name] + plus.get(name, 0) for name in (SUM, PRODUCTS)},
        )

    def new_rows(self, addition: Addition, progress: Progress) -> dict[str, np.ndarray]:
        """Copy the keys of texts that are encoded already, and encode the others."""
        previous, unread = addition.previous, addition.unread
        before = np.where(unread, -1, addition.positions)
        stored = self.names_in(previous.snapshot)
        arrays = {"keys": self._keys_at(previous.snapshot, before)}
        for name in (*CODES, TUNED_KEYS, *TUNED_CODES, "cut"):
            if name in stored:
                arrays[name] = self.rows_at(previous.snapshot, name, before)
        if not unread.any():
            return arrays
        has_tokens = previous.has_tokens and self.group == previous.main_head
        longest = LONGEST_ITEM if has_tokens else 0
        encoder = previous.load(self).encoder
        made = encode_items(self.group, encoder, addition.new_fields, progress, longest)
        keys = made.keys(previous.column_weights(self.group))
        arrays["keys"][unread] = keys
        if CODES[0] in arrays:
            for name, values in _quantized(keys).items():
                arrays[name][unread] = values
        if TUNED_KEYS in arrays:
            tuned = made.keys(previous.tuned_column_weights)
            arrays[TUNED_KEYS][unread] = tuned
            if TUNED_CODES[0] in arrays:
                for name, values in zip(TUNED_CODES, _quantized(tuned).values(), strict=True):
                    arrays[name][unread] = values
        if "cut" in arrays and made.cut is not None:
            arrays["cut"][unread] = made.cut
            if PassagesComponent().is_in(previous.snapshot):
                # Long texts are read passage by passage.
                n_long = Passages.of(addition.new_fields).n_long()
                arrays["cut"][unread] = np.maximum(made.cut.astype(np.int64) - n_long, 0)
        return arrays

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        arrays = self.new_rows(addition, progress)
        self.put(contents, **arrays)
        snapshot, deleted = addition.previous.snapshot, addition.deleted
        self._resum(contents, snapshot, deleted, arrays["keys"])
        self._note_change(contents, snapshot, deleted, arrays.get("cut"))

    def delete(self, contents: BuildContents, snapshot: Snapshot, deleted: np.ndarray) -> None:
        self._resum(contents, snapshot, deleted)
        self._note_change(contents, snapshot, deleted)

    def merge(self, contents: BuildContents, snapshot: Snapshot) -> None:
        super().merge(contents, snapshot)
        if not self.is_local(snapshot) and not snapshot.rows.is_plain:
            self.put(contents, keys=self.keys_of(snapshot))

    def note_texts(self, contents: BuildContents) -> None:
        """Note in the facts how many texts are longer than a pretrained main head reads."""
        has_limit = self.is_pending(contents, "cut")
        self._note(contents, int(self.pending(contents, "cut").sum()) if has_limit else 0)

    def _note_change(
        self,
        contents: BuildContents,
        snapshot: Snapshot,
        deleted: np.ndarray,
        cut: np.ndarray | None = None,
    ) -> None:
        """Update that note. deleted: rows of items. cut: of the new items, as in `store`."""
        if self.group != main_head(contents.facts) or "cut" not in self.names_in(snapshot):
            return
        remaining = np.delete(self.read(snapshot, "cut")["cut"], deleted)
        self._note(contents, int(remaining.sum()) + (0 if cut is None else int(cut.sum())))

    def _note(self, contents: BuildContents, n_cut: int) -> None:
        facts = contents.facts
        facts.pop("texts_cut", None)
        if n_cut:
            n = Count(n_cut)
            texts = quantity(facts["n_items"] * len(facts["text_columns"]), "text")
            facts["texts_cut"] = (
                f"{n} of {texts} {n:is|are} longer than {self.group}'s {facts['token_limit']} "
                f"tokens and {n:was|were} cut"
            )


def _quantized(keys: np.ndarray) -> dict[str, np.ndarray]:
    """Return keys, float32 (n_items, d), as int8, by the names of their arrays."""
    from qkvsearch.heads.quantized import quantize

    return quantize(keys)


# --- remote keys ---


def sums(keys: np.ndarray) -> dict[str, np.ndarray]:
    """Return the sums of keys (n, d) by the names of their arrays.

    >>> [values.tolist() for values in sums(np.array([[1.0, 2.0], [3.0, 0.0]])).values()]
    [[4.0, 2.0], [[10.0, 2.0], [2.0, 4.0]]]
    """
    wide = keys.astype(np.float64)
    return {SUM: wide.sum(axis=0), PRODUCTS: wide.T @ wide}


def damaged_keys(snapshot: Snapshot) -> list[DamagedError]:
    """Read all remote keys, compare them with their sums, and return an error for each head whose
    keys differ; none where the keys are local.
    """
    if RemoteCollection.of(snapshot.facts) is None:
        return []
    errors = []
    for head in dense_heads(snapshot.facts["head_weights"]):
        try:
            total = snapshot.array(f"{head}.{SUM}")
            store = key_store(snapshot, {head: len(total)})
            rows = RemoteRows(store, head, len(total))
            blocks = (rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK))
            actual = sum(block.sum(axis=0, dtype=np.float64) for block in blocks)
            if np.allclose(actual, total, atol=SUM_TOLERANCE):
                continue
            what = "the keys differ from those that were written"
        except DamagedError:
            continue  # reported with the files
        except WorkspaceError as error:
            what = str(error)
        errors.append(DamagedError(snapshot.segments[-1].folder / f"{head}.keys", what))
    return errors


def key_store(snapshot: Snapshot, widths: dict[str, int]) -> MilvusKeys | None:
    """Connect to the remote keys of a build; return None where they are local. widths: length of
    the keys of each dense head. Raises `WorkspaceError` where the collections differ from those
    that were written.
    """
    remote = RemoteCollection.of(snapshot.facts)
    if remote is None:
        return None
    from qkvsearch.engines.milvus.store import MilvusKeys, StoredPiece

    pieces, start = [], 0
    for segment in snapshot.with_items:
        own = RemoteCollection.of(segment.facts)
        assert own is not None
        pieces.append(StoredPiece(own.collection, segment.n_rows, start))
        start += segment.n_rows
    rows = snapshot.rows
    store = MilvusKeys(remote.uri, pieces, rows.item_rows, rows.stored, widths)
    store.check()
    return store


def remote_keys(rows: RemoteRows, total: np.ndarray, products: np.ndarray) -> RemoteKeys:
    """Return the keys of a head. total, products: the sums of its keys."""
    n_items = len(rows)
    mean = total / n_items
    covariance = products / n_items - np.outer(mean, mean)
    drawn = np.random.default_rng(0).choice(n_items, min(DRAWN, n_items), replace=False)
    return RemoteKeys(rows, mean, covariance, np.sort(drawn))
