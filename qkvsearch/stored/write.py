"""What the builder stores: each model as arrays and facts under their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.collaborative.cold_start import fit_text_map
from qkvsearch.collaborative.factors import ImplicitFactors, RatingFactors, unit_rows
from qkvsearch.collaborative.feedback import rating_scale
from qkvsearch.data.interactions import Interactions
from qkvsearch.learning.noise_threshold import chance_level, random_strings
from qkvsearch.retrieval import LexicalKeys
from qkvsearch.retrieval.late_interaction import TokenKeys
from qkvsearch.stored.kinds import main_head
from qkvsearch.texts.encoders import TextEncoder
from qkvsearch.texts.vocabulary import Vocabulary
from qkvsearch.workspace import BuildContents

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

    from qkvsearch.sequences.model import NextItemModel


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
    encoder: TextEncoder,
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
        contents.facts["token_limit"] = encoder.limit
    for array, values in encoder.learned_arrays().items():
        contents.arrays[f"{name}.{array}"] = values
    if encoder.is_pretrained:
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
    contents.arrays["implicit.item_directions"] = unit_rows(factors.item_embeddings)
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
