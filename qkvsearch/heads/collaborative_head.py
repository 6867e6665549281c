"""The head "collaborative" of a recommendation, as it is stored and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.heads.component import BuildModels, main_head
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.interaction_rows import rows_where
from qkvsearch.heads.preference_head import PreferenceHead, Remaining
from qkvsearch.models.cold_start import fit_text_map, place_cold_items
from qkvsearch.models.embeddings_head import EMBEDDINGS
from qkvsearch.models.user_vectors import ImplicitFactors
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.array_spec import ArraySpec
from qkvsearch.store.stored_arrays import StoredArrays
from qkvsearch.text.labelled import unit_rows

# The fact with the numbers of `ImplicitFactors`.
NUMBERS = "implicit"


class CollaborativeHead(PreferenceHead[ImplicitFactors]):
    """The embeddings of items, and their sum over all items, from which a user's is solved.

    `unit_rows` are the embeddings at length 1, to compare items. `text_map` places a cold item by
    its text, if texts predict preferences.
    """

    name = EMBEDDINGS.name
    titles: ClassVar = {"en": "embeddings of users and items", "zh": "用户与条目的嵌入"}
    arrays: ClassVar = {
        "item_embeddings": ArraySpec("f", ("items", "components"), rows="interactions"),
        "gram": ArraySpec("f", ("components", "components")),
        "unit_rows": ArraySpec("f", ("items", "components"), rows="interactions"),
        "text_map": ArraySpec("f", ("text_components", "components")),
    }
    facts = (NUMBERS,)

    def store(
        self, contents: BuildContents, fitted: ImplicitFactors
    ) -> dict[str, np.ndarray | None]:
        """Return its arrays. The keys of the main text head have to be in `contents` already."""
        arrays, contents.facts[NUMBERS] = fitted.state()
        keys = DenseComponent(main_head(contents.facts)).pending(contents, "keys")
        return {
            **arrays,
            "unit_rows": unit_rows(fitted.item_embeddings),
            "text_map": fit_text_map(keys, fitted.item_embeddings),
        }

    def sizes(self, names: list[str], models: BuildModels) -> dict[str, int]:
        if "text_map" not in names:
            return {}
        keys = models.load(DenseComponent(models.main_head)).keys.vectors
        return {"text_components": keys.shape[1]}

    def load(self, arrays: Mapping[str, np.ndarray], models: BuildModels) -> ImplicitFactors:
        """Return the embeddings, with cold items placed by their text."""
        embeddings = arrays["item_embeddings"]
        if "text_map" in arrays:
            keys = models.load(DenseComponent(models.main_head)).keys.vectors
            is_cold = arrays["item_counts"] == 0
            embeddings = place_cold_items(embeddings, keys, arrays["text_map"], is_cold)
        return ImplicitFactors.from_state(
            {"item_embeddings": embeddings, "gram": arrays["gram"]}, models.snapshot.facts[NUMBERS]
        )

    def forget(
        self, stored: StoredArrays, contents: BuildContents, remaining: Remaining
    ) -> ImplicitFactors:
        from qkvsearch.models.implicit_als import AlternatingLeastSquares

        is_liked = remaining.is_liked
        embeddings = rows_where(is_liked, stored.pending(contents, "item_embeddings"))
        rows = embeddings.astype(np.float64)
        with one_blas_thread():
            gram = rows.T @ rows
        numbers = contents.facts[NUMBERS] | {"n_items": max(int(is_liked.sum()), 1)}
        if is_liked.any():
            model = AlternatingLeastSquares(**remaining.settings)
            alpha0, reg = model.strengths(remaining.confidences)
            numbers |= {"alpha0": alpha0, "reg": reg}
        contents.facts[NUMBERS] = numbers
        stored.put(
            contents,
            item_embeddings=embeddings,
            gram=gram,
            unit_rows=rows_where(is_liked, stored.pending(contents, "unit_rows")),
        )
        return ImplicitFactors(item_embeddings=embeddings, gram=gram, **numbers)

    def delete(
        self, stored: StoredArrays, contents: BuildContents, snapshot: Snapshot, deleted: np.ndarray
    ) -> None:
        """Subtract the deleted items from the sums over all items."""
        embeddings = stored.rows_at(snapshot, "item_embeddings", deleted).astype(np.float64)
        n_learned = int(np.count_nonzero(embeddings.any(axis=1)))
        if n_learned:
            gram = stored.read(snapshot, "gram")["gram"]
            stored.put(contents, gram=gram - embeddings.T @ embeddings)
        numbers = contents.facts[NUMBERS]
        # At least one, or the solve for a user without a history would divide by zero.
        contents.facts[NUMBERS] = numbers | {"n_items": max(numbers["n_items"] - n_learned, 1)}
