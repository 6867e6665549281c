"""The searched texts of items, read when a score is explained or a snippet is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.heads.dense_keys import ItemKeys
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.store import StoredCatalog
from qkvsearch.text.labelled import LabelledVectors
from qkvsearch.text.text_encoder import Weights, item_pieces

# The cells that are cached when scores are explained, and their longest text.
CACHED_CELLS, SHORT_CELL = 2048, 60


@dataclass(frozen=True)
class ItemTexts:
    """The searched texts of a build's items."""

    models: StoredModels
    catalog: StoredCatalog

    @property
    def columns(self) -> list[str]:
        """The columns that are searched."""
        return list(self.models.snapshot.facts["text_columns"])

    def of(self, position: int) -> list[str]:
        """Return the searched text of an item, column by column."""
        return self.catalog.searched_texts([position], self.columns)[0] if self.columns else []

    def of_unit(self, unit: int) -> list[str]:
        """Return the searched text of an item or passage, column by column."""
        units = self.models.units
        assert units is not None
        return units.texts(unit, self.of(int(units.item_of[unit])))

    def unit_pieces(self, head: str, unit: int) -> LabelledVectors:
        """Return the labelled vectors whose sum is the key of an item or passage."""
        units = self.models.units
        assert units is not None
        if unit < units.n_short:
            return self.search_pieces(head, int(units.item_of[unit]))
        key = self.models.unit_keys(head).of_passages[unit - units.n_short]
        weights = self.models.column_weights(head)
        return self._adding_up(head, self.of_unit(unit), weights, key)

    def pieces(self, head: str, position: int) -> LabelledVectors:
        """Return the labelled vectors whose sum is the item's key in a dense head."""
        weights = self.models.column_weights(head)
        return self._pieces(head, position, weights, self.models.dense_keys(head))

    def search_pieces(self, head: str, position: int) -> LabelledVectors:
        """Return the labelled vectors whose sum is the key by which a search ranks the item."""
        weights = self.models.tuned_column_weights
        if weights is None:
            return self.pieces(head, position)
        return self._pieces(head, position, weights, self.models.search_keys(head))

    def _pieces(
        self, head: str, position: int, weights: Weights, keys: ItemKeys[Any]
    ) -> LabelledVectors:
        key = keys.vectors[np.array([position])][0]
        return self._adding_up(head, self.of(position) or [""], weights, key)

    @cached_property
    def _encoded(self) -> Callable[[str, str], LabelledVectors]:
        """A function from a head and a cell to what its encoder reads. The hits of an answer share
        short cells, such as genres, and are often empty in the same columns.
        """
        # It does not refer to this object, which would keep a closed build in memory.
        encoder_of = self.models.encoder

        @lru_cache(CACHED_CELLS)
        def short_cell(head: str, text: str) -> LabelledVectors:
            return encoder_of(head).encode_item(text)

        def cell(head: str, text: str) -> LabelledVectors:
            if len(text) <= SHORT_CELL:
                return short_cell(head, text)
            return encoder_of(head).encode_item(text)

        return cell

    def _adding_up(
        self, head: str, texts: list[str], weights: Weights, key: np.ndarray
    ) -> LabelledVectors:
        encoder = self.models.encoder(head)
        pieces = item_pieces(partial(self._encoded, head), texts, weights)
        if encoder.table is not None:
            return pieces
        from qkvsearch.text.pretrained.onnx_layers import MIN_COSINE

        # A transformer's stored key may come from the other runtime, which rounds differently. Any
        # larger difference is an error, and should show in the sum.
        is_rounded = float(pieces.total @ key) >= MIN_COSINE
        return pieces.adding_up_to(key) if is_rounded else pieces
