"""The models of a build: the arrays that the builder stores, and the way back for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from qkvsearch.data.interactions import Interactions
from qkvsearch.embeddings.cold_start import fit_text_map, placed
from qkvsearch.embeddings.encoders import Encoder, pretrained_encoder
from qkvsearch.embeddings.factors import ImplicitFactors, RatingFactors
from qkvsearch.embeddings.feedback import confidences, rating_scale
from qkvsearch.embeddings.history import UNKNOWN_TIME, History
from qkvsearch.embeddings.next_item_model import NextItemModel
from qkvsearch.embeddings.static import StaticEncoder
from qkvsearch.embeddings.tokens import TokenEncoder
from qkvsearch.embeddings.vocabulary import Vocabulary
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.evaluation.chance import chance_level, random_strings
from qkvsearch.retrieval import DenseKeys, LexicalKeys
from qkvsearch.retrieval.late import TokenKeys, table_of
from qkvsearch.workspace import BuildContents, Snapshot

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

IMPLICIT_ARRAYS = ("item_embeddings", "gram")
RATING_ARRAYS = ("item_biases", "item_embeddings")
NEXT_ITEM_ARRAYS = ("item_embeddings", "positions", "encoder")

# What becomes of every array when items join or leave, by its whole name or what follows the dot:
# "text rows", one an item, made of its texts; "item rows", one an item, zeros for one that nobody
# met; "text spans", where in the same head's "span rows" each item's begin, and the last one's end;
# "fixed", the same whatever the items are; "remade", by a function of its own in `revision`.
Kind = Literal["text rows", "item rows", "text spans", "span rows", "fixed", "remade"]
ARRAY_KINDS: dict[str, Kind] = {
    "lexical.terms": "remade",
    "lexical.indptr": "remade",
    "lexical.indices": "remade",
    "lexical.weights": "remade",
    "lexical.counts": "remade",
    "keys": "text rows",
    "cut": "text rows",
    "probes": "fixed",
    "token_indptr": "text spans",
    "token_rows": "span rows",
    "token_vectors": "span rows",
    "terms": "fixed",
    "vectors": "fixed",
    "weights": "fixed",
    "interactions.indptr": "remade",
    "interactions.items": "remade",
    "interactions.ratings": "remade",
    "interactions.times": "remade",
    "item_embeddings": "item rows",
    "item_directions": "item rows",
    "item_biases": "item rows",
    "item_counts": "item rows",
    "text_map": "fixed",
    "gram": "remade",
    "positions": "fixed",
    "encoder": "fixed",
}
# A pretrained encoder is the one that made the keys where no component of a probe differs by more.
SAME = 1e-3

Scale = tuple[float, float] | None


# --- stored by the builder ---


def array_kind(name: str) -> Kind:
    """Raises `LookupError` for an array that `ARRAY_KINDS` does not name."""
    return ARRAY_KINDS.get(name) or ARRAY_KINDS[name.partition(".")[2]]


def store_lexical(
    contents: BuildContents, vocabulary: Vocabulary, counts: csr_matrix | csc_matrix
) -> None:
    """The weights that a query reads, and the term counts (n_items, n_terms) that they come from:
    every weight depends on all items, so a later item changes all of them.
    """
    by_term = counts.tocsc()
    by_term.sort_indices()
    keys = LexicalKeys.from_counts(vocabulary, by_term)
    most = int(by_term.data.max(initial=0))
    contents.arrays |= {
        "lexical.counts": by_term.data.astype(np.min_scalar_type(most)),
        "lexical.terms": keys.vocabulary.terms,
        "lexical.indptr": keys.indptr,
        "lexical.indices": keys.indices,
        "lexical.weights": keys.weights,
    }


def store_encoder(
    contents: BuildContents,
    name: str,
    encoder: Encoder,
    keys: np.ndarray,
    cut: np.ndarray | None = None,
) -> None:
    """What an encoder makes of every item, (n_items, d), how many of each one's texts it cut, and
    what it learned from the catalogue.

    Of a pretrained one the rest stays where it is installed; what it makes of random strings is
    kept, to know it again.
    """
    contents.arrays[f"{name}.keys"] = keys
    if cut is not None:
        contents.arrays[f"{name}.cut"] = cut
        contents.facts["token_limit"] = encoder.limit  # type: ignore[attr-defined]
    if isinstance(encoder, TokenEncoder):
        contents.arrays[f"{name}.terms"] = encoder.vocabulary.terms
        contents.arrays[f"{name}.vectors"] = encoder.vectors
        contents.arrays[f"{name}.weights"] = encoder.weights
    elif isinstance(encoder, StaticEncoder):
        contents.arrays["static.weights"] = np.asarray(encoder.weights)
    if not isinstance(encoder, TokenEncoder):
        contents.arrays[f"{name}.probes"] = encoder.encode_many(random_strings())


def note_reading(contents: BuildContents, head: str) -> None:
    """The facts that follow from what a pretrained encoder made of the items: how near nonsense
    comes to one of them, and how many texts were cut.
    """
    facts = contents.facts
    probes, keys = (_array(contents, f"{head}.{name}") for name in ("probes", "keys"))
    facts["chance"] = chance_level(probes, keys)
    facts.pop("texts_cut", None)
    n_cut = int(_array(contents, f"{head}.cut").sum()) if "token_limit" in facts else 0
    if n_cut:
        facts["texts_cut"] = (
            f"{n_cut:,} of {len(keys) * len(facts['text_columns']):,} texts are longer than "
            f"{head}'s {facts['token_limit']} tokens and were cut"
        )


def _array(contents: BuildContents, name: str) -> np.ndarray:
    """One of what is to be stored: a build that is derived from another may have it there."""
    base = contents.base
    return base.array(name) if base and name in contents.shared else contents.arrays[name]


def store_tokens(contents: BuildContents, head: str, keys: TokenKeys) -> None:
    """The tokens of every item, for a second pass by that head's encoder."""
    kind = "token_vectors" if keys.table is None else "token_rows"
    contents.arrays |= {f"{head}.token_indptr": keys.indptr, f"{head}.{kind}": keys.stored}


def store_interactions(contents: BuildContents, log: Interactions) -> None:
    """Each user's history as one span of the arrays, items in ascending order."""
    indptr = np.searchsorted(log.users, np.arange(len(log.user_ids) + 1))
    contents.users = log.user_ids
    contents.arrays |= {"interactions.indptr": indptr, "interactions.items": log.items}
    contents.facts |= {"n_users": len(log.user_ids), "n_interactions": len(log)}
    if log.ratings is not None:
        contents.arrays["interactions.ratings"] = log.ratings
        contents.facts["rating_scale"] = rating_scale(log.ratings)
    if log.times is not None:
        contents.arrays["interactions.times"] = log.times
        contents.facts["times_comparable"] = log.times_comparable


def store_implicit(contents: BuildContents, factors: ImplicitFactors) -> None:
    """Item embeddings to recommend by, their directions to compare items by, and how to place an
    item that nobody met by its text.
    """
    arrays, contents.facts["implicit"] = factors.state()
    contents.arrays |= {f"implicit.{name}": array for name, array in arrays.items()}
    lengths = np.linalg.norm(factors.item_embeddings, axis=1, keepdims=True)
    directions = factors.item_embeddings / np.where(lengths > 0, lengths, 1)
    contents.arrays["implicit.item_directions"] = directions
    keys = _array(contents, f"{main_head(contents.facts)}.keys")
    text_map = fit_text_map(keys, factors.item_embeddings)
    contents.shared.discard("implicit.text_map")
    if text_map is not None:
        contents.arrays["implicit.text_map"] = text_map


def store_popularity(contents: BuildContents, log: Interactions) -> None:
    """How many met each item."""
    counts = np.bincount(log.items, minlength=len(log.item_ids))
    contents.arrays["implicit.item_counts"] = counts.astype(np.int32)


def store_ratings(contents: BuildContents, factors: RatingFactors) -> None:
    arrays, contents.facts["ratings"] = factors.state()
    contents.arrays |= {f"ratings.{name}": array for name, array in arrays.items()}


def store_next_item(contents: BuildContents, model: NextItemModel) -> None:
    arrays, contents.facts["next_item"] = model.state()
    contents.arrays |= {f"next_item.{name}": array for name, array in arrays.items()}


# --- read by the engine ---


def main_head(facts: Mapping[str, Any]) -> str:
    """The dense head that stands for meaning where there is room for one."""
    return "lsa" if facts["encoder"] == "corpus" else list(facts["head_weights"])[-1]


class StoredModels:
    """What a build stored, each part read on first use, with neither scikit-learn nor numba."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.n_items: int = snapshot.facts["n_items"]
        self._encoders: dict[str, Encoder] = {}

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

    def encoder(self, head: str) -> Encoder:
        """What a dense head turns texts into vectors by. Raises `WorkspaceError` where it is gone,
        or another than the one that made the keys.
        """
        if head not in self._encoders:
            self._encoders[head] = self._read_encoder(head)
        return self._encoders[head]

    def _read_encoder(self, head: str) -> Encoder:
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
                f"{error}; without {head} there is search --heads {','.join(without)}"
            ) from None
        return encoder

    def _check_same(self, head: str, encoder: Encoder) -> None:
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
