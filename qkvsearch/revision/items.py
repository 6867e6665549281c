"""Who is in the catalog from now on, and which row of the former build each one had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from qkvsearch.data.catalog import Catalog, catalog_from_frame
from qkvsearch.data.columns import Columns
from qkvsearch.data.ids import are_integers, id_texts
from qkvsearch.data.readers import load
from qkvsearch.data.report import ReadReport
from qkvsearch.data.tables import as_text
from qkvsearch.errors import QkvError
from qkvsearch.revision.columns import rows_as_here
from qkvsearch.stored import BuildReader, Change
from qkvsearch.workspace import Snapshot

if TYPE_CHECKING:
    from qkvsearch.data.readers import Source


def with_items(build: Snapshot, source: Source, columns: Columns) -> Change:
    """The catalog with the items of a file or frame, each in the place of one with its id.

    Raises `DataError` for a file without an id column, or without those that search reads.
    """
    frame, report = load(source, "items")
    cells = _cells(build)
    former = as_text(cells)
    rows = rows_as_here(frame, columns, report, former, build.facts["text_columns"])
    stays = ~former["id"].isin(rows["id"])
    by_id = pd.Series(former.index, index=former["id"])
    origin = np.concatenate(
        [np.flatnonzero(stays), by_id.reindex(rows["id"]).fillna(-1).to_numpy(np.int64)]
    )
    everyone = pd.concat([former[stays], rows], ignore_index=True)
    replaced = len(former) - int(stays.sum())
    return _change(build, cells, everyone, origin, replaced, [str(report)])


def without_items(build: Snapshot, leaving: np.ndarray) -> Change:
    """Without the items for which `leaving` (bool, n_items) is True. Raises `QkvError` if all."""
    if leaving.all():
        raise QkvError(
            f"{build.workspace}: that is every item, and a workspace has at least one; "
            "build it again from other items, or delete the folder"
        )
    cells = _cells(build)
    kept = np.flatnonzero(~leaving)
    return _change(build, cells, as_text(cells).iloc[kept], kept)


def _cells(build: Snapshot) -> pd.DataFrame:
    """The former catalog as it is stored."""
    return pd.DataFrame(build.tables.cells(), columns=build.tables.columns, dtype=object)


def _change(
    build: Snapshot,
    cells: pd.DataFrame,
    rows: pd.DataFrame,
    origin: np.ndarray,
    replaced: int = 0,
    notes: Sequence[str] = (),
) -> Change:
    """`rows` as the catalog that a build would make of them: sorted by id, columns as numbers
    where every cell is one, and ids as whole numbers where every one is.
    """
    rows = rows.assign(id=id_texts(rows["id"]))
    everything = Columns(id="id", title="title", text=build.facts["text_columns"])
    catalog = catalog_from_frame(rows, everything, ReadReport("items", read=len(rows)))
    ordered = np.empty(len(catalog), dtype=np.int64)
    ordered[catalog.ids.positions(rows["id"])] = origin
    integer = catalog.ids.integer
    if integer != are_integers(map(str, cells["id"])):
        notes = [*notes, f"All ids are {'whole numbers' if integer else 'text'} from now on."]
    unread = _unread(cells, catalog, ordered)
    return Change(BuildReader(build), catalog, ordered, unread, replaced, list(notes))


def _unread(cells: pd.DataFrame, catalog: Catalog, origin: np.ndarray) -> np.ndarray:
    """True for new items, and where a text is not the one that the former build read."""
    unread = origin < 0
    kept = np.flatnonzero(~unread)
    for name, texts in zip(catalog.text_columns, catalog.fields(), strict=True):
        before = cells[name].map(lambda cell: "" if cell is None else str(cell)).to_numpy(object)
        unread[kept] |= before[origin[kept]] != np.array(texts, dtype=object)[kept]
    return unread
