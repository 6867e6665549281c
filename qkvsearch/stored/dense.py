"""A stored dense head: the items' keys, and the encoder that made them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.learning.noise_threshold import noise_threshold, random_strings
from qkvsearch.progress import Progress
from qkvsearch.retrieval import DenseKeys
from qkvsearch.stored.part import BuildReader, Change, StoredPart
from qkvsearch.texts.encoders import restored_encoder
from qkvsearch.texts.text_encoder import TextEncoder, encode_items
from qkvsearch.workspace import BuildContents, Snapshot

# A pretrained encoder is the one that made the keys where no component of what it makes of a random
# string differs by more.
SAME = 1e-3


class StoredHead:
    """A dense head of an opened build. Its keys answer where its encoder is gone."""

    def __init__(self, part: DensePart, snapshot: Snapshot) -> None:
        self.keys = DenseKeys(part.read(snapshot, "keys"))
        # Not the reader that keeps this: in a circle, files would wait for the garbage collector.
        self._part, self._snapshot = part, snapshot

    @cached_property
    def encoder(self) -> TextEncoder:
        """Raises `WorkspaceError` where it is gone, or is not the one that made the keys."""
        head, build, arrays = self._part.group, self._snapshot, self._part.read_all(self._snapshot)
        try:
            encoder = restored_encoder(head, build.facts["encoder"], arrays)
            if encoder.is_pretrained:
                self._check_same(encoder, arrays["probes"])
        except QkvError as error:
            without = [name for name in build.facts["head_weights"] if f"{name}.terms" in build]
            raise WorkspaceError(
                f"{error}; without {head} there is search with `heads` {','.join(without)}"
            ) from None
        return encoder

    def _check_same(self, encoder: TextEncoder, made: np.ndarray) -> None:
        """Raises `WorkspaceError` where the encoder is not the one that made the keys."""
        there = encoder.encode(random_strings(1)[0]).total
        if there.shape != made[0].shape or np.abs(there - made[0]).max() > SAME:
            raise WorkspaceError(
                f"{self._snapshot.workspace}: its {self._part.group} keys were made with another "
                "model than the one that is here now; build the workspace again, or put that model "
                "back"
            )


@dataclass(frozen=True)
class DensePart(StoredPart[StoredHead]):
    """`group` is the head's name.

    A learned encoder is stored whole. A pretrained one stays where it is installed, but for what it
    learned from the catalog; its vectors of random strings are kept, to know it again.
    """

    arrays: ClassVar = ("keys", "cut", "probes", "terms", "vectors", "weights")

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
        if cut is not None:
            contents.facts["token_limit"] = encoder.limit
        self.put(contents, **encoder.learned_arrays())
        if encoder.is_pretrained:
            self.put(contents, probes=encoder.encode_many(random_strings()))

    def load(self, build: BuildReader) -> StoredHead:
        return StoredHead(self, build.snapshot)

    def revise(self, contents: BuildContents, change: Change, progress: Progress) -> None:
        """Keys of texts that were read go along; the encoder makes those of the others."""
        self.share(contents, "probes", "terms", "vectors", "weights")
        self.take_rows(contents, change.read, "keys", "cut")
        if change.keeps_texts:
            return
        if change.unread.any():
            encoder = change.former.load(self).encoder
            made = encode_items(self.group, encoder, change.new_fields, progress)
            self.pending(contents, "keys")[change.unread] = made.keys
            if made.cut is not None:
                self.pending(contents, "cut")[change.unread] = made.cut
        if self.group == change.former.main_head and f"{self.group}.probes" in contents.shared:
            self.note_texts(contents)

    def note_texts(self, contents: BuildContents) -> None:
        """The facts that follow from what a pretrained main head made of the items: how near
        nonsense comes to one of them, and how many texts were cut.
        """
        facts, keys = contents.facts, self.pending(contents, "keys")
        facts["chance"] = noise_threshold(self.pending(contents, "probes"), keys)
        facts.pop("texts_cut", None)
        n_cut = int(self.pending(contents, "cut").sum()) if "token_limit" in facts else 0
        if n_cut:
            facts["texts_cut"] = (
                f"{n_cut:,} of {len(keys) * len(facts['text_columns']):,} texts are longer than "
                f"{self.group}'s {facts['token_limit']} tokens and were cut"
            )
