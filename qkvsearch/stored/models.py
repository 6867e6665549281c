"""What the engine reads: the models of a build, each on its first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.collaborative.cold_start import placed
from qkvsearch.collaborative.factors import ImplicitFactors, RatingFactors
from qkvsearch.collaborative.feedback import confidences
from qkvsearch.collaborative.history import UNKNOWN_TIME, History
from qkvsearch.data.interactions import Interactions
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.learning.noise_threshold import random_strings
from qkvsearch.retrieval import DenseKeys, LexicalKeys
from qkvsearch.retrieval.late import TokenKeys, table_of
from qkvsearch.stored.kinds import main_head
from qkvsearch.texts.encoders import TextEncoder, pretrained_encoder
from qkvsearch.texts.token_encoder import TokenEncoder
from qkvsearch.texts.vocabulary import Vocabulary
from qkvsearch.workspace import Snapshot

if TYPE_CHECKING:
    from qkvsearch.sequences.model import NextItemModel

IMPLICIT_ARRAYS = ("item_embeddings", "gram")
RATING_ARRAYS = ("item_biases", "item_embeddings")
NEXT_ITEM_ARRAYS = ("item_embeddings", "positions", "encoder")
# A pretrained encoder is the one that made the keys where no component of a probe differs by more.
SAME = 1e-3

Scale = tuple[float, float] | None


class StoredModels:
    """What a build stored, each part read on first use, with neither scikit-learn nor numba."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.n_items: int = snapshot.facts["n_items"]
        self._encoders: dict[str, TextEncoder] = {}

    @cached_property
    def lexical_keys(self) -> LexicalKeys:
        names = ("indptr", "indices", "weights")
        postings = {name: self.snapshot.array(f"lexical.{name}") for name in names}
        vocabulary = Vocabulary(self.snapshot.array("lexical.terms"))
        return LexicalKeys(vocabulary, n_items=self.n_items, **postings)

    @cached_property
    def head_weights(self) -> dict[str, float]:
        """How much each head of a search counts, the lexical one first; they add up to 1."""
        return dict(self.snapshot.facts["head_weights"])

    @cached_property
    def main_head(self) -> str:
        return main_head(self.snapshot.facts)

    def encoder(self, head: str) -> TextEncoder:
        """What a dense head turns texts into vectors by. Raises `WorkspaceError` where it is gone,
        or another than the one that made the keys.
        """
        if head not in self._encoders:
            self._encoders[head] = self._read_encoder(head)
        return self._encoders[head]

    def _read_encoder(self, head: str) -> TextEncoder:
        array = self.snapshot.array
        if f"{head}.terms" in self.snapshot:
            terms = Vocabulary(array(f"{head}.terms"))
            return TokenEncoder(terms, array(f"{head}.vectors"), array(f"{head}.weights"))
        try:
            encoder = pretrained_encoder(head, self.snapshot.facts["encoder"])
            if head == "static":
                encoder = encoder.weighted(array("static.weights"))
            self._check_same(head, encoder)
        except QkvError as error:
            without = [name for name in self.head_weights if f"{name}.terms" in self.snapshot]
            raise WorkspaceError(
                f"{error}; without {head} there is search with `heads` {','.join(without)}"
            ) from None
        return encoder

    def _check_same(self, head: str, encoder: TextEncoder) -> None:
        """Raises `WorkspaceError` where the encoder is not the one that made the keys."""
        there = encoder.encode(random_strings(1)[0]).total
        made = self.snapshot.array(f"{head}.probes")[0]
        if there.shape != made.shape or np.abs(there - made).max() > SAME:
            folder = self.snapshot.folder.parent.parent
            raise WorkspaceError(
                f"{folder}: its {head} keys were made with another model than the one that is "
                "here now; build the workspace again, or put that model back"
            )

    def dense_keys(self, head: str) -> DenseKeys:
        """The items' keys of a dense head."""
        return DenseKeys(self.snapshot.array(f"{head}.keys"))

    @property
    def has_tokens(self) -> bool:
        """Whether the items' tokens are kept."""
        return f"{self.main_head}.token_indptr" in self.snapshot

    @cached_property
    def token_keys(self) -> TokenKeys:
        """The items' tokens, for whoever asked `has_tokens` first."""
        array, head = self.snapshot.array, self.main_head
        table = table_of(self.encoder(head))
        kind = "token_vectors" if table is None else "token_rows"
        return TokenKeys(array(f"{head}.token_indptr"), array(f"{head}.{kind}"), table)

    @cached_property
    def implicit(self) -> ImplicitFactors | None:
        """With items that nobody met placed by their text; None where nobody's interactions were
        given.
        """
        if "implicit" not in self.snapshot.facts:
            return None
        arrays = {name: self.snapshot.array(f"implicit.{name}") for name in IMPLICIT_ARRAYS}
        if "implicit.text_map" in self.snapshot:
            text_map = self.snapshot.array("implicit.text_map")
            keys = self.dense_keys(self.main_head).vectors
            unmet = self.item_counts == 0
            arrays["item_embeddings"] = placed(arrays["item_embeddings"], keys, text_map, unmet)
        return ImplicitFactors.from_state(arrays, self.snapshot.facts["implicit"])

    @cached_property
    def item_counts(self) -> np.ndarray:
        """How many met each item, (n_items,), as the build knows it."""
        return self.snapshot.array("implicit.item_counts")

    @cached_property
    def item_directions(self) -> DenseKeys:
        return DenseKeys(self.snapshot.array("implicit.item_directions"))

    @cached_property
    def ratings(self) -> RatingFactors | None:
        """None where interactions came without ratings."""
        if "ratings" not in self.snapshot.facts:
            return None
        arrays = {name: self.snapshot.array(f"ratings.{name}") for name in RATING_ARRAYS}
        return RatingFactors.from_state(arrays, self.snapshot.facts["ratings"])

    @cached_property
    def next_item(self) -> NextItemModel | None:
        """None where the build was not asked for it."""
        if "next_item" not in self.snapshot.facts:
            return None
        from qkvsearch.sequences.model import NextItemModel

        arrays = {name: self.snapshot.array(f"next_item.{name}") for name in NEXT_ITEM_ARRAYS}
        return NextItemModel.from_state(arrays, self.snapshot.facts["next_item"])

    def log(self) -> Interactions | None:
        """What the build learnt from, in the owner's ids; None where there were no interactions."""
        snapshot = self.snapshot
        if "interactions.indptr" not in snapshot:
            return None
        names = [f"interactions.{name}" for name in ("ratings", "times")]
        ratings, times = (snapshot.array(name) if name in snapshot else None for name in names)
        lengths = np.diff(snapshot.array("interactions.indptr"))
        return Interactions(
            users=np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
            items=snapshot.array("interactions.items"),
            user_ids=snapshot.tables.ids("users"),
            item_ids=snapshot.tables.ids("items"),
            ratings=ratings,
            times=times,
            times_comparable=snapshot.facts.get("times_comparable", True),
        )

    @property
    def rating_scale(self) -> Scale:
        """The lowest and the highest rating, None where there are none."""
        return self.snapshot.facts.get("rating_scale")

    @cached_property
    def _histories(self) -> dict[str, np.ndarray]:
        names = [name for name in self.snapshot.facts["files"] if name.startswith("interactions.")]
        return {name.partition(".")[2]: self.snapshot.array(name) for name in names}

    def history(self, user: int | None) -> History:
        """What the user in this row of the build met; nothing for None."""
        arrays = self._histories
        span = slice(0) if user is None else slice(*arrays["indptr"][user : user + 2])
        positions = arrays["items"][span].astype(np.int64)
        times, ratings = (
            arrays[name][span] if name in arrays else np.full(len(positions), unknown, dtype)
            for name, unknown, dtype in (
                ("times", UNKNOWN_TIME, np.int64),
                ("ratings", np.nan, np.float32),
            )
        )
        weights = confidences(ratings, len(positions), self.rating_scale)
        return History(positions, weights, ratings, times)
