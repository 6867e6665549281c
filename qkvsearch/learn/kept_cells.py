"""Cells that items keep when others of their cells change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from qkvsearch.learn.change_rules import ChangeRule
from qkvsearch.store import Snapshot


@dataclass(frozen=True)
class AlignedRows:
    """Rows that are to become items.

    ids: the text of each id. frame: their cells by stored column, id first. variants, originals: as
    in `Catalog`. positions: the row in the build of the item that each one replaces, −1 for none,
    int64 (n,).
    """

    ids: Sequence[str]
    frame: pd.DataFrame
    variants: pd.DataFrame
    originals: Mapping[str, pd.Series]
    positions: np.ndarray

    def with_kept_cells(
        self,
        snapshot: Snapshot,
        rule: ChangeRule,
        given: Collection[str],
        of_texts: Collection[str] = (),
        is_without_text: np.ndarray | None = None,
    ) -> AlignedRows:
        """Return the rows with the cells that the items of the build keep. given: the stored
        columns that the file has. of_texts: those of them that files of texts gave, which the items
        of `is_without_text` (bool, n) keep.
        """
        names = [name for name in self.frame if name != "id"]
        known = np.flatnonzero(self.positions >= 0)
        keeps_columns = rule.keeps_columns and bool(set(names) - set(given))
        keeps_texts = is_without_text is not None and is_without_text.any()
        if not len(known) or not (rule.shown or keeps_columns or keeps_texts):
            return self
        positions = self.positions[known]
        before = pd.DataFrame(
            snapshot.catalog.cells(positions, names), index=known, columns=names, dtype=object
        )
        is_kept = {name: np.zeros(len(known), dtype=bool) for name in names}
        if rule.keeps_columns:
            for name in set(names) - set(given):
                is_kept[name][:] = True
        if is_without_text is not None:
            for name in of_texts:
                is_kept[name] |= is_without_text[known]
        for number, row in enumerate(known.tolist()):
            shown = rule.shown.get(self.ids[row], {})
            for name, cell in shown.items():
                is_kept[name][number] = cell == before.at[row, name]
        frame = self.frame.copy()
        for name in names:
            kept = known[is_kept[name]]
            if len(kept):
                cells = frame[name].astype(object)
                cells.loc[kept] = before.loc[kept, name]
                frame[name] = cells
        variants = self._with_kept_variants(snapshot, known, is_kept)
        originals = self._with_kept_originals(snapshot, known, is_kept)
        return AlignedRows(self.ids, frame, variants, originals, self.positions)

    def _with_kept_originals(
        self, snapshot: Snapshot, known: np.ndarray, is_kept: Mapping[str, np.ndarray]
    ) -> dict[str, pd.Series]:
        """Return what cells were in the file, and for those that items keep, in the file before."""
        texts_of: dict[str, dict[int, str]] = {name: {} for name in is_kept}
        for name, originals in self.originals.items():
            read = texts_of.setdefault(name, {})
            read.update(zip(originals.index.tolist(), originals, strict=True))
        for name, kept in is_kept.items():
            for row in known[kept].tolist():
                texts_of[name].pop(row, None)
        numbers = {position: number for number, position in enumerate(self.positions[known])}
        for position, name, text in snapshot.catalog.originals_at(self.positions[known]):
            number = numbers[position]
            if name in is_kept and is_kept[name][number]:
                texts_of[name][int(known[number])] = text
        return {
            name: pd.Series(texts, dtype=object).sort_index()
            for name, texts in texts_of.items()
            if texts
        }

    def _with_kept_variants(
        self, snapshot: Snapshot, known: np.ndarray, is_kept: Mapping[str, np.ndarray]
    ) -> pd.DataFrame:
        """Return the variants, and those of the build for the columns that items keep. An item with
        several rows in the file has the variants of the file.
        """
        varying = snapshot.catalog.varying
        if not varying:
            return self.variants
        with_own = set(self.variants.index)
        numbers = {
            position: number
            for number, position in enumerate(self.positions[known].tolist())
            if known[number] not in with_own
        }
        rows, cells = [], []
        for position, *values in snapshot.catalog.variants(varying):
            number = numbers.get(position)
            if number is None:
                continue
            # Where a variant has no cell, the one of its item counts.
            kept = [
                value if is_kept[name][number] else None
                for name, value in zip(varying, values, strict=True)
            ]
            if any(value is not None for value in kept):
                rows.append(int(known[number]))
                cells.append(kept)
        if not rows:
            return self.variants
        former = pd.DataFrame(cells, index=rows, columns=varying, dtype=object)
        if self.variants.empty:
            return former
        own = self.variants.astype(object)
        return pd.concat([own, former]).sort_index(kind="stable")
